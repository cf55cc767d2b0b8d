"""A piece is taken in hand by a click; it can be turned, locked and set free again, and what is locked stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from browsing import cell, press, upload


def solved(page: Any, photo: Path) -> None:
    upload(page, photo)
    page.get_by_text("16 pieces, grid 4x4").wait_for()
    press(page, "Solve")
    page.get_by_text("16 of 16 pieces right").wait_for()


def test_a_wrong_piece_is_locked_and_stays(page: Any, photo: Path) -> None:
    solved(page, photo)
    page.mouse.click(*cell(1, 2, 4))
    page.get_by_text("at row 1, column 2").wait_for()
    before = page.get_by_text("at row 1, column 2").inner_text()
    press(page, "Turn clockwise")
    turn = int(before.split("turn ")[1][0])
    page.get_by_text(f"at row 1, column 2, turn {(turn + 1) % 4}, free").wait_for()
    press(page, "Lock / unlock")
    page.get_by_text("locked. Drag").wait_for()
    name = page.get_by_text("locked. Drag").inner_text().split(" at row")[0]
    press(page, "Solve")
    page.locator("input[value='2: hybrid']").first.wait_for()
    assert "16 of 16 pieces right" not in page.locator("body").inner_text()
    page.mouse.click(*cell(1, 2, 4))
    page.get_by_text(f"{name} at row 1, column 2, turn {(turn + 1) % 4}, locked").wait_for()


def test_corrections_can_be_undone(page: Any, photo: Path) -> None:
    solved(page, photo)
    page.mouse.click(*cell(0, 0, 4))
    page.get_by_text("at row 0, column 0").wait_for()
    before = page.get_by_text("at row 0, column 0").inner_text()
    press(page, "Turn clockwise")
    press(page, "Lock / unlock")
    page.get_by_text("locked. Drag").wait_for()
    press(page, "Undo")
    press(page, "Undo")
    page.get_by_text(before).wait_for()
    assert page.get_by_role("button", name="Undo", exact=True).is_disabled()
