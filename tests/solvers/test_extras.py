"""Pieces of another picture are found by that nobody wants them beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from diffassemble.core import ImagePieces, Locks, Puzzle
from diffassemble.squares.grid import set_aside


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


def test_a_picture_without_foreign_pieces_stays_whole(cut: Callable[..., Puzzle]) -> None:
    assert set_aside(cut(4, 4)).extra == ()


def test_what_is_locked_belongs(cut: Callable[..., Puzzle]) -> None:
    puzzle = mixed(cut, 1)
    held = torch.arange(17) == 0
    turns = torch.zeros(17, dtype=torch.long)
    locks = Locks(held, puzzle.board.poses(turns, turns))
    assert "foreign_0" not in set_aside(replace(puzzle, locks=locks)).extra
