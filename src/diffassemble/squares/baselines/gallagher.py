"""A. Gallagher, "Jigsaw Puzzles with Pieces of Unknown Orientation", CVPR 2012.

The paper's steps: Mahalanobis gradient compatibility of all pairs of sides (`compatibility.image`), divided by the
second best; a constrained minimum spanning tree (`spanning`); trimming to the frame; filling the holes (`filling`).

Unlike there, only the best matches of each side are tried, a pair is divided by the second best of both its sides,
and scores near zero, of flat pieces, are kept from dividing each other. Where trees remain apart, the largest is
trimmed, and the others are filled in piece by piece.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor

from diffassemble.core import Board, Poses, Puzzle, Step, turn_matrix
from diffassemble.core.solver import content_order
from diffassemble.squares.baselines.filling import fill_board, finish
from diffassemble.squares.edges import Borders, Partners
from diffassemble.squares.forest import Forest, turned
from diffassemble.squares.upright import Uprighter

_MATCHES = 40
_TRUSTED = 8
# Added to scores (true neighbours: near 1) before they are divided by each other.
_SOFTENING = 0.02
_SHOWN = 10


@dataclass(frozen=True)
class GallagherSolver:
    """Grows trees of pieces along the best matches of sides, trims the largest to the board and fills the holes.

    Borders can't tell which way is up: `upright` does; without it, the whole stays as it was assembled. After `budget`
    seconds no more matches are tried, and what is loose is put down as it comes.
    """

    budget: float = math.inf
    upright: Uprighter | None = None
    name: str = "gallagher"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the growing trees, the trimmed one, and the final placement; nothing is random.

        The answer does not depend on the order in which the pieces are listed.
        """
        until = time.monotonic() + self.budget
        order = content_order(puzzle.pieces.content)
        back = order.argsort()
        for step in self._ordered_steps(puzzle.reordered(order), until):
            yield Step(step.poses[back], step.done, None if step.confidence is None else step.confidence[back])

    def _ordered_steps(self, puzzle: Puzzle, until: float) -> Iterator[Step]:
        board, forest = puzzle.board, Forest.of(len(puzzle))
        yield Step(_lay_out(forest, board), done=0.0)
        borders = Borders.of(puzzle.pixels)
        partners = borders.best(_MATCHES)
        matches, tried = ranked_matches(partners).numpy(), 0
        joins = math.ceil(len(puzzle) / _SHOWN)
        while tried < len(matches) and forest.trees > 1 and time.monotonic() < until:
            tried = forest.grow(matches, tried, joins)
            yield Step(_lay_out(forest, board), done=0.9 * (1 - (forest.trees - 1) / len(puzzle)))
        cells, turns = trim(forest, board)
        yield Step(_framed(_lay_out(forest, board), board, cells, turns), done=0.9)
        cells, turns = fill_board(board, cells, turns, borders, until - time.monotonic())
        yield from finish(puzzle, cells, turns, partners.first(_TRUSTED), self.upright)


def ranked_matches(partners: Partners) -> Int[Tensor, "m 2"]:
    """Pairs of sides, the clearest first: by their score over the second best of either side, multiplied."""
    if not partners.side.numel():
        return torch.zeros(0, 2, dtype=torch.long)
    score = partners.score + _SOFTENING
    second = score[:, 1]
    ratio = score / second[:, None] * (score / second[partners.side])
    sides = torch.arange(len(score))[:, None].expand_as(partners.side)
    return torch.stack([sides.flatten(), partners.side.flatten()], 1)[ratio.flatten().argsort(stable=True)]


def trim(forest: Forest, board: Board) -> tuple[Int[Tensor, "n"], Int[Tensor, "n"]]:
    """Trimming: the largest tree within the frame that holds most of its pieces; the cells of all others are −1.

    The frame may lie along the tree or across it. Of frames that hold as many, one in the middle is taken.
    """
    members = forest.largest
    ways = (0,) if board.rows == board.cols else (0, 1)
    framed = [_best_frame(turned(forest.place[members], by), board) for by in ways]
    most = max(ways, key=lambda by: int((framed[by] >= 0).sum()))
    cells, turns = np.full(len(forest.label), -1), forest.turn.copy()
    cells[members], turns[members] = framed[most], (turns[members] + most) % 4
    return torch.from_numpy(cells), torch.from_numpy(turns)


def _best_frame(place: Int64[np.ndarray, "k 2"], board: Board) -> Int64[np.ndarray, "k"]:
    """The cells of the pieces at these places (x, y) within the best frame of the board's shape; −1 outside it."""
    shape = np.array([board.cols, board.rows])
    place = place - place.min(0) + shape  # room for a frame on either side
    taken = np.zeros(place.max(0) + shape + 1, np.int64)
    taken[place[:, 0] + 1, place[:, 1] + 1] = 1
    total = taken.cumsum(0).cumsum(1)
    wide = total[board.cols :] - total[: -board.cols]
    held = wide[:, board.rows :] - wide[:, : -board.rows]
    corners = np.argwhere(held == held.max())
    col, row = (place - corners[np.abs(corners - corners.mean(0)).sum(1).argmin()]).T
    inside = (col >= 0) & (col < board.cols) & (row >= 0) & (row < board.rows)
    return np.where(inside, row * board.cols + col, -1)


def _lay_out(forest: Forest, board: Board) -> Poses:
    """Every tree around the middle of the cells that its pieces had, listed row by row, before they were joined."""
    start = board.centres()[: len(forest.label)]
    label = torch.from_numpy(forest.label)
    place = torch.from_numpy(forest.place) * board.pitch
    return Poses(turn_matrix(torch.from_numpy(forest.turn)), place + _tree_mean(start - place, label))


def _tree_mean(values: Float[Tensor, "n 2"], label: Int[Tensor, "n"]) -> Float[Tensor, "n 2"]:
    total = torch.zeros_like(values).index_add(0, label, values)
    return total[label] / torch.bincount(label, minlength=len(label))[label, None]


def _framed(loose: Poses, board: Board, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"]) -> Poses:
    """Pieces that have a cell lie there, all others where they were."""
    placed, there = board.poses(cells, turns), cells >= 0
    return Poses(
        torch.where(there[:, None, None], placed.rotation, loose.rotation),
        torch.where(there[:, None], placed.translation, loose.translation),
    )
