"""One browser's work: answers can be compared, confidence seen, history scrubbed; nothing to solve is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from browsing import choose, press, upload

from diffassemble.web.session import Visit


def test_two_answers_are_compared_by_a_switch(page: Any, own: Visit, photo: Path) -> None:
    upload(page, photo)
    page.get_by_text("16 pieces, grid 4x4").wait_for()
    page.locator("input[value='none yet']").first.wait_for()
    choose(page, "the usual one", "gallagher")
    press(page, "Solve")
    page.locator("input[value='1: gallagher']").first.wait_for()
    choose(page, "gallagher", "huroyan")
    press(page, "Solve")
    page.locator("input[value='2: huroyan']").first.wait_for()
    page.get_by_text("0 of 16 pieces with a confidence").wait_for()
    choose(page, "2: huroyan", "1: gallagher")
    page.get_by_text("gallagher: ").first.wait_for()
    assert own.shown is own.answers[0]
    choose(page, "huroyan", "the usual one")


def test_pieces_are_coloured_by_confidence(page: Any, own: Visit) -> None:
    before = own.work.stage.nodes[0].image.copy()
    page.get_by_role("checkbox").first.click()
    for _ in range(300):
        if (own.work.stage.nodes[0].image != before).any():
            break
        page.wait_for_timeout(100)
    assert own.work.confidence is not None
    assert (own.work.stage.nodes[0].image != before).any()
    page.get_by_role("checkbox").first.click()
