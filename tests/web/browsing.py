"""What people do on the page."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
# Milliseconds that a busy machine may take for anything.
PATIENCE = 400_000

Point = tuple[float, float]


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def choose(page: Any, label: str, wanted: str) -> None:
    """Choose something in a dropdown."""
    page.get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=wanted, exact=True).click()


def upload(page: Any, *paths: Path) -> None:
    """Choose files to be sent."""
    page.locator("input[type=file]").set_input_files(list(paths))


def until(holds: Callable[[], Any]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE / 1000
    while not holds():
        assert time.monotonic() < end, "that never happened"
        time.sleep(0.03)


def status(page: Any) -> Any:
    """Where the page tells how things stand."""
    return page.locator(".da-status")


def middle(page: Any, number: int) -> Point:
    """Where a flat piece appears."""
    box = page.locator(f"[data-piece='{number}'] image").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def width(page: Any, number: int) -> float:
    """How wide a flat piece appears."""
    return page.locator(f"[data-piece='{number}'] image").bounding_box()["width"]


def drag(page: Any, start: Point, end: Point) -> None:
    """Press, move by and by, let go."""
    page.mouse.move(*start)
    page.mouse.down()
    for share in (0.2, 0.5, 0.8, 1.0):
        page.mouse.move(*(a + (b - a) * share for a, b in zip(start, end, strict=True)))
    page.mouse.up()


def swipe(page: Any, *fingers: tuple[Point, Point]) -> None:
    """One finger after another touches the screen, they move together, and go."""
    device = page.context.new_cdp_session(page)

    def touch(kind: str, points: list[Point]) -> None:
        told = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": told})

    for count in range(1, len(fingers) + 1):
        touch("touchStart", [start for start, _ in fingers[:count]])
    for share in (0.2, 0.5, 0.8, 1.0):
        between = [tuple(a + (b - a) * share for a, b in zip(start, end, strict=True)) for start, end in fingers]
        touch("touchMove", between)
    touch("touchEnd", [])


def drawn(page: Any) -> None:
    """Wait until the board has its pieces where they are."""
    page.locator(".da-board [data-piece][transform]").first.wait_for()
