"""Which way is up: a question about the whole, asked once it is assembled."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.geometry import Poses, turn_pixels
from diffassemble.model.upright import Upright, upright_turn
from diffassemble.puzzle import Puzzle

EMPTY_COLOUR = 0.5


def assembled_pixels(
    puzzle: Puzzle, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"]
) -> Float[Tensor, "3 height width"]:
    """The picture that a placement makes; empty cells are grey."""
    board, size = puzzle.board, puzzle.pieces.size
    canvas = torch.full((board.cells, 3, size, size), EMPTY_COLOUR)
    canvas[cells] = turn_pixels(puzzle.pieces.pixels, turns)
    grid = canvas.view(board.rows, board.cols, 3, size, size).permute(2, 0, 3, 1, 4)
    return grid.reshape(3, board.rows * size, board.cols * size)


def turn_to_upright(model: Upright, puzzle: Puzzle, placed: Poses) -> int:
    """Clockwise quarter turns that make the placement stand upright, among those that fit the board."""
    picture = assembled_pixels(puzzle, *puzzle.board.snap(placed))
    square = puzzle.board.rows == puzzle.board.cols
    return upright_turn(model, picture, allowed=(0, 1, 2, 3) if square else (0, 2))
