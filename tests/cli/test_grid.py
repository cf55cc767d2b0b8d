"""Grids are read as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffassemble.cli.grid import parse_grid
from diffassemble.core import Board, InputError


@given(st.integers(1, 999), st.integers(1, 999), st.sampled_from("xX×"))
def test_rows_and_columns(rows: int, cols: int, between: str) -> None:
    assert parse_grid(f"{rows}{between}{cols}") == Board(rows, cols)
    assert parse_grid(f" {rows} ") == Board(rows, rows)


@given(st.text())
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    try:
        board = parse_grid(text)
    except InputError as error:
        assert "such as 6x6 or 4x7" in str(error)  # noqa: PT017
    else:
        assert board.cells >= 1


@pytest.mark.parametrize(
    "text", ["", "x", "6x", "x6", "0", "0x6", "6x0", "-6", "6x-6", "6.5", "6y6", "6x6x6", "1000", "٣x٣"]
)
def test_bad_grids(text: str) -> None:
    with pytest.raises(InputError, match="is not understood"):
        parse_grid(text)
