"""What people do on the page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from diffassemble.web.scene import BESIDE, DISTANCE, REACH

# Small, since every pixel is drawn without a graphics card.
WIDTH, HEIGHT = 720, 480
# Where the square that moves a piece in its plane lies, and the arc that turns it, as shares of the handles' length.
SQUARE, ARC = 0.255, 0.46
# Milliseconds that a busy machine may take for anything.
PATIENCE = 120_000


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def choose(page: Any, present: str, wanted: str) -> None:
    """Choose something else in the first dropdown that shows `present`."""
    page.locator(f"input[value='{present}']").first.click()
    page.get_by_role("option", name=wanted, exact=True).click()


def upload(page: Any, path: Path) -> None:
    """Choose a file, as after a press on the button, which forgets the file before."""
    field = page.locator("input[type=file]")
    field.evaluate("field => { field.value = '' }")
    field.set_input_files(path)


def dismiss(page: Any) -> None:
    """Close the messages that lie over the scene; some may be going anyhow."""
    page.evaluate("document.querySelectorAll('.mantine-Notification-closeButton').forEach(button => button.click())")


def step(page: Any, size: int) -> float:
    """How large a cell of a square board appears, seen from where the page begins."""
    height = page.locator("canvas").first.bounding_box()["height"]
    return height / (2 * DISTANCE * math.tan(math.radians(75 / 2))) * 2 / size


def cell(page: Any, row: int, col: int, size: int) -> tuple[float, float]:
    """Where a cell of a square board appears on the page."""
    box = page.locator("canvas").first.bounding_box()
    along, down = ((number - (size - 1) / 2) * step(page, size) for number in (col, row))
    return box["x"] + box["width"] / 2 + along, box["y"] + box["height"] / 2 + down


def grip(page: Any, row: int, col: int, size: int, turn: int, share: float) -> tuple[float, float]:
    """A point of the handles of a piece: between its two arrows, at a share of their length; they turn with it."""
    x, y = cell(page, row, col, size)
    along = down = share * REACH * step(page, size)
    for _ in range(turn):
        along, down = -down, along
    return x + along, y + down


def project(page: Any, point: Tensor) -> tuple[float, float]:
    """Where a point in space appears on the page, seen from where the page begins with objects."""
    eye = torch.tensor(BESIDE, dtype=torch.double)
    ahead = -eye / eye.norm()
    right = torch.linalg.cross(ahead, torch.tensor([0.0, 0.0, 1.0], dtype=torch.double))
    right = right / right.norm()
    down = torch.linalg.cross(ahead, right)
    box, offset = page.locator("canvas").first.bounding_box(), point - eye
    scale = box["height"] / (2 * math.tan(math.radians(75 / 2))) / float(offset @ ahead)
    x, y = (float(offset @ axis) * scale for axis in (right, down))
    return box["x"] + box["width"] / 2 + x, box["y"] + box["height"] / 2 + y


def drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Press, move by and by, let go."""
    page.mouse.move(*start)
    page.wait_for_timeout(300)
    page.mouse.down()
    for number in range(1, 9):
        page.mouse.move(*(a + (b - a) * number / 8 for a, b in zip(start, end, strict=True)))
        page.wait_for_timeout(60)
    page.mouse.up()
