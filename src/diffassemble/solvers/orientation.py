"""Which way is up: a question about the whole, asked once it is assembled."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.geometry import Poses, turn_pixels
from diffassemble.model.upright import Upright, upright_turn
from diffassemble.puzzle import Board, Puzzle

EMPTY_COLOUR = 0.5

Uprighter = Callable[[Puzzle, Poses, tuple[int, ...]], int]
"""Says by how many clockwise quarter turns, of those allowed, a placement as a whole must be turned to be upright."""


def fitting_turns(board: Board) -> tuple[int, ...]:
    """The quarter turns after which a whole still fits its board."""
    return (0, 1, 2, 3) if board.rows == board.cols else (0, 2)


def assembled_pixels(
    puzzle: Puzzle, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"]
) -> Float[Tensor, "3 height width"]:
    """The picture that a placement makes; empty cells are grey."""
    board, size = puzzle.board, puzzle.pictures.size
    canvas = torch.full((board.cells, 3, size, size), EMPTY_COLOUR)
    canvas[cells] = turn_pixels(puzzle.pixels, turns)
    grid = canvas.view(board.rows, board.cols, 3, size, size).permute(2, 0, 3, 1, 4)
    return grid.reshape(3, board.rows * size, board.cols * size)


def turn_to_upright(model: Upright, puzzle: Puzzle, placed: Poses, allowed: tuple[int, ...]) -> int:
    """An `Uprighter`, once the network is given: it looks at the assembled picture."""
    return upright_turn(model, assembled_pixels(puzzle, *puzzle.board.snap(placed)), allowed=allowed)
