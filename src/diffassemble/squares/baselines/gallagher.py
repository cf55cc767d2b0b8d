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

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from diffassemble.core import Board, Locks, Puzzle, Step
from diffassemble.core.board import Placement
from diffassemble.squares.baselines.filling import BorderSolver, Placing, best_frames, fill_board, in_frame, lay_out
from diffassemble.squares.edges import Borders, Partners
from diffassemble.squares.forest import Forest

# Added to scores (true neighbours: near 1) before they are divided by each other.
_SOFTENING = 0.02
_SHOWN = 10


class GallagherSolver(BorderSolver):
    """Grows trees of pieces along the best matches of sides, trims the largest to the board and fills the holes."""

    name = "gallagher"

    def place(self, puzzle: Puzzle, borders: Borders, partners: Partners, until: float) -> Placing:
        """Yield the growing trees and the trimmed one."""
        board, forest = puzzle.board, Forest.of(len(puzzle))
        yield Step(lay_out(forest, board), done=0.0)
        matches, tried = ranked_matches(partners).numpy(), 0
        joins = math.ceil(len(puzzle) / _SHOWN)
        while tried < len(matches) and forest.trees > 1 and time.monotonic() < until:
            tried = forest.grow(matches, tried, joins)
            yield Step(lay_out(forest, board), done=0.9 * (1 - (forest.trees - 1) / len(puzzle)))
        cells, turns = trim(forest, board)
        # Pieces that have a cell lie there, all others where they were.
        framed = Locks(cells >= 0, board.poses(cells, turns)).applied(lay_out(forest, board))
        yield Step(framed, done=0.9)
        return fill_board(board, cells, turns, borders, until - time.monotonic())


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
    """Trimming: the largest tree within the frame that holds most of its pieces; the cells of all others are −1."""
    place = forest.place[forest.largest]
    return in_frame(forest, *best_frames(place, np.ones(len(place)), board)[0][1:])
