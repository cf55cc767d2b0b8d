"""The energy of a placement: log odds of the borders that meet, and of what each piece shows for its place.

E = Σ pair terms of all sides that meet + Σ place terms of all pieces; the higher, the better. `search.Terms` has the
two forms of its terms, dense and listed.
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
from diffassemble.squares.edge_model import Evidence
from diffassemble.squares.placement import ScoredPlacement
from diffassemble.squares.search import (
    SearchConfig,
    Terms,
    contacts,
    energy,
    margins,
    search,
    segment_margins,
    segments,
)


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
    """bounds of what a piece shows for a place, over chance: it is never proof"""
    holds: float = 3.0
    """sum of the pair terms between two groups from which they count as one; benchmarks/calibrate_confidence.py"""
    pull: float = 6.0
    """bonus of every pair that touches where borders are unsure, so that cells with many neighbours are filled first;
    on a full board all placements get the same, so it changes the search and not the best placement"""
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

    `doubt` in [0, 1] is how little the borders determine. With pieces missing it is 0: most sides have no neighbour
    then, which is no sign of doubt.
    """

    terms: Terms
    likely: Int64[np.ndarray, "tried 2"]
    board: Board
    doubt: float = 0.0
    config: EnergyConfig = DEFAULT

    @staticmethod
    def of_borders(matches: Matches, puzzle: Puzzle, listed: bool, config: EnergyConfig = DEFAULT) -> Energy:
        """From borders and locks alone."""
        if listed:
            return Energy.listed(matches, puzzle, config)
        places = place_terms(None, len(puzzle), puzzle.board, puzzle.locks, config=config)
        return Energy.dense(matches, places, puzzle.board, config)

    @staticmethod
    def dense(
        matches: Matches, places: Float[Tensor, "n 4 cells"], board: Board, config: EnergyConfig = DEFAULT
    ) -> Energy:
        """From the matches of sides and the terms of every place."""
        doubt = _doubt(matches, board) if len(places) == board.cells else 0.0
        pairs = pair_terms(matches, len(places), config) + config.pull * doubt
        tables = pairs.numpy(), places.permute(2, 0, 1).contiguous().numpy()
        whole, real = np.zeros(0, np.int64), np.zeros(0, np.float32)
        terms = Terms(*tables, whole, whole, real, whole, whole, real, -config.strongest)
        return Energy(terms, _likely(matches, config), board, doubt, config)

    @staticmethod
    def listed(matches: Matches, puzzle: Puzzle, config: EnergyConfig = DEFAULT) -> Energy:
        """From likely pairs and locked places only, so that memory grows with the pieces alone."""
        tables = np.zeros((0, 0), np.float32), np.zeros((0, 0, SIDES), np.float32)
        lists = *pair_lists(matches, len(puzzle), config), *place_lists(len(puzzle), puzzle.board, puzzle.locks, config)
        terms = Terms(*tables, *lists, -config.strongest)
        return Energy(terms, _likely(matches, config), puzzle.board, config=config)

    def __call__(self, state: State) -> float:
        return float(energy(state.at, state.turn, self.terms, self.board.cols))

    def state(self, cells: Tensor, turns: Tensor) -> State:
        """A placement of the pieces that have a cell."""
        at, placed = np.full(self.board.cells, -1), np.flatnonzero(cells.numpy() >= 0)
        at[cells.numpy()[placed]] = placed
        return State(at, turns.numpy().copy(), cells.numpy().copy())

    def filled(self, state: State) -> State:
        """The same with all loose pieces put down."""
        return self.improve(state, 0, 0.0, 0.0, np.random.default_rng(0))

    def improve(self, state: State, rounds: int, hot: float, cold: float, random: np.random.Generator) -> State:
        """The best placement that the search finds from this one, between these temperatures."""
        found = State(state.at.copy(), state.turn.copy(), state.where.copy())
        arrays = (found.at, found.turn, found.where, self.terms, self.likely)
        search(*arrays, self.board.cols, rounds, hot, cold, random, *astuple(self.config.search))
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
        segment_margins(*arrays, label, largest, margin)
        # What the pieces of one picture show is correlated, so that sums of it are divided by √size.
        shift = margin[largest] / math.sqrt(sizes[largest])
        least = np.minimum(np.minimum(self.margins(state), margin), shift)
        return state.placement, calibrated(least)

    def groups(self, state: State) -> Int64[np.ndarray, "n"]:
        """Labels of groups that hold together, by agglomeration: the two with the highest sum of pair terms first.

        A label is one of the group's pieces. All sides that meet count, those with negative terms too.
        """
        pieces, values = np.empty((2 * self.board.cells, 2), np.int64), np.empty(2 * self.board.cells)
        found = contacts(state.at, state.turn, self.terms, self.board.cols, pieces, values)
        meeting = zip(*pieces[:found].T.tolist(), values[:found].tolist(), strict=True)
        label = np.arange(len(state.where))
        for inside, added, _ in agglomerate(len(label), meeting, self.config.holds):
            label[added] = inside[0]
        return label

    def certainty(self, state: State) -> float:
        """The least margin of any piece; −∞ where there are several segments, which could be exchanged as wholes."""
        label = np.empty(len(state.where), np.int64)
        segments(state.at, state.turn, self.terms, self.board.cols, self.config.search.holds, label)
        return float(self.margins(state).min()) if (label == label[0]).all() else -math.inf

    def margins(self, state: State) -> Float64[np.ndarray, "n"]:
        """By how much each piece's terms are higher than those of the best other use of its cell."""
        return margins(state.at, state.turn, state.where, self.terms, self.board.cols)


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
    sides, term = match_sides(matches), _bounded(matches, config).float().numpy()
    total = SIDES * count
    key = np.concatenate([sides[:, 0] * total + sides[:, 1], sides[:, 1] * total + sides[:, 0]])
    terms = np.concatenate([term, term])
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
    """How much more probable than by chance each piece's turn and place are, in log odds weighed by `trust`.

    Without log probabilities (`chances`) all are 0. Locked pieces count `pinned` where they are locked.
    """
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
    cells, turns, terms = np.full(count, -1), np.zeros(count, np.int64), np.zeros(count, np.float32)
    if locks is not None:
        held = locks.held.numpy()
        wanted, wanted_turns = (part.numpy()[held] for part in board.snap(locks.poses))
        cells[held], turns[held], terms[held] = wanted, wanted_turns, config.pinned
    return cells, turns, terms


def match_sides(matches: Matches) -> Int64[np.ndarray, "m 2"]:
    """The two sides of each match."""
    own, other = SIDES * matches.first + matches.slot // SIDES, SIDES * matches.second + matches.slot % SIDES
    return torch.stack([own, other], 1).numpy()


def _likely(matches: Matches, config: EnergyConfig) -> Int64[np.ndarray, "tried 2"]:
    return match_sides(matches[matches.probability > config.likely])


def _doubt(matches: Matches, board: Board) -> float:
    """1 minus the probability of a side's best match, averaged over as many sides as have one on a full board."""
    own = SIDES * matches.first + matches.slot // SIDES
    best = torch.zeros(SIDES * board.cells).scatter_reduce(0, own, matches.probability, "amax")
    inner = SIDES * board.cells - 2 * (board.rows + board.cols)
    return max(0.0, 1 - float(best.sum()) / max(1, inner))
