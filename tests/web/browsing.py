"""What people do on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 900, 600
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


def cell(row: int, col: int, size: int) -> tuple[float, float]:
    """Where a cell of a square board appears on the page."""
    step = 0.36 * HEIGHT / size
    return WIDTH / 2 + (col - (size - 1) / 2) * step, HEIGHT / 2 + (row - (size - 1) / 2) * step
