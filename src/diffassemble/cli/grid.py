"""Grids as people write them."""

from __future__ import annotations

import re

from diffassemble.core import Board, InputError

_GRID = re.compile(r"([0-9]{1,3})(?:[xX×]([0-9]{1,3}))?")


def parse_grid(text: str) -> Board:
    """`4x7` is 4 rows of 7 columns; `6` is 6x6; up to 999x999."""
    match = _GRID.fullmatch(text.strip())
    rows = int(match[1]) if match else 0
    cols = int(match[2] or match[1]) if match else 0
    if rows < 1 or cols < 1:
        raise InputError(f"grid {text!r} is not understood; write rows x columns, such as 6x6 or 4x7")
    return Board(rows, cols)
