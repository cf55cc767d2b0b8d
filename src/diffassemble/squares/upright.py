"""Which way is up, asked of the picture that a placement makes on its board."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Poses, Puzzle, turn_pixels
from diffassemble.network.upright import Upright, upright_turn

Uprighter = Callable[..., tuple[int, float]]
"""Of a puzzle, the poses of its pieces and the turns allowed: by how many clockwise quarter turns the placement must be
turned as a whole to be upright, and how probable that is; a fourth argument is who may be asked besides."""


def assembled_pixels(puzzle: Puzzle, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"]) -> Float[Tensor, "3 H W"]:
    """The picture that a placement makes; NaN in empty cells."""
    board, height, width = puzzle.board, puzzle.pictures.height, puzzle.pictures.width
    canvas = torch.full((board.cells, 3, height, width), torch.nan)
    canvas[cells] = turn_pixels(puzzle.pixels, turns)
    grid = canvas.view(board.rows, board.cols, 3, height, width).permute(2, 0, 3, 1, 4)
    return grid.reshape(3, board.rows * height, board.cols * width)


def turn_to_upright(
    model: Upright,
    puzzle: Puzzle,
    placed: Poses,
    allowed: tuple[int, ...],
    more: Callable[[], Sequence[float]] | None = None,
) -> tuple[int, float]:
    """An `Uprighter`, once the network is given: it looks at the assembled picture."""
    return upright_turn(model, assembled_pixels(puzzle, *puzzle.board.snap(placed)), allowed, more)
