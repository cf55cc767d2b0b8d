"""The energy of a placement, the higher the better: Σ pair terms of sides that meet + Σ place terms of pieces.

Pair terms are log odds of borders, place terms those of content. `search.Terms` has their two forms, dense and listed.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64, Int64
from torch import Tensor

from diffassemble.assembly.confidence import agglomerate, calibration
from diffassemble.core import Board, Locks, Matches, Puzzle
from diffassemble.core.board import SIDES, Placement
from diffassemble.squares import search
from diffassemble.squares.edges import Evidence
from diffassemble.squares.placement import ScoredPlacement
from diffassemble.squares.search import SearchConfig, Terms


@dataclass(frozen=True)
class EnergyConfig:
    """Numbers of the energy and of the confidence that follows from it; log odds where nothing else is stated."""

    matches: int = 24
    """partners of every side that have terms of their own; all others count as unlikely"""
    listed_above: int = 1600
    """pieces above which only likely pairs have terms, so that memory grows with the pieces alone"""
    strongest: float = 6.0
    """bound of every pair term, for and against; what is not listed counts −strongest"""
    listed: float = 0.01
    """least probability of a match that is listed on large boards"""
    likely: float = 0.1
    """least probability of a match that the search tries as a move"""
    pinned: float = 1e4
    """term of a locked piece in its place: no sum of other terms outweighs it"""
    content: tuple[float, float] = (-3.0, 6.0)
    """bounds of the log odds of a piece's content for a place, over chance"""
    holds: float = 3.0
    """sum of the pair terms between two groups from which they count as one; benchmarks/calibrate_confidence.py"""
    pull: float = 6.0
    """bonus of every pair that touches where borders are doubtful, so that cells with many neighbours are filled first;
    on a full board the same for all placements"""
    search: SearchConfig = field(default_factory=SearchConfig)


DEFAULT = EnergyConfig()


@dataclass(frozen=True)
class State:
    """A placement as the search takes it: the piece on each cell, and the turn and cell of each piece; −1 is none."""

    at: Int64[np.ndarray, "cells"]
    turn: Int64[np.ndarray, "n"]
    where: Int64[np.ndarray, "n"]

    @property
    def placement(self) -> Placement:
        return torch.from_numpy(self.where), torch.from_numpy(self.turn)


@dataclass(frozen=True)
class Energy:
    """The terms of every placement; `likely` are pairs of sides worth trying as moves.

    `doubt` in [0, 1] is how little the borders determine; 0 with pieces missing, where most sides have no neighbour.
    """

    terms: Terms
    likely: Int64[np.ndarray, "tried 2"]
    board: Board
    doubt: float = 0.0
    config: EnergyConfig = DEFAULT

    @staticmethod
    def of_borders(matches: Matches, puzzle: Puzzle, listed: bool, config: EnergyConfig = DEFAULT) -> Energy:
        """From borders and locks alone; if `listed`, from likely pairs, so that memory grows with the pieces alone."""
        count, board = len(puzzle), puzzle.board
        if not listed:
            return Energy.dense(matches, place_terms(None, count, board, puzzle.locks, config=config), board, config)
        tables = np.zeros((0, 0), np.float32), np.zeros((0, 0, SIDES), np.float32)
        lists = *pair_lists(matches, count, config), *place_lists(count, board, puzzle.locks, config)
        return Energy(Terms(*tables, *lists, -config.strongest), _likely(matches, config), board, config=config)

    @staticmethod
    def dense(
        matches: Matches, places: Float[Tensor, "n 4 cells"], board: Board, config: EnergyConfig = DEFAULT
    ) -> Energy:
        """From the matches of sides and the terms of every place."""
        doubt = 0.0
        if len(places) == board.cells:  # 1 − mean probability of the best match of all sides that have a neighbour
            own = SIDES * matches.first + matches.slot // SIDES
            best = torch.zeros(SIDES * board.cells).scatter_reduce(0, own, matches.probability, "amax")
            inner = SIDES * board.cells - 2 * (board.rows + board.cols)
            doubt = max(0.0, 1 - float(best.sum()) / max(1, inner))
        pairs = pair_terms(matches, len(places), config) + config.pull * doubt
        tables = pairs.numpy(), places.permute(2, 0, 1).contiguous().numpy()
        whole, real = np.zeros(0, np.int64), np.zeros(0, np.float32)
        terms = Terms(*tables, whole, whole, real, whole, whole, real, -config.strongest)
        return Energy(terms, _likely(matches, config), board, doubt, config)

    def __call__(self, state: State) -> float:
        return float(search.energy(state.at, state.turn, self.terms, self.board.cols))

    def state(self, cells: Tensor, turns: Tensor) -> State:
        """A placement of the pieces that have a cell."""
        at, placed = np.full(self.board.cells, -1), np.flatnonzero(cells.numpy() >= 0)
        at[cells.numpy()[placed]] = placed
        return State(at, turns.numpy().copy(), cells.numpy().copy())

    def improve(
        self,
        state: State,
        rounds: int = 0,
        hot: float = 0.0,
        cold: float = 0.0,
        random: np.random.Generator | None = None,
    ) -> State:
        """The best placement found from this one in so many moves; without any, loose pieces are put down."""
        found = State(state.at.copy(), state.turn.copy(), state.where.copy())
        arrays = (found.at, found.turn, found.where, self.terms, self.likely)
        random = random or np.random.default_rng(0)
        search.search(*arrays, self.board.cols, rounds, hot, cold, random, *astuple(self.config.search))
        return found

    def answer(self, state: State) -> ScoredPlacement:
        """The placement, with the confidence of each piece.

        It follows from the least of three margins: over any other piece or turn on its cell, over any other place of
        the group that holds together with it, and over any shift of the largest group with all the rest.
        """
        label = self.groups(state)
        sizes = np.bincount(label)
        largest = sizes.argmax()
        margin = np.empty(len(label))
        arrays = (state.at, state.turn, state.where, self.terms, self.board.cols)
        search.segment_margins(*arrays, label, largest, margin)
        # The content of the pieces of one picture is correlated, so that sums of it are divided by √size.
        shift = margin[largest] / math.sqrt(sizes[largest])
        least = np.minimum(np.minimum(self.margins(state), margin), shift)
        return state.placement, calibrated(least)

    def groups(self, state: State) -> Int64[np.ndarray, "n"]:
        """Labels of groups that hold together, by agglomeration: the two with the highest sum of pair terms first.

        A label is one of the group's pieces. All sides that meet count, those with negative terms too.
        """
        pieces, values = np.empty((2 * self.board.cells, 2), np.int64), np.empty(2 * self.board.cells)
        found = search.contacts(state.at, state.turn, self.terms, self.board.cols, pieces, values)
        meeting = zip(*pieces[:found].T.tolist(), values[:found].tolist(), strict=True)
        label = np.arange(len(state.where))
        for inside, added, _ in agglomerate(len(label), meeting, self.config.holds):
            label[added] = inside[0]
        return label

    def certainty(self, state: State) -> float:
        """The least margin of any piece; −∞ where there are several segments, which could be exchanged as wholes."""
        label = np.empty(len(state.where), np.int64)
        search.segments(state.at, state.turn, self.terms, self.board.cols, self.config.search.holds, label)
        return float(self.margins(state).min()) if (label == label[0]).all() else -math.inf

    def margins(self, state: State) -> Float64[np.ndarray, "n"]:
        """By how much each piece's terms are higher than those of the best other use of its cell."""
        return search.margins(state.at, state.turn, state.where, self.terms, self.board.cols)


def border_confidence(
    puzzle: Puzzle, placement: Placement, evidence: Evidence | None = None, config: EnergyConfig = DEFAULT
) -> Float[Tensor, "n"]:
    """The confidence that border gradients give to each piece of any placement."""
    matches = (evidence or Evidence(puzzle.pixels)).matches(puzzle.board.pitch, config.matches)
    energy = Energy.of_borders(matches, puzzle, len(puzzle) > config.listed_above, config)
    return energy.answer(energy.state(*placement))[1]


def calibrated(margin: Float64[np.ndarray, "n"]) -> Float[Tensor, "n"]:
    """The probability that pieces with these least margins are right, by `assembly.confidence`, in single precision."""
    numbers = calibration("squares")
    logit = torch.from_numpy(numbers.slope * margin + numbers.shift).float()
    return logit.sigmoid().clamp(max=numbers.ceiling)


def match_sides(matches: Matches) -> Int64[np.ndarray, "m 2"]:
    """The two sides of each match."""
    own, other = SIDES * matches.first + matches.slot // SIDES, SIDES * matches.second + matches.slot % SIDES
    return torch.stack([own, other], 1).numpy()


def _likely(matches: Matches, config: EnergyConfig) -> Int64[np.ndarray, "tried 2"]:
    return match_sides(matches[matches.probability > config.likely])


def _bounded(matches: Matches, config: EnergyConfig) -> Float[Tensor, "m"]:
    return matches.probability.logit().clamp(-config.strongest, config.strongest)


def pair_terms(matches: Matches, count: int, config: EnergyConfig = DEFAULT) -> Float[Tensor, "sides sides"]:
    """Log odds that two sides are neighbours in the picture; −strongest for those without a match."""
    terms = torch.full((SIDES * count, SIDES * count), -config.strongest)
    own, other = torch.from_numpy(match_sides(matches)).unbind(1)
    terms[own, other] = _bounded(matches, config)
    return torch.maximum(terms, terms.T)


def pair_lists(
    matches: Matches, count: int, config: EnergyConfig = DEFAULT
) -> tuple[Int64[np.ndarray, "sides_and_one"], Int64[np.ndarray, "m"], Float32[np.ndarray, "m"]]:
    """Starts, partners and terms of likely pairs, both ways round; the better term where both sides list the pair."""
    matches = matches[matches.probability > config.listed]
    sides, total = match_sides(matches), SIDES * count
    key = np.concatenate([sides[:, 0] * total + sides[:, 1], sides[:, 1] * total + sides[:, 0]])
    terms = np.tile(_bounded(matches, config).float().numpy(), 2)
    order = np.lexsort((-terms, key))
    key, first = np.unique(key[order], return_index=True)
    return np.searchsorted(key, total * np.arange(total + 1)), key % total, terms[order][first]


def place_terms(
    chances: Float[Tensor, "n c 4"] | None,
    count: int,
    board: Board,
    locks: Locks | None = None,
    trust: float = 1.0,
    config: EnergyConfig = DEFAULT,
) -> Float[Tensor, "n 4 c"]:
    """Log odds over chance of each piece's turn and place by log probabilities, if given, weighted by `trust`."""
    terms = torch.zeros(count, SIDES, board.cells)
    if board.oblong:
        terms[:, 1::2] = -config.pinned
    if chances is not None:
        terms += trust * (chances + math.log(SIDES * board.cells)).clamp(*config.content).transpose(1, 2)
    if locks is not None:
        (cells, turns), held = board.snap(locks.poses), locks.held.nonzero().flatten()
        terms[held, turns[held], cells[held]] = config.pinned
    return terms


def place_lists(
    count: int, board: Board, locks: Locks | None = None, config: EnergyConfig = DEFAULT
) -> tuple[Int64[np.ndarray, "n"], Int64[np.ndarray, "n"], Float32[np.ndarray, "n"]]:
    """Cells, turns and terms of locked pieces; cell −1 and term 0 for all others."""
    if locks is None:
        return np.full(count, -1), np.zeros(count, np.int64), np.zeros(count, np.float32)
    held, (cells, turns) = locks.held.numpy(), board.snap(locks.poses)
    return np.where(held, cells, -1), np.where(held, turns, 0), np.where(held, np.float32(config.pinned), np.float32(0))
