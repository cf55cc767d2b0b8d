"""A piece is taken in hand by a click; its handles move and turn it, it can be locked, and what is locked stays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
import trimesh
from browsing import ARC, SQUARE, cell, dismiss, drag, grip, press, project, step, upload

from diffassemble.files.archives import pack
from diffassemble.web.session import Visit

TRIES = 6
PLACE = re.compile(r"at row (\d), column (\d), turn (\d)")


def take(page: Any, row: int, col: int) -> int:
    """Click a piece of a board of 4 × 4 cells; gives its turn. A click is lost while an answer is still being shown."""
    told = page.get_by_text(f"at row {row}, column {col}")
    for _ in range(TRIES):
        page.mouse.click(*cell(page, row, col, 4))
        page.wait_for_timeout(3000)
        if told.count():
            break
    return int(PLACE.search(told.inner_text())[3])


def test_a_piece_is_moved_by_its_handles_locked_and_stays(page: Any, own: Visit, photo: Path) -> None:
    upload(page, photo)
    page.get_by_text("16 pieces, grid 4x4").wait_for()
    press(page, "Solve")
    page.get_by_text("16 of 16 pieces right").wait_for()
    dismiss(page)
    turn = take(page, 1, 2)
    number = own.work.selected
    # Not quite a cell to the right: it snaps, and who lies there makes room.
    x, y = grip(page, 1, 2, 4, turn, SQUARE)
    drag(page, (x, y), (x + 0.8 * step(page, 4), y))
    page.get_by_text(f"at row 1, column 3, turn {turn}, free").wait_for()
    # Not quite a quarter turn.
    drag(page, grip(page, 1, 3, 4, turn, ARC), grip(page, 1, 3, 4, turn + 1, ARC))
    page.get_by_text(f"at row 1, column 3, turn {(turn + 1) % 4}, free").wait_for()
    board, poses = own.work.puzzle.board, own.work.arrangement.poses
    cells, turns = board.snap(poses)
    assert torch.equal(board.poses(cells, turns).translation, poses.translation)
    assert sorted(cells.tolist()) == list(range(16))
    press(page, "Lock / unlock")
    page.get_by_text("locked. Drag").wait_for()
    press(page, "Solve")
    page.locator("input[value='2: hybrid']").first.wait_for()
    assert "16 of 16 pieces right" not in page.locator("body").inner_text()
    assert take(page, 1, 3) == (turn + 1) % 4
    assert own.work.selected == number
    assert bool(own.work.arrangement.locked[number])


def test_a_fragment_is_moved_by_its_handles(page: Any, own: Visit, tmp_path: Path) -> None:
    boxes = [(f"{name}.ply", trimesh.creation.box((0.4, 0.3, 0.2)).export(file_type="ply")) for name in "ab"]
    (tmp_path / "boxes.zip").write_bytes(pack(boxes))
    upload(page, tmp_path / "boxes.zip")
    page.get_by_text("2 pieces; press").wait_for()
    dismiss(page)
    before = own.work.arrangement.poses
    place = before.translation[0].double()

    def seen(along: float) -> tuple[float, float]:
        return project(page, place + torch.tensor([along, 0.0, 0.0]))

    told = page.get_by_text("free. Drag its handles")
    for _ in range(TRIES):  # a click before the scene is drawn hits nothing
        page.mouse.click(*seen(0.0))
        page.wait_for_timeout(3000)
        if told.count():
            break
    told.wait_for()
    drag(page, seen(0.33), seen(0.63))
    page.wait_for_timeout(500)
    after = own.work.arrangement.poses
    assert own.work.selected == 0
    moved = after.translation - before.translation
    assert float(moved[0, 0]) > 0.15
    assert float(moved[0, 1:].abs().max()) < 0.02
    assert torch.equal(after.translation[1:], before.translation[1:])
    press(page, "Undo")
    page.wait_for_timeout(300)
    assert torch.equal(own.work.arrangement.poses.translation, before.translation)


def test_corrections_can_be_undone(page: Any, photo: Path) -> None:
    upload(page, photo)
    page.get_by_text("16 pieces, grid 4x4").wait_for()
    dismiss(page)
    turn = take(page, 3, 3)
    press(page, "Turn clockwise")
    page.get_by_text(f"turn {(turn + 1) % 4}, free").wait_for()
    press(page, "Lock / unlock")
    page.get_by_text("locked. Drag").wait_for()
    press(page, "Undo")
    press(page, "Undo")
    page.get_by_text(f"at row 3, column 3, turn {turn}, free").wait_for()
    assert page.get_by_role("button", name="Undo", exact=True).is_disabled()
