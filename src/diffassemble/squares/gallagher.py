"""A. Gallagher, "Jigsaw Puzzles with Pieces of Unknown Orientation", CVPR 2012, and what other border solvers share.

The paper's steps: Mahalanobis gradient compatibility of all pairs of sides, divided by the second best (`edges`); a
constrained minimum spanning tree (`forest`); trimming to the frame; filling the holes.

Unlike there, only the best matches of each side are tried, a pair is divided by the second best of both its sides,
and scores near zero, of flat pieces, are kept from dividing each other. Where trees remain apart, the largest is
trimmed, and the others are filled in piece by piece.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from diffassemble.core import Board, Locks, Poses, Puzzle, Step, turn_matrix
from diffassemble.core.board import SIDES, WAYS, Placement
from diffassemble.core.solver import in_content_order
from diffassemble.core.thresholds import LIKELY
from diffassemble.squares.edge_model import Evidence
from diffassemble.squares.edges import DEFAULT as EDGES
from diffassemble.squares.edges import Borders, Partners, evidence, quality_evidence
from diffassemble.squares.energy import border_confidence
from diffassemble.squares.forest import Forest, held_by_frames, turned
from diffassemble.squares.placement import Uprighter, finish, touching_sides

Placing = Generator[Step, None, Placement]
"""steps on the way to a placement"""


@dataclass(frozen=True)
class BorderConfig:
    """Numbers that border solvers share."""

    matches: int = 40
    """partners of every side that are looked at"""
    fall: float = 5.0
    """matches weigh exp(−fall · ratio²), as in the program of Yu's authors; by the paper's 1 / ratio the many unclear
    ones would outweigh the clear ones"""
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
    """Compares borders, which don't determine which way is up: `upright` does; without it, wholes stay as found.

    After `budget` seconds no more matches are tried, and loose pieces are put into empty cells in their order.
    """

    budget: float = math.inf
    upright: Uprighter | None = None
    config: BorderConfig = DEFAULT

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield growing trees, then the final placement; independent of chance and of the order of the pieces."""
        until = time.monotonic() + self.budget
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, until))

    def _ordered_steps(self, puzzle: Puzzle, until: float) -> Iterator[Step]:
        found = Evidence(puzzle.pixels)
        placement = yield from self._placing(puzzle, found, until)
        yield from finish(puzzle, [(placement, border_confidence(puzzle, placement, found))], self.upright)

    def _placing(self, puzzle: Puzzle, found: Evidence, until: float) -> Placing:
        return self.place(puzzle, found.borders, found.borders.best(self.config.matches), until)

    def placed(self, puzzle: Puzzle, found: Evidence, until: float) -> Placement:
        """The placement alone, for pieces in a given order; `until` is when to stop, by the monotonic clock."""
        steps = self._placing(puzzle, found, until)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value

    @abstractmethod
    def place(self, puzzle: Puzzle, borders: Borders, partners: Partners, until: float) -> Placing:
        """Yield the steps on the way to a placement, and return that."""


@dataclass(frozen=True)
class SideMatches:
    """Pairs of sides; `ratio` is their score over that of the best rival of either side.

    Below 1, each side is the other's best choice; near 0, no rival is close. `weight` in [0, 1] falls with the ratio.
    """

    sides: Int64[np.ndarray, "m 2"]
    ratio: Float64[np.ndarray, "m"]
    config: BorderConfig = DEFAULT

    def __len__(self) -> int:
        return len(self.sides)

    @property
    def weight(self) -> Float64[np.ndarray, "m"]:
        return np.maximum(np.exp(-self.config.fall * self.ratio**2), self.config.least_weight)

    def __getitem__(self, index: np.ndarray) -> SideMatches:
        return replace(self, sides=self.sides[index], ratio=self.ratio[index])


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
        """The best match of every side among those that are possible (M of Yu 2015: how much better than all others).

        The last score of a list bounds the scores of all sides that are not in it.
        """
        if not self.side.size:
            return SideMatches(np.zeros((0, 2), np.int64), np.zeros(0), self.config)
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
        ratio = (best[own] + EDGES.softening) / (rival + EDGES.softening)
        once = ~mutual | (own < other)
        return SideMatches(np.stack([own, other], 1)[once], ratio[once].astype(np.float64), self.config)

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
    state = _Filling(board, cells.numpy().copy(), turns.numpy() % SIDES, borders)
    until = time.monotonic() + budget
    while state.waiting.any() and time.monotonic() < until:
        state.put(*state.best())
    rest = state.loose[state.waiting]
    state.cells[rest], state.turns[rest] = np.flatnonzero(state.empty)[: len(rest)], 0
    return torch.from_numpy(state.cells), torch.from_numpy(state.turns)


class _Filling:
    """A board that is being filled: what it would cost to put each loose piece at each turn into each empty cell."""

    def __init__(
        self, board: Board, cells: Int64[np.ndarray, "n"], turns: Int64[np.ndarray, "n"], borders: Borders
    ) -> None:
        self.board, self.cells, self.turns, self.borders = board, cells, turns, borders
        self.loose = np.flatnonzero(cells < 0)
        self.facing = borders[(SIDES * torch.from_numpy(self.loose)[:, None] + torch.arange(SIDES)).flatten()]
        self.waiting = np.ones(len(self.loose), bool)
        self.empty = np.ones(board.cells, bool)
        self.empty[cells[cells >= 0]] = False
        self.row_of = np.cumsum(self.empty) - 1
        self.cost = np.zeros((int(self.empty.sum()), len(self.loose), SIDES), np.float32)
        self.neighbours, self.choice = np.zeros((2, board.cells), np.int64)
        self.price = np.full(board.cells, np.inf)
        self._add_costs(np.flatnonzero(cells >= 0))

    def best(self) -> tuple[int, int]:
        """The next cell, and the place of its piece and turn in the flattened costs."""
        crowd = np.where(self.empty, self.neighbours, -1)
        if not crowd.max():  # the board is empty: the first piece, not turned
            return 0, 0
        candidates = np.flatnonzero(crowd == crowd.max())
        cell = int(candidates[self.price[candidates].argmin()])
        return cell, int(self.choice[cell])

    def put(self, cell: int, choice: int) -> None:
        """Put a loose piece down and update the costs of the others."""
        index, turn = divmod(choice, SIDES)
        piece = self.loose[index]
        self.cells[piece], self.turns[piece] = cell, turn
        self.empty[cell], self.waiting[index] = False, False
        self._add_costs(np.array([piece]))
        self._choose(np.flatnonzero(self.empty & (self.neighbours > 0) & (self.choice // SIDES == index)))

    def _add_costs(self, pieces: Int64[np.ndarray, "k"]) -> None:
        """Add the scores of the borders with these pieces to the costs of the empty cells around them."""
        way, piece = np.repeat(np.arange(SIDES), len(pieces)), np.tile(pieces, SIDES)
        row, col = np.divmod(self.cells[piece], self.board.cols)
        row, col = row + WAYS[way, 1], col + WAYS[way, 0]
        inside = (row >= 0) & (row < self.board.rows) & (col >= 0) & (col < self.board.cols)
        there = np.where(inside, row * self.board.cols + col, 0)
        open_ = inside & self.empty[there]
        there, way, piece = there[open_], way[open_], piece[open_]
        if len(there):
            shown = torch.from_numpy(SIDES * piece + (way - self.turns[piece]) % SIDES)
            by_side = self.borders[shown].against(self.facing).numpy().reshape(len(there), -1, SIDES)
            # Turned by t, a piece touches with the side that then faces back.
            touching = (way[:, None] + 2 - np.arange(SIDES)) % SIDES
            added = np.take_along_axis(by_side, np.broadcast_to(touching[:, None], by_side.shape), 2)
            np.add.at(self.cost, self.row_of[there], added)
            np.add.at(self.neighbours, there, 1)
            self._choose(np.unique(there))

    def _choose(self, cells: Int64[np.ndarray, "k"]) -> None:
        """The best waiting piece and turn for each of these cells."""
        if not self.waiting.any() or not len(cells):
            return
        costs = np.where(self.waiting[:, None], self.cost[self.row_of[cells]], np.inf).reshape(len(cells), -1)
        self.choice[cells] = costs.argmin(1)
        self.price[cells] = costs.min(1)


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

    If pieces are missing, an empty cell costs nothing, so that filling does not determine the frame: only one is tried.
    """
    config = candidates.config
    members, core = forest.largest, _core(forest, candidates)
    whole = len(forest.label) == board.cells
    places, weights = forest.place[members], np.where(np.isin(members, core), 1.0, config.loose)
    if whole and len(core) < board.cells:
        wanted, weight = _wanted(forest, core, borders, config)
        places, weights = np.concatenate([places, wanted]), np.concatenate([weights, weight])
    frames = best_frames(places, weights, board, config)
    return [
        RatedPlacement.of(board, *in_frame(forest, by, framed[: len(members)]), candidates)
        for held, by, framed in frames[: config.frames if whole else 1]
        if held >= config.frame_share * frames[0][0]
    ]


def in_frame(forest: Forest, by: int, framed: Int64[np.ndarray, "k"]) -> Placement:
    """The largest tree, turned as a whole, on these cells; the cells of all other pieces are −1."""
    members = forest.largest
    cells, turns = np.full(len(forest.label), -1), forest.turn.copy()
    cells[members], turns[members] = framed, (turns[members] + by) % SIDES
    return torch.from_numpy(cells), torch.from_numpy(turns)


def _core(forest: Forest, candidates: Candidates) -> Int64[np.ndarray, "k"]:
    """The largest part of the largest tree that is connected by likely borders."""
    members = forest.largest
    pairs = candidates.probable(LIKELY)
    pairs = pairs[np.isin(pairs // SIDES, members).all(1)]
    first, second = (pairs // SIDES).T
    turn, place = forest.turn, forest.place
    way = (turn[second] + pairs[:, 1]) % SIDES
    apart = place[first] - place[second]
    facing = (way + 2 - turn[first] - pairs[:, 0]) % SIDES == 0
    joined = facing & (apart == WAYS[way]).all(1)
    part = parts(first[joined], second[joined], len(turn))[members]
    return members[part == np.bincount(part).argmax()]


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


def best_frames(
    places: Int64[np.ndarray, "k 2"], weight: Float64[np.ndarray, "k"], board: Board, config: BorderConfig = DEFAULT
) -> list[tuple[float, int, Int64[np.ndarray, "k"]]]:
    """The best frames for pieces at these places: the weight each holds, its turn, the cells in it, or −1.

    The frame may be along the places or across them. Of frames that hold as much, those in the middle come first.
    """
    shape, found = (board.cols, board.rows), []
    for by in (0,) if board.oblong or board.rows == board.cols else (0, 1):
        place = turned(places, by)
        held = held_by_frames(place, weight, shape)
        corners = np.argwhere(np.isfinite(held))
        value = np.round(held.ravel(), 6)
        middle = corners[value == value.max()].mean(0)
        for index in np.lexsort((np.abs(corners - middle).sum(1), -value))[: config.frames]:
            col, row = (place - place.min(0) + np.array(shape) - corners[index]).T
            inside = (col >= 0) & (col < board.cols) & (row >= 0) & (row < board.rows)
            found.append((float(value[index]), by, np.where(inside, row * board.cols + col, -1)))
    return sorted(found, key=lambda frame: -frame[0])


def lay_out(forest: Forest, board: Board) -> Poses:
    """Every tree around the middle of the cells that its pieces would have if they were listed row by row."""
    start = board.centres()[: len(forest.label)]
    place = torch.from_numpy(forest.place) * board.pitch
    label = torch.from_numpy(forest.label)
    offset = torch.zeros_like(start).index_add(0, label, start - place)
    offset = offset / torch.from_numpy(forest.size)[:, None]
    return Poses(turn_matrix(torch.from_numpy(forest.turn)), place + offset[label])


@dataclass(frozen=True)
class GallagherSolver(BorderSolver):
    """Grows trees of pieces along the best matches of sides, trims the largest to the board and fills the holes."""

    name: str = "gallagher"

    def place(self, puzzle: Puzzle, borders: Borders, partners: Partners, until: float) -> Placing:
        """Yield the growing trees and the trimmed one."""
        # 1. Grow trees along the clearest matches.
        board, forest = puzzle.board, Forest.of(len(puzzle))
        yield Step(lay_out(forest, board), done=0.0)
        matches, tried = ranked_matches(partners).numpy(), 0
        joins = math.ceil(len(puzzle) / self.config.shown)
        while tried < len(matches) and forest.trees > 1 and time.monotonic() < until:
            tried = forest.grow(matches, tried, joins)
            yield Step(lay_out(forest, board), done=0.9 * (1 - (forest.trees - 1) / len(puzzle)))
        # 2. Trim the largest to the frame; pieces without a cell are shown where they were.
        cells, turns = trim_largest(forest, board)
        framed = Locks(cells >= 0, board.poses(cells, turns)).applied(lay_out(forest, board))
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


def trim_largest(forest: Forest, board: Board) -> Placement:
    """Trimming: the largest tree within the frame that holds most of its pieces; the cells of all others are −1."""
    place = forest.place[forest.largest]
    return in_frame(forest, *best_frames(place, np.ones(len(place)), board)[0][1:])
