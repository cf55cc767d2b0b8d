"""A. Gallagher, "Jigsaw Puzzles with Pieces of Unknown Orientation", CVPR 2012, and what other border solvers share.

The paper's steps: Mahalanobis gradient compatibility of all pairs of sides, divided by the second best (`edges`); a
constrained minimum spanning tree (`forest`); trimming to the frame; filling the holes. Unlike there, only the best
matches of each side are tried, a pair is divided by the second best of both its sides, and scores are softened. Where
trees remain apart, the largest is trimmed, and the others are filled in piece by piece.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from diffassemble.core import Board, Locks, Puzzle, Step
from diffassemble.core.board import SIDES, WAYS, Placement
from diffassemble.core.solver import in_content_order
from diffassemble.core.thresholds import LIKELY
from diffassemble.squares.edges import EDGES, Borders, Evidence, Partners, evidence, quality_evidence
from diffassemble.squares.energy import border_confidence
from diffassemble.squares.forest import Forest, best_frames
from diffassemble.squares.placement import Uprighter, finish, touching_sides

Placing = Generator[Step, None, Placement]
"""steps on the way to a placement"""


@dataclass(frozen=True)
class BorderConfig:
    """Numbers that border solvers share."""

    matches: int = 40
    """partners of every side that are considered"""
    fall: float = 5.0
    """matches weigh exp(−fall · ratio²); with the paper's 1 / ratio unclear ones would outweigh the clear ones"""
    least_weight: float = 1e-3
    """least weight of a match"""
    frames: int = 6
    """most frames that are tried"""
    frame_share: float = 0.75
    """share of what the best frame holds that another must hold to be tried"""
    loose: float = 0.01
    """weight, for the place of the frame, of pieces that are joined to the tree by improbable matches only"""
    wanted: float = 0.3
    """range of the weight of an empty cell, from none of the outer pieces fitting there to one fitting perfectly"""
    shown: int = 10
    """steps in which a growing forest is shown"""


DEFAULT = BorderConfig()
_POSSIBLE = float(np.nextafter(np.float32(0), np.float32(1)))


@dataclass(frozen=True)
class BorderSolver(ABC):
    """A solver that compares borders, for `budget` seconds; `upright` turns its whole."""

    budget: float = math.inf
    upright: Uprighter | None = None
    config: BorderConfig = DEFAULT

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield growing trees, then the final placement; independent of chance and of the order of the pieces."""
        until = time.monotonic() + self.budget
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, until))

    def _ordered_steps(self, puzzle: Puzzle, until: float) -> Iterator[Step]:
        found = Evidence(puzzle.pixels)
        placement = yield from self.place(puzzle, found.borders, found.borders.best(self.config.matches), until)
        yield from finish(puzzle, [(placement, border_confidence(puzzle, placement, found))], self.upright)

    def placed(self, puzzle: Puzzle, found: Evidence, until: float) -> Placement:
        """The placement alone, for pieces in a given order; `until` is when to stop, by the monotonic clock."""
        steps = self.place(puzzle, found.borders, found.borders.best(self.config.matches), until)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value

    @abstractmethod
    def place(self, puzzle: Puzzle, borders: Borders, partners: Partners, until: float) -> Placing:
        """Yield the steps on the way to a placement, and return that."""


class SideMatches(NamedTuple):
    """Pairs of sides, their `weight` in [0, 1], and `ratio`: their score over that of the best rival of either side.

    Below 1, each side is the other's best choice; near 0, no rival is close. The weight falls with the ratio.
    """

    sides: Int64[np.ndarray, "m 2"]
    ratio: Float64[np.ndarray, "m"]
    weight: Float64[np.ndarray, "m"]

    def chosen(self, index: np.ndarray) -> SideMatches:
        """Some of them."""
        return SideMatches(*(part[index] for part in self))


@dataclass(frozen=True)
class Candidates:
    """The best partners of every side, best first, and how probable it is that the two are neighbours."""

    side: Int64[np.ndarray, "sides keep"]
    score: Float32[np.ndarray, "sides keep"]
    probability: Float32[np.ndarray, "sides keep"]
    config: BorderConfig = DEFAULT

    @staticmethod
    def of(partners: Partners, config: BorderConfig = DEFAULT) -> Candidates:
        """As arrays; a lone piece has no candidates."""
        return Candidates(partners.side.numpy(), partners.score.numpy(), evidence(partners)[..., 0].numpy(), config)

    @property
    def pairs(self) -> Int64[np.ndarray, "sides keep 2"]:
        """Every side with each of its partners."""
        own = np.broadcast_to(np.arange(len(self.side))[:, None], self.side.shape)
        return np.stack([own, self.side], -1)

    def probable(self, least: float = _POSSIBLE) -> Int64[np.ndarray, "m 2"]:
        """All pairs at least so probable, the most probable first."""
        order = np.argsort(-self.probability, axis=None, kind="stable")
        chosen = order[self.probability.ravel()[order] >= least]
        return self.pairs.reshape(-1, 2)[chosen]

    def best(self, possible: Bool[np.ndarray, "sides keep"]) -> SideMatches:
        """The best match of every side among those that are possible, with the ratio M of Yu 2015."""
        if not self.side.size:
            return SideMatches(np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(0))
        every = np.arange(len(self.side))
        left = possible.copy()
        first, best = self._next(left)
        left[every, first] = False
        _, second = self._next(left)
        some = np.asarray(possible.any(1))
        own = np.flatnonzero(some)
        other = self.side[own, first[own]]
        mutual = (self.side[other, first[other]] == own) & some[other]
        rival = np.minimum(second[own], np.where(mutual, second[other], best[other]))
        once = ~mutual | (own < other)
        ratio = ((best[own] + EDGES.softening) / (rival + EDGES.softening))[once].astype(np.float64)
        weight = np.maximum(np.exp(-self.config.fall * ratio**2), self.config.least_weight)
        return SideMatches(np.stack([own, other], 1)[once], ratio, weight)

    def _next(self, possible: Bool[np.ndarray, "sides keep"]) -> tuple[np.ndarray, np.ndarray]:
        """Index of each side's first possible partner in its list, and its score; without any, the last score."""
        place = possible.argmax(1)
        score = self.score[np.arange(len(self.side)), np.where(possible.any(1), place, self.side.shape[1] - 1)]
        return place, score


def turn_between(sides: Int64[np.ndarray, "*m 2"]) -> Int64[np.ndarray, "*m"]:
    """By how many quarter turns the first piece is turned against the second when these sides touch."""
    return (sides[..., 1] + 2 - sides[..., 0]) % SIDES


def on_cycles(first: Int64[np.ndarray, "m"], second: Int64[np.ndarray, "m"]) -> Bool[np.ndarray, "m"]:
    """Which edges of a graph are on a cycle: all that are no bridges."""
    import networkx  # takes long to import, and only one solver needs it

    edges = list(zip(first.tolist(), second.tolist(), strict=True))
    bridges = {frozenset(edge) for edge in networkx.bridges(networkx.MultiGraph(edges))}
    return np.array([frozenset(edge) not in bridges for edge in edges], bool)


def fill_board(
    board: Board, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"], borders: Borders, budget: float = math.inf
) -> Placement:
    """Give every loose piece an empty cell and a turn, one after the other.

    Always next is a cell with as many neighbours as any empty one has, and of all these cells, loose pieces and turns
    those whose borders fit best. After `budget` seconds the remaining pieces go into empty cells in their order.
    """
    cell_of, turn_of, until = cells.numpy().copy(), turns.numpy() % SIDES, time.monotonic() + budget
    loose, empty = np.flatnonzero(cell_of < 0), np.ones(board.cells, bool)
    empty[cell_of[cell_of >= 0]] = False
    facing = borders[(SIDES * torch.from_numpy(loose)[:, None] + torch.arange(SIDES)).flatten()]
    waiting, row_of = np.ones(len(loose), bool), np.cumsum(empty) - 1
    cost = np.zeros((int(empty.sum()), len(loose), SIDES), np.float32)  # of each piece and turn in each empty cell
    neighbours = np.zeros(board.cells, np.int64)
    added = np.flatnonzero(cell_of >= 0)
    while True:
        # 1. Add the scores of the borders with new pieces to the costs of the empty cells around them.
        way, piece = np.repeat(np.arange(SIDES), len(added)), np.tile(added, SIDES)
        row, col = np.divmod(cell_of[piece], board.cols)
        row, col = row + WAYS[way, 1], col + WAYS[way, 0]
        inside = (row >= 0) & (row < board.rows) & (col >= 0) & (col < board.cols)
        there = np.where(inside, row * board.cols + col, 0)
        free = inside & empty[there]
        there, way, piece = there[free], way[free], piece[free]
        if len(there) and len(loose):
            shown = torch.from_numpy(SIDES * piece + (way - turn_of[piece]) % SIDES)
            by_side = borders[shown].against(facing).numpy().reshape(len(there), -1, SIDES)
            # Turned by t, a piece touches with the side that then faces back.
            touching = (way[:, None] + 2 - np.arange(SIDES)) % SIDES
            scores = np.take_along_axis(by_side, np.broadcast_to(touching[:, None], by_side.shape), 2)
            np.add.at(cost, row_of[there], scores)
            np.add.at(neighbours, there, 1)
        if not waiting.any() or time.monotonic() >= until:
            break
        # 2. Choose the next cell, piece and turn; on an empty board the first piece, not turned.
        crowd = np.where(empty, neighbours, -1)
        cell, choice = 0, 0
        if crowd.max():
            open_ = np.flatnonzero(crowd == crowd.max())
            costs = np.where(waiting[:, None], cost[row_of[open_]], np.inf).reshape(len(open_), -1)
            best = costs.min(1).argmin()
            cell, choice = int(open_[best]), int(costs[best].argmin())
        # 3. Put it down.
        index, turn = divmod(choice, SIDES)
        added = loose[index : index + 1]
        cell_of[added], turn_of[added] = cell, turn
        empty[cell], waiting[index] = False, False
    rest = loose[waiting]
    cell_of[rest], turn_of[rest] = np.flatnonzero(empty)[: len(rest)], 0
    return torch.from_numpy(cell_of), torch.from_numpy(turn_of)


@dataclass(frozen=True)
class RatedPlacement:
    """One piece a cell, or −1, and `fit`: the sum of the probabilities of all borders that touch."""

    cells: Int[Tensor, "n"]
    turns: Int[Tensor, "n"]
    fit: float

    @staticmethod
    def of(board: Board, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"], candidates: Candidates) -> RatedPlacement:
        """With its fit."""
        there = (cells >= 0).nonzero()[:, 0]
        first, second = touching_sides(board, cells[there], turns[there])
        first, second = (SIDES * there[sides // SIDES] + sides % SIDES for sides in (first, second))
        own = first.numpy()
        fits = np.where(candidates.side[own] == second.numpy()[:, None], candidates.probability[own], 0)
        return RatedPlacement(cells, turns, float(fits.sum()))


def place(
    trimmed: list[RatedPlacement], board: Board, candidates: Candidates, borders: Borders, until: float
) -> RatedPlacement:
    """Fill the trimmed trees in turn and take the best; `until` is when to stop, by the monotonic clock."""
    found: list[RatedPlacement] = []
    for tree in trimmed:
        filled = fill_board(board, tree.cells, tree.turns, borders, until - time.monotonic())
        found.append(RatedPlacement.of(board, *filled, candidates))
        if (tree.cells >= 0).all() or time.monotonic() > until:
            break
    return max(found, key=lambda placement: placement.fit)


def trim(forest: Forest, board: Board, candidates: Candidates, borders: Borders) -> list[RatedPlacement]:
    """The largest tree in each frame worth trying, the one which holds most first; the cells of all else are −1.

    Its core, connected by likely borders, counts most for the frame, and cells beside it count by how well a piece from
    outside fits. If pieces are missing, an empty cell costs nothing, so that only one frame is tried.
    """
    config, members = candidates.config, forest.largest
    # 1. The core: the largest part of the tree that is connected by likely borders.
    pairs = candidates.probable(LIKELY)
    pairs = pairs[np.isin(pairs // SIDES, members).all(1)]
    first, second = (pairs // SIDES).T
    way = (forest.turn[second] + pairs[:, 1]) % SIDES
    facing = (way + 2 - forest.turn[first] - pairs[:, 0]) % SIDES == 0
    joined = facing & (forest.place[first] - forest.place[second] == WAYS[way]).all(1)
    part = parts(first[joined], second[joined], len(forest.label))[members]
    core = members[part == np.bincount(part).argmax()]
    # 2. The weight of every place.
    whole = len(forest.label) == board.cells
    places, weights = forest.place[members], np.where(np.isin(members, core), 1.0, config.loose)
    if whole and len(core) < board.cells:
        wanted, weight = _wanted(forest, core, borders, config)
        places, weights = np.concatenate([places, wanted]), np.concatenate([weights, weight])
    # 3. The frames that hold most.
    frames = best_frames(places, weights, board, config.frames)
    return [
        RatedPlacement.of(board, *forest.in_frame(by, framed[: len(members)]), candidates)
        for held, by, framed in frames[: config.frames if whole else 1]
        if held >= config.frame_share * frames[0][0]
    ]


def parts(first: Int64[np.ndarray, "m"], second: Int64[np.ndarray, "m"], count: int) -> Int64[np.ndarray, "n"]:
    """The connected component of each vertex of a graph."""
    links = coo_array((np.ones(len(first)), (first, second)), (count, count))
    return connected_components(links, directed=False)[1].astype(np.int64)


def _wanted(
    forest: Forest, core: Int64[np.ndarray, "k"], borders: Borders, config: BorderConfig
) -> tuple[Int64[np.ndarray, "c 2"], Float64[np.ndarray, "c"]]:
    """Cells beside the core, and their weights for the frame: positive where a piece from outside fits."""
    outside = np.setdiff1d(np.arange(len(forest.label)), core)
    sides = (SIDES * core[:, None] + np.arange(SIDES)).ravel()
    beside = forest.place[sides // SIDES] + WAYS[(sides + forest.turn[sides // SIDES]) % SIDES]
    taken = {tuple(place) for place in forest.place[core].tolist()}
    free = np.array([tuple(place) not in taken for place in beside.tolist()])
    facing = torch.from_numpy((SIDES * outside[:, None] + np.arange(SIDES)).ravel())
    best = borders[torch.from_numpy(sides[free])].against(borders[facing]).amin(1).double()
    return beside[free], config.wanted * (quality_evidence(best).numpy() - 0.5)


@dataclass(frozen=True)
class GallagherSolver(BorderSolver):
    """Grows trees of pieces along the best matches of sides, trims the largest to the board and fills the holes."""

    name: str = "gallagher"

    def place(self, puzzle: Puzzle, borders: Borders, partners: Partners, until: float) -> Placing:
        """Yield the growing trees and the trimmed one."""
        # 1. Grow trees along the clearest matches.
        board, forest = puzzle.board, Forest.of(len(puzzle))
        yield Step(forest.layout(board), done=0.0)
        matches, tried = ranked_matches(partners).numpy(), 0
        joins = math.ceil(len(puzzle) / self.config.shown)
        while tried < len(matches) and forest.trees > 1 and time.monotonic() < until:
            tried += forest.join(matches[tried:], joins)[0]
            yield Step(forest.layout(board), done=0.9 * (1 - (forest.trees - 1) / len(puzzle)))
        # 2. Trim the largest to the frame; pieces without a cell are shown where they were.
        cells, turns = forest.trimmed(board)
        framed = Locks(cells >= 0, board.poses(cells, turns)).applied(forest.layout(board))
        yield Step(framed, done=0.9)
        # 3. Fill the holes.
        return fill_board(board, cells, turns, borders, until - time.monotonic())


def ranked_matches(partners: Partners) -> Int[Tensor, "m 2"]:
    """Pairs of sides, the clearest first: by the product of their ratios to the second best of either side."""
    if not partners.side.numel():
        return torch.zeros(0, 2, dtype=torch.long)
    score = partners.score + EDGES.softening
    second = score[:, 1]
    ratio = score / second[:, None] * (score / second[partners.side])
    sides = torch.arange(len(score))[:, None].expand_as(partners.side)
    return torch.stack([sides.flatten(), partners.side.flatten()], 1)[ratio.flatten().argsort(stable=True)]
