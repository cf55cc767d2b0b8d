"""Grids that are not given, and pieces that do not belong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diffassemble.core import Board, ImagePieces, Locks, Poses, Puzzle
from diffassemble.squares.grid import candidate_boards, choose_board, set_aside


@given(st.integers(2, 2000))
def test_candidates_hold_the_pieces_and_waste_no_row_or_column(count: int) -> None:
    boards = candidate_boards(count)
    assert boards
    for board in boards:
        assert board.rows <= board.cols <= 3 * board.rows
        assert (board.rows - 1) * board.cols < count <= board.cells
        assert board.rows * (board.cols - 1) < count
    full = [board.cells == count for board in boards]
    assert all(full) or not any(full)


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (4, 6), (3, 8), (5, 5)])
@pytest.mark.parametrize("name", ["astronaut", "coffee"])
def test_borders_determine_the_board(
    cut: Callable[..., Puzzle], reading_order: Any, shape: tuple[int, int], name: str
) -> None:
    puzzle = cut(*shape, name=name)
    assert choose_board(puzzle.pieces, reading_order(puzzle), seed=0) == Board(*shape)


@pytest.mark.parametrize(("turn", "board"), [(0, Board(4, 6)), (2, Board(4, 6)), (1, Board(6, 4)), (3, Board(6, 4))])
def test_a_picture_on_its_side_gets_an_upright_board(
    cut: Callable[..., Puzzle], reading_order: Any, turn: int, board: Board
) -> None:
    puzzle = cut(4, 6)

    def upright(given: Puzzle, placed: Poses, allowed: tuple[int, ...]) -> tuple[int, float]:
        assert given.board == Board(4, 6)
        assert allowed == (0, 1, 2, 3)
        return turn, 1.0

    assert choose_board(puzzle.pieces, reading_order(puzzle), 0, upright) == board


def mixed(cut: Callable[..., Puzzle], foreign: int) -> Puzzle:
    own, other = cut(4, 4), cut(3, 3, name="chelsea")
    pixels = torch.cat([other.pixels[:foreign], own.pixels])
    names = (*(f"foreign_{number}" for number in range(foreign)), *own.names)
    return Puzzle(ImagePieces(pixels), own.board, names)


@pytest.mark.parametrize("foreign", [1, 4])
def test_foreign_pieces_are_named(cut: Callable[..., Puzzle], foreign: int) -> None:
    chosen = set_aside(mixed(cut, foreign))
    assert chosen.extra == tuple(f"foreign_{number}" for number in range(foreign))
    assert len(chosen.puzzle) == 16


def test_what_is_locked_belongs(cut: Callable[..., Puzzle]) -> None:
    puzzle = mixed(cut, 1)
    held = torch.arange(17) == 0
    turns = torch.zeros(17, dtype=torch.long)
    locks = Locks(held, puzzle.board.poses(turns, turns))
    assert "foreign_0" not in set_aside(replace(puzzle, locks=locks)).extra
