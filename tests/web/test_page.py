"""The page in a real browser: upload, solve, compare, correct, download; several people at once; errors are told."""

from __future__ import annotations

import contextlib
import json
import re
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import trimesh
from browsing import ARC, PATIENCE, SQUARE, cell, choose, dismiss, drag, grip, press, project, step, upload

from diffassemble.files.archives import pack
from diffassemble.files.assemblies import read_assembly
from diffassemble.files.puzzles import write_puzzle
from diffassemble.squares.cut import cut_image
from diffassemble.web import transfers
from diffassemble.web.server import Workbench
from diffassemble.web.session import Session
from diffassemble.web.transfers import PHOTO, PIECES


@pytest.fixture
def boxes(tmp_path: Path) -> Path:
    """Two meshes in a zip file."""
    files = [(f"{name}.ply", trimesh.creation.box((0.4, 0.3, 0.2)).export(file_type="ply")) for name in "ab"]
    (tmp_path / "boxes.zip").write_bytes(pack(files))
    return tmp_path / "boxes.zip"


def upload_photo(page: Any, photo: Path) -> None:
    upload(page, photo)
    page.get_by_text("16 pieces, grid 4x4").wait_for()


def test_opens_on_an_example_that_moves(page: Any, session: Session, workbench: Workbench) -> None:
    text = page.locator("body").inner_text()
    sections = ["1 Upload", "2 Solve and watch", "3 Inspect", "4 Correct", "5 Download"]
    assert sorted(sections, key=text.index) == sections
    assert "nothing is sent anywhere" in text
    assert workbench.address.startswith("http://127.0.0.1:")
    steps = set()
    while len(steps) <= 2:
        steps.add(session.panel.step.value)
        time.sleep(0.05)


def test_a_photo_is_cut_solved_and_downloaded(page: Any, session: Session, photo: Path, tmp_path: Path) -> None:
    upload_photo(page, photo)
    press(page, "Solve")
    page.get_by_text("16 of 16 pieces right").wait_for()
    with page.expect_download() as download:
        press(page, "Download everything (zip)")
    download.value.save_as(tmp_path / "result.zip")
    with zipfile.ZipFile(tmp_path / "result.zip") as archive:
        assert {"assembly.json", "assembled.png", "steps.gif"} <= set(archive.namelist())
        archive.extract("assembly.json", tmp_path)
    assembly = read_assembly(tmp_path / "assembly.json", session.editor.puzzle)
    assert torch.equal(assembly.poses.translation, session.answers[0].poses.translation)
    assert len(json.loads((tmp_path / "assembly.json").read_text())["pieces"]) == 16


def test_pieces_are_sent_one_after_the_other(page: Any, session: Session, photo: Path, tmp_path: Path) -> None:
    write_puzzle(cut_image(photo, 2, 2, size=32), tmp_path / "puzzle")
    pieces = sorted((tmp_path / "puzzle" / "pieces").iterdir())
    choose(page, PHOTO, PIECES)
    page.locator("input[value='4x4']").first.wait_for(state="detached")
    upload(page, pieces[0])
    page.get_by_text("1 piece so far").wait_for()
    press(page, "Start over")
    page.get_by_text("Many pieces: pack them").wait_for()
    for count, piece in enumerate(pieces, 1):
        upload(page, piece)
        page.get_by_text(f"{count} piece{'s' * (count > 1)} so far").wait_for()
    press(page, "Use the pieces sent so far")
    page.get_by_text("4 pieces, grid 2x2").wait_for()
    page.get_by_text("Many pieces: pack them").wait_for()
    assert session.editor.puzzle.names == tuple(path.name for path in pieces)
    assert not list(session.collected.iterdir())
    choose(page, PIECES, PHOTO)
    page.locator("input[value='4x4']").first.wait_for()


def test_fragments_are_seen_moving(page: Any, session: Session, boxes: Path, tmp_path: Path) -> None:
    upload(page, boxes)
    page.get_by_text("2 pieces; press").wait_for()
    before = session.editor.scene.nodes[0].position.copy()
    choose(page, "default", "huroyan")
    press(page, "Solve")
    page.get_by_text("0 of 2 pieces with a confidence").wait_for()
    assert (session.editor.scene.nodes[0].position != before).any()
    assert len(session.shown.history) == 20
    assert session.shown.objects == (0, -1)
    choose(page, "huroyan", "default")
    press(page, "Solve")
    page.locator("input[value='2: mend']").first.wait_for()
    with page.expect_download() as download:
        press(page, "assembly.json")
    download.value.save_as(tmp_path / "assembly.json")
    assembly = read_assembly(tmp_path / "assembly.json", session.editor.puzzle)
    assert assembly.solver == "mend"
    assert assembly.objects == session.shown.objects is not None


def test_two_browsers_at_once_and_one_is_closed(
    open_page: Callable[[], Any], page: Any, session: Session, workbench: Workbench, photo: Path, temporary: Path
) -> None:
    other = open_page()
    guest = list(workbench.sessions.values())[-1]
    assert guest is not session
    choose(other, "default", "random")
    press(other, "Solve")
    other.get_by_text("solving: 10 %").wait_for()
    job = guest.job
    assert guest.folder.parent == session.folder.parent == temporary
    upload_photo(page, photo)
    assert "solving" in other.locator("body").inner_text()
    assert "16 pieces" not in other.locator("body").inner_text()
    other.context.close()
    began = time.monotonic()
    while (job.process.is_alive() or guest.folder.exists()) and time.monotonic() < began + 30:
        time.sleep(0.1)
    assert guest.closed
    assert not job.process.is_alive()
    assert not guest.folder.exists()
    assert session.folder.exists()


def test_cancelling(page: Any, session: Session, photo: Path) -> None:
    upload_photo(page, photo)
    choose(page, "default", "random")
    press(page, "Solve")
    page.get_by_text("solving: 10 %").wait_for()
    press(page, "Cancel")
    page.get_by_text("cancelled").wait_for()
    assert session.job is None
    choose(page, "random", "default")


def test_broken_uploads_are_explained(page: Any, photo: Path, tmp_path: Path, temporary: Path) -> None:
    broken = {
        "bomb.zip": (pack([("a.png", b"\0" * 30_000_000)]), "zip bomb"),
        "evil.zip": (pack([("../../evil.png", b"evil")]), "points outside of the zip file"),
        "many.zip": (pack([(f"{number}.png", b"") for number in range(5000)]), "has 5000 files"),
        "picture.zip": (pack([("a.ply", photo.read_bytes()), ("b.ply", photo.read_bytes())]), "is no PLY file"),
        "cut.jpg": (photo.read_bytes()[:3000], "broken or cut short"),
        "words.png": (b"not a picture", "is not a picture"),
    }
    for name, (content, message) in broken.items():
        (tmp_path / name).write_bytes(content)
        upload(page, tmp_path / name)
        page.get_by_text(message).first.wait_for()
    upload_photo(page, photo)
    assert not list(temporary.rglob("evil*"))
    assert not (tmp_path / "evil.png").exists()


def test_uploads_beyond_the_limit_are_refused_at_once(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "MOST_BYTES", 1_000_000)
    (tmp_path / "huge.png").write_bytes(b"\0" * 3_000_000)
    upload(page, tmp_path / "huge.png")
    page.get_by_text("has 3 MB, at most 1 MB are taken").first.wait_for()


def test_a_solver_that_raises(page: Any, photo: Path) -> None:
    upload_photo(page, photo)
    choose(page, "default", "identity")
    press(page, "Solve")
    page.get_by_text("the solver failed: ZeroDivisionError: no luck today").first.wait_for()
    page.locator("input[value='none yet']").first.wait_for()
    choose(page, "identity", "gallagher")
    press(page, "Solve")
    page.locator("input[value='1: gallagher']").first.wait_for()
    choose(page, "gallagher", "default")


def test_nothing_can_be_shared_through_others(workbench: Workbench) -> None:
    assert workbench.server.request_share_url() is None


def test_two_answers_are_compared_by_a_switch(page: Any, session: Session, photo: Path) -> None:
    upload_photo(page, photo)
    page.locator("input[value='none yet']").first.wait_for()
    choose(page, "default", "gallagher")
    press(page, "Solve")
    page.locator("input[value='1: gallagher']").first.wait_for()
    choose(page, "gallagher", "huroyan")
    press(page, "Solve")
    page.locator("input[value='2: gathering']").first.wait_for()
    page.get_by_text("0 of 16 pieces with a confidence").wait_for()
    choose(page, "2: gathering", "1: gallagher")
    page.get_by_text("gallagher: ").first.wait_for()
    assert session.shown is session.answers[0]
    choose(page, "huroyan", "default")


def test_pieces_are_coloured_by_confidence(page: Any, session: Session) -> None:
    before = session.editor.scene.nodes[0].image.copy()
    page.get_by_role("checkbox").first.click()
    for _ in range(300):
        if (session.editor.scene.nodes[0].image != before).any():
            break
        page.wait_for_timeout(100)
    assert (session.editor.scene.nodes[0].image != before).any()
    page.get_by_role("checkbox").first.click()


PLACE = re.compile(r"at row (\d), column (\d), turn (\d)")


def click_until(page: Any, point: tuple[float, float], told: Any) -> None:
    """Click until it has an effect: clicks are lost while nothing is drawn, or a message lies over it."""
    from playwright.sync_api import TimeoutError as NotYet

    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        dismiss(page)
        page.mouse.move(point[0] - 40, point[1] - 40)
        page.mouse.click(*point)
        with contextlib.suppress(NotYet):
            told.wait_for(timeout=3000)
            return
    told.wait_for(timeout=1000)


def take(page: Any, row: int, col: int) -> int:
    """Click a piece of a board of 4 × 4 cells; gives its turn."""
    told = page.get_by_text(f"at row {row}, column {col}")
    click_until(page, cell(page, row, col, 4), told)
    return int(PLACE.search(told.inner_text())[3])


def test_a_piece_is_moved_by_its_handles_locked_and_stays(page: Any, session: Session, photo: Path) -> None:
    upload_photo(page, photo)
    press(page, "Solve")
    page.get_by_text("16 of 16 pieces right").wait_for()
    dismiss(page)
    turn = take(page, 1, 2)
    number = session.editor.selected
    # Not quite a cell to the right: it snaps, and who lies there makes room.
    x, y = grip(page, 1, 2, 4, turn, SQUARE)
    drag(page, (x, y), (x + 0.8 * step(page, 4), y))
    page.get_by_text(f"at row 1, column 3, turn {turn}, free").wait_for()
    # Not quite a quarter turn.
    drag(page, grip(page, 1, 3, 4, turn, ARC), grip(page, 1, 3, 4, turn + 1, ARC))
    page.get_by_text(f"at row 1, column 3, turn {(turn + 1) % 4}, free").wait_for()
    board, poses = session.editor.puzzle.board, session.editor.arrangement.poses
    cells, turns = board.snap(poses)
    assert torch.equal(board.poses(cells, turns).translation, poses.translation)
    assert sorted(cells.tolist()) == list(range(16))
    press(page, "Lock / unlock")
    page.get_by_text("locked. Drag").wait_for()
    press(page, "Solve")
    page.locator("input[value='2: hybrid']").first.wait_for()
    assert "16 of 16 pieces right" not in page.locator("body").inner_text()
    assert take(page, 1, 3) == (turn + 1) % 4
    assert session.editor.selected == number
    assert bool(session.editor.arrangement.locked[number])


def test_a_fragment_is_moved_by_its_handles(page: Any, session: Session, boxes: Path) -> None:
    upload(page, boxes)
    page.get_by_text("2 pieces; press").wait_for()
    dismiss(page)
    before = session.editor.arrangement.poses
    place = before.translation[0].double()

    def seen(along: float) -> tuple[float, float]:
        return project(page, place + torch.tensor([along, 0.0, 0.0]))

    told = page.get_by_text("free. Drag its handles")
    click_until(page, seen(0.0), told)
    drag(page, seen(0.33), seen(0.63))
    page.wait_for_timeout(500)
    after = session.editor.arrangement.poses
    assert session.editor.selected == 0
    moved = after.translation - before.translation
    assert float(moved[0, 0]) > 0.15
    assert float(moved[0, 1:].abs().max()) < 0.02
    assert torch.equal(after.translation[1:], before.translation[1:])
    press(page, "Undo")
    page.wait_for_timeout(300)
    assert torch.equal(session.editor.arrangement.poses.translation, before.translation)


def test_corrections_can_be_undone(page: Any, photo: Path) -> None:
    upload_photo(page, photo)
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
