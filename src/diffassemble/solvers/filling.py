"""Loose pieces into the empty cells: the last step of border solvers (Gallagher 2012, "Filling").

    fill_board(board, cells, turns, borders, budget=inf) -> (cells, turns)

`cells` of loose pieces are −1, and their `turns` are not looked at; pieces that have a cell stay as they are, one a
cell. `borders` is `Borders.of(pixels)` of the same pieces in the same order. Every piece gets a cell of its own.
"""

from __future__ import annotations

import math
import time

import numpy as np
import torch
from jaxtyping import Int, Int64
from torch import Tensor

from diffassemble.compatibility.image import SIDES, Borders
from diffassemble.puzzle import Board

# Where a neighbour stands, as (row, col): right, below, left, above. A piece turned by t shows side a to the way a + t.
WAYS = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])


def fill_board(
    board: Board, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"], borders: Borders, budget: float = math.inf
) -> tuple[Int[Tensor, "n"], Int[Tensor, "n"]]:
    """Give every loose piece an empty cell and a turn, one after the other.

    Next comes always a cell with as many neighbours as any empty one has, and of all these cells, loose pieces and
    turns those whose borders fit best. After `budget` seconds the rest is put down as it comes.
    """
    state = _Filling(board, cells.numpy().copy(), turns.numpy() % SIDES, borders)
    until = time.monotonic() + budget
    while state.waiting.any() and time.monotonic() < until:
        state.put(*state.best())
    state.put_rest()
    return torch.from_numpy(state.cells), torch.from_numpy(state.turns)


class _Filling:
    """A board that is being filled: what it would cost to put each loose piece at each turn into each empty cell."""

    def __init__(
        self, board: Board, cells: Int64[np.ndarray, "n"], turns: Int64[np.ndarray, "n"], borders: Borders
    ) -> None:
        self.board, self.cells, self.turns, self.borders = board, cells, turns, borders
        self.loose = np.flatnonzero(cells < 0)
        self.answers = borders[(SIDES * torch.from_numpy(self.loose)[:, None] + torch.arange(SIDES)).flatten()]
        self.waiting = np.ones(len(self.loose), bool)
        self.empty = np.ones(board.cells, bool)
        self.empty[cells[cells >= 0]] = False
        self.row_of = np.cumsum(self.empty) - 1
        shape = int(self.empty.sum()), len(self.loose), SIDES
        self.cost = np.zeros(shape, np.float32)
        self.neighbours = np.zeros(board.cells, np.int64)
        self.choice = np.zeros(board.cells, np.int64)
        self.price = np.full(board.cells, np.inf)
        self._look_around(np.flatnonzero(cells >= 0))

    def best(self) -> tuple[int, int]:
        """The next cell, and the place of its piece and turn in the flattened costs."""
        crowd = np.where(self.empty, self.neighbours, -1)
        if not crowd.max():  # the board is bare: the first piece as it lies
            return 0, 0
        candidates = np.flatnonzero(crowd == crowd.max())
        cell = int(candidates[self.price[candidates].argmin()])
        return cell, int(self.choice[cell])

    def put(self, cell: int, choice: int) -> None:
        """Put a loose piece down and see what that means for the others."""
        index, turn = divmod(choice, SIDES)
        piece = self.loose[index]
        self.cells[piece], self.turns[piece] = cell, turn
        self.empty[cell], self.waiting[index] = False, False
        self._look_around(np.array([piece]))
        self._choose(np.flatnonzero(self.empty & (self.neighbours > 0) & (self.choice // SIDES == index)))

    def put_rest(self) -> None:
        """Put all pieces that still wait, as they lie, into the first empty cells."""
        rest = self.loose[self.waiting]
        self.cells[rest], self.turns[rest] = np.flatnonzero(self.empty)[: len(rest)], 0

    def _look_around(self, pieces: Int64[np.ndarray, "k"]) -> None:
        """Add to the empty cells around these pieces what it costs to lie beside them."""
        there, way, shown = self._open_sides(pieces)
        if len(there):
            scores = self.borders[torch.from_numpy(shown)].against(self.answers).numpy()
            # Turned by t, a piece answers with the side that then faces back.
            answering = (way[:, None] + 2 - np.arange(SIDES)) % SIDES
            by_side = scores.reshape(len(there), -1, SIDES)
            added = np.take_along_axis(by_side, np.broadcast_to(answering[:, None], by_side.shape), 2)
            np.add.at(self.cost, self.row_of[there], added)
            np.add.at(self.neighbours, there, 1)
            self._choose(np.unique(there))

    def _open_sides(self, pieces: Int64[np.ndarray, "k"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The empty cells beside these pieces, which way they lie, and the sides that are shown to them."""
        way = np.repeat(np.arange(SIDES), len(pieces))
        piece = np.tile(pieces, SIDES)
        row, col = np.divmod(self.cells[piece], self.board.cols)
        row, col = row + WAYS[way, 0], col + WAYS[way, 1]
        inside = (row >= 0) & (row < self.board.rows) & (col >= 0) & (col < self.board.cols)
        there = np.where(inside, row * self.board.cols + col, 0)
        open_ = inside & self.empty[there]
        shown = SIDES * piece + (way - self.turns[piece]) % SIDES
        return there[open_], way[open_], shown[open_]

    def _choose(self, cells: Int64[np.ndarray, "k"]) -> None:
        """The best waiting piece and turn for each of these cells."""
        if not self.waiting.any() or not len(cells):
            return
        costs = np.where(self.waiting[:, None], self.cost[self.row_of[cells]], np.inf).reshape(len(cells), -1)
        self.choice[cells] = costs.argmin(1)
        self.price[cells] = costs.min(1)
