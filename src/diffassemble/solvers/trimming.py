"""From a forest to a placement: the largest tree within the best frame, all other pieces filled in.

Where the frame could lie in several ways, all are tried, and the placement is taken whose borders fit best, as the
authors of Yu 2015 choose among their solutions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, Int, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from diffassemble.compatibility.image import SIDES, Borders
from diffassemble.puzzle import Board
from diffassemble.solvers.filling import fill_board
from diffassemble.solvers.finishing import touching_sides
from diffassemble.solvers.framing import WAYS, held_by_frames
from diffassemble.solvers.matches import Candidates
from diffassemble.solvers.spanning import Forest, turned

# Frames that hold less than this share of what the best one holds are not tried, nor more than so many.
_WORTH_TRYING = 0.75
_FRAMES = 6
# Pieces that hang on the tree by improbable matches only have this say in where the frame lies.
_LOOSE = 0.01
_PROBABLE = 0.5
# So much, for or against, does an empty cell count into which some piece fits, or none.
_WANTED = 0.3


@dataclass(frozen=True)
class Placement:
    """One piece a cell, or −1, and how well that fits: the probabilities of all borders that touch, added up."""

    cells: Int[Tensor, "n"]
    turns: Int[Tensor, "n"]
    worth: float

    @staticmethod
    def of(board: Board, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"], candidates: Candidates) -> Placement:
        """With its worth."""
        there = (cells >= 0).nonzero()[:, 0]
        first, second = touching_sides(board, cells[there], turns[there])
        first, second = (SIDES * there[sides // SIDES] + sides % SIDES for sides in (first, second))
        own = first.numpy()
        fits = np.where(candidates.side[own] == second.numpy()[:, None], candidates.probability[own], 0)
        return Placement(cells, turns, float(fits.sum()))


def place(trimmed: list[Placement], board: Board, candidates: Candidates, borders: Borders, until: float) -> Placement:
    """Fill the trimmed trees in turn, and take the best; `until` is when to stop, by the monotonic clock."""
    found: list[Placement] = []
    for tree in trimmed:
        filled = fill_board(board, tree.cells, tree.turns, borders, until - time.monotonic())
        found.append(Placement.of(board, *filled, candidates))
        if (tree.cells >= 0).all() or time.monotonic() > until:
            break
    return max(found, key=lambda placement: placement.worth)


def trim(forest: Forest, board: Board, candidates: Candidates, borders: Borders) -> list[Placement]:
    """The largest tree in each frame worth trying, that which holds most first; the cells of all else are −1.

    If pieces are missing, an empty cell costs nothing, so filling can't tell where the frame lies: only one is tried.
    """
    members, core = forest.largest, _core(forest, candidates)
    whole = len(forest.label) == board.cells
    places, weights = [forest.place[members]], [np.where(np.isin(members, core), 1.0, _LOOSE)]
    if whole and len(core) < board.cells:
        wanted, weight = _wanted(forest, core, borders)
        places, weights = [*places, wanted], [*weights, weight]
    place, weight = np.concatenate(places), np.concatenate(weights)
    ways = (0,) if board.rows == board.cols else (0, 1)
    frames = [frame for by in ways for frame in _frames(turned(place, by), weight, board, by)]
    frames.sort(key=lambda frame: -frame[0])
    found = []
    for held, by, framed in frames[: _FRAMES if whole else 1]:
        if held >= _WORTH_TRYING * frames[0][0]:
            cells, turns = np.full(len(forest.label), -1), forest.turn.copy()
            cells[members], turns[members] = framed[: len(members)], (turns[members] + by) % SIDES
            found.append(Placement.of(board, torch.from_numpy(cells), torch.from_numpy(turns), candidates))
    return found


def _core(forest: Forest, candidates: Candidates) -> Int64[np.ndarray, "k"]:
    """The largest part of the largest tree that hangs together by probable borders."""
    members = forest.largest
    pairs = candidates.probable(_PROBABLE)
    pairs = pairs[np.isin(pairs // SIDES, members).all(1)]
    first, second = (pairs // SIDES).T
    turn, place = forest.turn, forest.place
    way = (turn[second] + pairs[:, 1]) % SIDES
    apart = place[first] - place[second]
    facing = (way + 2 - turn[first] - pairs[:, 0]) % SIDES == 0
    joined = facing & (apart == WAYS[way]).all(1)
    links = coo_array((np.ones(joined.sum()), (first[joined], second[joined])), (len(turn), len(turn)))
    part = connected_components(links, directed=False)[1][members]
    return members[part == np.bincount(part).argmax()]


def _wanted(
    forest: Forest, core: Int64[np.ndarray, "k"], borders: Borders
) -> tuple[Int64[np.ndarray, "c 2"], Float64[np.ndarray, "c"]]:
    """Cells beside the core, and how much the frame should hold them: by whether a piece from outside fits there."""
    outside = np.setdiff1d(np.arange(len(forest.label)), core)
    sides = (SIDES * core[:, None] + np.arange(SIDES)).ravel()
    beside = forest.place[sides // SIDES] + WAYS[(sides + forest.turn[sides // SIDES]) % SIDES]
    taken = {tuple(place) for place in forest.place[core].tolist()}
    free = np.array([tuple(place) not in taken for place in beside.tolist()])
    answers = torch.from_numpy((SIDES * outside[:, None] + np.arange(SIDES)).ravel())
    best = borders[torch.from_numpy(sides[free])].against(borders[answers]).amin(1).double().numpy()
    return beside[free], _WANTED * (1 / (1 + (best / 2) ** 2) - 0.5)


def _frames(
    place: Int64[np.ndarray, "k 2"], weight: Float64[np.ndarray, "k"], board: Board, by: int
) -> list[tuple[float, int, Int64[np.ndarray, "k"]]]:
    """The best frames for pieces at these places: what each holds, and the pieces' cells in it, −1 outside.

    Of frames that hold as much, those in the middle come first.
    """
    shape = board.cols, board.rows
    held = held_by_frames(place, weight, shape)
    corners = np.argwhere(np.isfinite(held))
    value = np.round(held.ravel(), 6)
    middle = corners[value == value.max()].mean(0)
    order = np.lexsort((np.abs(corners - middle).sum(1), -value))[:_FRAMES]
    found = []
    for index in order:
        col, row = (place - place.min(0) + np.array(shape) - corners[index]).T
        inside = (col >= 0) & (col < board.cols) & (row >= 0) & (row < board.rows)
        found.append((float(value[index]), by, np.where(inside, row * board.cols + col, -1)))
    return found
