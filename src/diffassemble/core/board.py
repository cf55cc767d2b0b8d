"""The lattice of the pieces of a picture."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core.poses import Poses, nearest_turn, turn_matrix

# Sides of a square piece, numbered clockwise from the right: 0 right, 1 bottom, 2 left, 3 top.
SIDES = 4
# The step (x, y) from a cell to its neighbour on each side.
WAYS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])

Placement = tuple[Int[Tensor, "n"], Int[Tensor, "n"]]
"""The cell and the quarter turn of every piece."""


@dataclass(frozen=True)
class Board:
    """rows × cols cells, numbered row by row; its longer side spans [−1, 1], and the centre is the origin.

    `aspect` is height over width of pieces. Oblong ones fit at half turns only; their poses count cells, too.
    """

    rows: int
    cols: int
    aspect: float = field(default=1.0, compare=False)

    @property
    def cells(self) -> int:
        return self.rows * self.cols

    @property
    def oblong(self) -> bool:
        """Whether pieces are not square."""
        return self.aspect != 1

    @property
    def extent(self) -> float:
        """The longer side of the whole, in widths of a cell."""
        return float(max(self.rows * self.aspect, self.cols))

    @property
    def pitch(self) -> float:
        """Distance between the centres of neighbouring cells."""
        return 2 / max(self.rows, self.cols)

    def centres(self) -> Float[Tensor, "cells 2"]:
        """Centre (x, y) of every cell."""
        row, col = torch.meshgrid(torch.arange(self.rows), torch.arange(self.cols), indexing="ij")
        doubled = torch.stack([2 * col + 1 - self.cols, 2 * row + 1 - self.rows], -1).reshape(-1, 2)
        return doubled * (self.pitch / 2)

    def poses(self, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"]) -> Poses:
        """Poses of pieces on the given cells at the given quarter turns."""
        return Poses(turn_matrix(turns), self.centres()[cells])

    def snap(self, poses: Poses) -> tuple[Int[Tensor, "n"], Int[Tensor, "n"]]:
        """Nearest cell and quarter turn of each piece; several pieces may share a cell."""
        col, row = (poses.translation / self.pitch).unbind(-1)
        col = (col + (self.cols - 1) / 2).round().clamp(0, self.cols - 1).long()
        row = (row + (self.rows - 1) / 2).round().clamp(0, self.rows - 1).long()
        return row * self.cols + col, self.nearest_turns(poses)

    def nearest_turns(self, poses: Poses) -> Int[Tensor, "n"]:
        """The quarter turn nearest to each pose at which a piece fits a cell."""
        if self.oblong:
            return torch.where(poses.rotation.diagonal(dim1=1, dim2=2).sum(1) < 0, 2, 0)
        return nearest_turn(poses.rotation)

    def turned(
        self, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"], by: int
    ) -> tuple[Board, Int[Tensor, "n"], Int[Tensor, "n"]]:
        """The same placement after turning the whole board clockwise: the new board, cells and turns."""
        board, row, col = self, cells // self.cols, cells % self.cols
        for _ in range(by % 4):
            row, col = col, board.rows - 1 - row
            board = replace(board, rows=board.cols, cols=board.rows)
        return board, row * board.cols + col, (turns + by) % 4

    def fitting_turns(self) -> tuple[int, ...]:
        """The quarter turns after which a whole still fits this board."""
        return self.piece_turns() if self.rows == self.cols else (0, 2)

    def piece_turns(self) -> tuple[int, ...]:
        """The quarter turns at which a piece fits a cell."""
        return (0, 2) if self.oblong else (0, 1, 2, 3)
