"""The example that the page opens on comes out right and has something to show."""

from __future__ import annotations

from diffassemble.web.inspection import verdict
from diffassemble.web.server import example_answer


def test_the_example_is_worth_showing() -> None:
    answer = example_answer()
    assert len(answer.history) > 15
    assert "25 of 25 pieces right" in verdict(answer)
