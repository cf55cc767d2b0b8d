"""All controls are there, in the order in which people work, and say what they do."""

from __future__ import annotations

from typing import Any

from diffassemble.web.panel import MANY, pile_text


def test_controls_follow_the_work(page: Any) -> None:
    text = page.locator("body").inner_text()
    steps = ["1 Bring", "2 Solve and watch", "3 Judge", "4 Correct", "5 Take home"]
    assert sorted(steps, key=text.index) == steps
    assert "nothing is sent anywhere" in text
    assert "pack them into one zip file, or send them one after the other" in text


def test_what_was_sent_is_listed() -> None:
    assert pile_text([]) == MANY
    assert pile_text(["a.png"]) == "1 piece so far: `a.png`"
    many = pile_text([f"{number:03d}.png" for number in range(30)])
    assert many.startswith("30 pieces so far: … ")
    assert "`029.png`" in many
    assert "`000.png`" not in many
