"""A. Gallagher, "Jigsaw Puzzles with Pieces of Unknown Orientation", CVPR 2012, and what other border solvers share.

The paper's steps: Mahalanobis gradient compatibility (`edges`); a constrained minimum spanning tree; trimming to the
frame; filling the holes. Unlike there, only the best matches of each side are tried, a pair is divided by the second
best of both its sides, and scores are softened. In the frame of its tree, each piece has a place (x right, y down, in
cells) and a turn.
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

from diffassemble.assembly.forest import FREE, join
from diffassemble.core import Board, Locks, Poses, Puzzle, Step, turn_matrix
from diffassemble.core.board import SIDES, WAYS, Placement
from diffassemble.core.solver import in_content_order
from diffassemble.core.thresholds import LIKELY
from diffassemble.squares.edges import EDGES, Borders, Evidence, Partners, evidence, quality_evidence
from diffassemble.squares.energy import border_confidence
from diffassemble.squares.placement import Uprighter, finish, touching_sides

QUARTERS = turn_matrix(torch.arange(SIDES)).long().numpy()
"""the rotations by whole quarter turns"""


def _in_space(turns: Int64[np.ndarray, "n"], places: Int64[np.ndarray, "n 2"]) -> Float64[np.ndarray, "n 3 4"]:
    poses = np.tile(np.eye(3, 4), (len(turns), 1, 1))
    poses[:, :2, :2], poses[:, :2, 3] = QUARTERS[turns], places
    return poses


_OWN, _OTHER = np.divmod(np.arange(SIDES**2), SIDES)
# The pose of a piece relative to another whose side a touches its side b: number 4·a + b.
_BESIDE = _in_space((_OWN + 2 - _OTHER) % SIDES, WAYS[_OWN])


@dataclass(frozen=True)
class Forest:
    """Pieces in trees, changed in place as they grow; pieces with the same `label` are in one tree.

    `frame` is the pose of each in its tree. With a board, trees reach beyond its frame with a few of their pieces only;
    `held` is how many pieces of the tree with this label the best frame holds. The others are as in `forest.join`.
    """

    label: Int64[np.ndarray, "n"]
    following: Int64[np.ndarray, "n"]
    size: Int64[np.ndarray, "n"]
    frame: Float64[np.ndarray, "n 3 4"]
    lookup: Int64[np.ndarray, "h"]
    held: Int64[np.ndarray, "k"]
    board: Board | None = None

    @staticmethod
    def of(count: int, turns: Int64[np.ndarray, "n"] | int = 0, board: Board | None = None) -> Forest:
        """Every piece a tree of its own, turned by `turns`."""
        # The smaller tree moves, so a piece moves at most log2(n) times, and each time takes one more entry.
        entries = count * (count.bit_length() + 1)
        lookup = np.full(1 << (2 * entries).bit_length(), FREE, np.int64)
        frame = _in_space(np.broadcast_to(turns, count), np.zeros((count, 2), np.int64))
        held = np.ones(0 if board is None else count, np.int64)
        return Forest(np.arange(count), np.arange(count), np.ones(count, np.int64), frame, lookup, held, board)

    @property
    def place(self) -> Int64[np.ndarray, "n 2"]:
        """The place of each piece in its tree."""
        return self.frame[:, :2, 3].astype(np.int64)

    @property
    def turn(self) -> Int64[np.ndarray, "n"]:
        """The quarter turns of each piece in its tree."""
        cosine, sine = self.frame[:, 0, 0].astype(np.int64), self.frame[:, 1, 0].astype(np.int64)
        return np.where(sine == 0, 1 - cosine, 2 - sine)

    @property
    def trees(self) -> int:
        """Their number."""
        return len(np.unique(self.label))

    @property
    def largest(self) -> Int64[np.ndarray, "k"]:
        """The pieces of the largest tree."""
        return np.flatnonzero(self.label == self.label[self.size[self.label].argmax()])

    def join(self, sides: Int64[np.ndarray, "m 2"], joins: int | None = None) -> tuple[int, Bool[np.ndarray, "m"]]:
        """Join trees along matches, one after the other; how many were tried until so many joins, and which refused.

        A match is refused if two pieces would share a cell, or, with a board, if the best frame would hold no more than
        half of the smaller tree's pieces.
        """
        refused, any_distance, any_box = np.zeros(len(sides), np.bool_), np.zeros(0), np.zeros((0, 3))
        along = np.ascontiguousarray(sides), _BESIDE, len(sides) if joins is None else joins, refused
        trees = self.label, self.following, self.size, self.frame
        shape = (0, 0) if self.board is None else (self.board.rows, self.board.cols)
        return int(join(*along, *trees, any_distance, any_box, self.lookup, self.held, *shape)), refused

    def open_sides(self) -> Bool[np.ndarray, "sides"]:
        """Which sides face a cell that their own tree leaves free."""
        way = (self.turn[:, None] + np.arange(SIDES)) % SIDES
        place = self.place
        beside = place[:, None] + WAYS[way]
        span = 2 * len(self.label) + 3
        taken = (self.label * span + place[:, 0]) * span + place[:, 1]
        sought = (self.label[:, None] * span + beside[..., 0]) * span + beside[..., 1]
        return ~np.isin(sought, taken).ravel()

    def layout(self, board: Board) -> Poses:
        """Every tree around the middle of the cells that its pieces would have if they were listed row by row."""
        start, label = board.centres()[: len(self.label)], torch.from_numpy(self.label)
        place = torch.from_numpy(self.place) * board.pitch
        offset = torch.zeros_like(start).index_add(0, label, start - place)
        offset = offset / torch.from_numpy(self.size)[:, None]
        return Poses(turn_matrix(torch.from_numpy(self.turn)), place + offset[label])

    def in_frame(self, by: int, framed: Int64[np.ndarray, "k"]) -> Placement:
        """The largest tree, turned as a whole, on these cells; the cells of all other pieces are −1."""
        members = self.largest
        cells, turns = np.full(len(self.label), -1), self.turn
        cells[members], turns[members] = framed, (turns[members] + by) % SIDES
        return torch.from_numpy(cells), torch.from_numpy(turns)

    def trimmed(self, board: Board) -> Placement:
        """Trimming: the largest tree within the frame that holds most of its pieces; the cells of all others are −1."""
        place = self.place[self.largest]
        return self.in_frame(*best_frames(place, np.ones(len(place)), board, 1)[0][1:])


def held_by_frames(
    place: Int64[np.ndarray, "k 2"], weight: Float64[np.ndarray, "k"], shape: tuple[int, int]
) -> Float64[np.ndarray, "x y"]:
    """The weight of the places in each frame of this shape (x, y); frame 0, 0 starts one shape before the first."""
    room = np.array(shape)
    taken = np.zeros(np.ptp(place, axis=0) + 2 * room)
    np.add.at(taken, tuple((place - place.min(0) + room).T), weight)
    total = np.pad(taken.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    wide = total[shape[0] :] - total[: -shape[0]]
    return wide[:, shape[1] :] - wide[:, : -shape[1]]


def best_frames(
    places: Int64[np.ndarray, "k 2"], weight: Float64[np.ndarray, "k"], board: Board, most: int
) -> list[tuple[float, int, Int64[np.ndarray, "k"]]]:
    """The best frames for pieces at these places: the weight each holds, its turn, the cells in it, or −1."""
    shape, found = (board.cols, board.rows), []
    for by in (0,) if board.oblong or board.rows == board.cols else (0, 1):
        place = np.stack([-places[:, 1], places[:, 0]], 1) if by else places
        held = held_by_frames(place, weight, shape)
        corners = np.argwhere(np.isfinite(held))
        value = np.round(held.ravel(), 6)
        middle = corners[value == value.max()].mean(0)
        for index in np.lexsort((np.abs(corners - middle).sum(1), -value))[:most]:
            col, row = (place - place.min(0) + np.array(shape) - corners[index]).T
            inside = (col >= 0) & (col < board.cols) & (row >= 0) & (row < board.rows)
            found.append((float(value[index]), by, np.where(inside, row * board.cols + col, -1)))
    return sorted(found, key=lambda frame: -frame[0])


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
        # By the product of their ratios to the second best of either side.
        score, matches, tried = partners.score + EDGES.softening, np.zeros((0, 2), np.int64), 0
        if partners.side.numel():
            ratio = score / score[:, 1:2] * (score / score[:, 1][partners.side])
            sides = torch.arange(len(score))[:, None].expand_as(partners.side)
            pairs = torch.stack([sides.flatten(), partners.side.flatten()], 1)
            matches = pairs[ratio.flatten().argsort(stable=True)].numpy()
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
