"""A. Gallagher, "Jigsaw Puzzles with Pieces of Unknown Orientation", CVPR 2012.

The paper's steps: Mahalanobis gradient compatibility of all pairs of sides, divided by the
second best; a constrained minimum spanning tree (`forest`); trimming to the frame; filling the holes (`filling`).

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
from jaxtyping import Int, Int64
from torch import Tensor

from diffassemble.core import Board, Poses, Puzzle, Step
from diffassemble.core.board import Placement
from diffassemble.core.solver import in_content_order
from diffassemble.squares.baselines.filling import border_confidence, fill_board, lay_out
from diffassemble.squares.edge_model import Evidence
from diffassemble.squares.edges import Partners
from diffassemble.squares.forest import Forest, turned
from diffassemble.squares.placement import finish
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
        return in_content_order(
            puzzle, lambda ordered: border_steps(ordered, Evidence.of(ordered.pixels), until, self.upright)
        )


def border_steps(puzzle: Puzzle, evidence: Evidence, until: float, upright: Uprighter | None = None) -> Iterator[Step]:
    """The steps of the solver for pieces in a given order; `until` is when to stop, by the monotonic clock."""
    board, forest = puzzle.board, Forest.of(len(puzzle))
    yield Step(lay_out(forest, board), done=0.0)
    partners = evidence.borders.best(_MATCHES)
    matches, tried = ranked_matches(partners).numpy(), 0
    joins = math.ceil(len(puzzle) / _SHOWN)
    while tried < len(matches) and forest.trees > 1 and time.monotonic() < until:
        tried = forest.grow(matches, tried, joins)
        yield Step(lay_out(forest, board), done=0.9 * (1 - (forest.trees - 1) / len(puzzle)))
    cells, turns = trim(forest, board)
    yield Step(_framed(lay_out(forest, board), board, cells, turns), done=0.9)
    placement = fill_board(board, cells, turns, evidence.borders, until - time.monotonic())
    yield from finish(puzzle, [(placement, border_confidence(board, *placement, partners.first(_TRUSTED)))], upright)


def ranked_matches(partners: Partners) -> Int[Tensor, "m 2"]:
    """Pairs of sides, the clearest first: by their score over the second best of either side, multiplied."""
    if not partners.side.numel():
        return torch.zeros(0, 2, dtype=torch.long)
    score = partners.score + _SOFTENING
    second = score[:, 1]
    ratio = score / second[:, None] * (score / second[partners.side])
    sides = torch.arange(len(score))[:, None].expand_as(partners.side)
    return torch.stack([sides.flatten(), partners.side.flatten()], 1)[ratio.flatten().argsort(stable=True)]


def trim(forest: Forest, board: Board) -> Placement:
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


def _framed(loose: Poses, board: Board, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"]) -> Poses:
    """Pieces that have a cell lie there, all others where they were."""
    placed, there = board.poses(cells, turns), cells >= 0
    return Poses(
        torch.where(there[:, None, None], placed.rotation, loose.rotation),
        torch.where(there[:, None], placed.translation, loose.translation),
    )
