"""All controls are there, in the order in which people work, and say what they do."""

from __future__ import annotations

from typing import Any


def test_controls_follow_the_work(page: Any) -> None:
    text = page.locator("body").inner_text()
    steps = ["1 Bring", "2 Solve and watch", "3 Judge", "4 Correct", "5 Take home"]
    assert sorted(steps, key=text.index) == steps
    assert "nothing is sent anywhere" in text
