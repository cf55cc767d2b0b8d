"""The energy of a placement: log odds of the borders that meet, and of where what a piece shows belongs.

The higher, the better. For the two forms that its terms have, dense and listed, see `search`.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64, Int64
from torch import Tensor

from diffassemble.core import Board, Locks, Matches, Puzzle
from diffassemble.core.board import SIDES, Placement
from diffassemble.squares.edge_model import CompareEdges, Evidence
from diffassemble.squares.placement import Answer
from diffassemble.squares.search import UNLISTED, contacts, energy, margins, search, segment_margins, segments

# No pair of sides counts for more or less than this; in log odds.
STRONGEST = -UNLISTED
# Matches of every side that are known; all others count as unlikely.
MATCHES = 24
# Above so many pieces only likely pairs have terms.
LISTED_ABOVE = 1600
# What no sum of other terms outweighs.
PINNED = 1e4
# Matches at least this probable are listed, and those are tried as moves.
_LISTED, _WORTH_TRYING = 0.01, 0.1
# Log probabilities above chance are not told apart beyond these bounds: what pieces show is never proof.
_CHANCES = -3.0, 6.0
# Parts of a placement hold together where the pair terms between them add up to this much.
_HOLDS = 3.0
# A piece is as likely right as not where its least margin is this (benchmarks/calibrate_confidence.py).
_EVEN = 0.8
# Where borders are unsure, every pair that touches counts up to this much more, so that cells with many neighbours are
# filled first. On a whole board as many pairs touch in any placement, so it changes the search and not what is best.
_PULL = 6.0

PairLists = tuple[Int64[np.ndarray, "sides_and_one"], Int64[np.ndarray, "m"], Float32[np.ndarray, "m"]]
PlaceList = tuple[Int64[np.ndarray, "n"], Int64[np.ndarray, "n"], Float32[np.ndarray, "n"]]


@dataclass(frozen=True)
class State:
    """A placement as the search sees it: the piece on each cell, and the turn and cell of each piece; −1 is none."""

    at: Int64[np.ndarray, "cells"]
    turn: Int64[np.ndarray, "n"]
    where: Int64[np.ndarray, "n"]

    @property
    def placement(self) -> Placement:
        return torch.from_numpy(self.where), torch.from_numpy(self.turn)


@dataclass(frozen=True)
class Energy:
    """The terms of every placement, dense or listed; `likely` are pairs of sides worth trying as moves.

    `doubt` is how little borders say, from 0 to 1. With pieces missing it is 0: most sides have no neighbour then, and
    that says nothing.
    """

    pairs: Float32[np.ndarray, "sides sides"] | PairLists
    places: Float32[np.ndarray, "cells n 4"] | PlaceList
    likely: Int64[np.ndarray, "tried 2"]
    board: Board
    doubt: float = 0.0

    @staticmethod
    def of_borders(matches: Matches, count: int, board: Board, locks: Locks | None, listed: bool) -> Energy:
        """What borders and locks say, and nobody else."""
        if listed:
            return Energy.listed(matches, place_list(count, board, locks), board)
        return Energy.dense(matches, place_terms(None, count, board, locks), board)

    @staticmethod
    def dense(matches: Matches, places: Float[Tensor, "n 4 cells"], board: Board) -> Energy:
        """From the matches of sides and what the network says of every place."""
        doubt = _doubt(matches, board) if len(places) == board.cells else 0.0
        pairs = pair_terms(matches, len(places)) + _PULL * doubt
        return Energy(pairs.numpy(), places.permute(2, 0, 1).contiguous().numpy(), _likely(matches), board, doubt)

    @staticmethod
    def listed(matches: Matches, places: PlaceList, board: Board) -> Energy:
        """The same with terms of likely pairs and places only, so that memory grows with the pieces alone."""
        return Energy(pair_lists(matches, len(places[0])), places, _likely(matches), board)

    def __call__(self, state: State) -> float:
        return float(energy(state.at, state.turn, self.pairs, self.places, self.board.cols))

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
        arrays = (found.at, found.turn, found.where, self.pairs, self.places, self.likely)
        search(*arrays, self.board.cols, rounds, hot, cold, random)
        return found

    def answer(self, state: State) -> Answer:
        """The placement, with the chance of each piece's place.

        A piece is as sure as the least sure of three: that no other piece or turn fits on its cell, that the part which
        holds together with it belongs nowhere else, and that the largest part could not be shifted with all the rest.
        """
        label = self.groups(state)
        sizes = np.bincount(label)
        largest = sizes.argmax()
        margin = np.empty(len(label))
        arrays = (state.at, state.turn, state.where, self.pairs, self.places, self.board.cols)
        segment_margins(*arrays, label, largest, margin)
        # All pieces of a picture mislead alike: what they show does not add up as if each were another witness.
        shift = margin[largest] / math.sqrt(sizes[largest])
        least = np.minimum(np.minimum(self.margins(state), margin), shift)
        return state.placement, chances(least)

    def groups(self, state: State) -> Int64[np.ndarray, "n"]:
        """Labels of parts that hold together: joined one after the other, the two that hold each other most first.

        A label is one of the part's pieces. All sides that meet count, also those that speak against it.
        """
        count = len(state.where)
        pieces, terms = np.empty((2 * self.board.cells, 2), np.int64), np.empty(2 * self.board.cells)
        found = contacts(state.at, state.turn, self.pairs, self.board.cols, pieces, terms)
        held: list[dict[int, float]] = [{} for _ in range(count)]
        for (one, two), term in zip(pieces[:found].tolist(), terms[:found].tolist(), strict=True):
            held[one][two] = held[two][one] = held[one].get(two, 0.0) + term
        label = list(range(count))
        members = [[piece] for piece in range(count)]
        heap = [(-term, one, two) for one, others in enumerate(held) for two, term in others.items() if one < two]
        heapq.heapify(heap)
        while heap:
            lost, one, two = heapq.heappop(heap)
            if -lost < _HOLDS or held[one].get(two) != -lost:  # what does not hold, or was added to since
                continue
            if len(members[one]) < len(members[two]):
                one, two = two, one
            for piece in members[two]:
                label[piece] = one
            members[one] += members[two]
            held[one].pop(two)
            for other, term in held[two].items():
                if other != one:
                    held[other].pop(two)
                    total = held[one].get(other, 0.0) + term
                    held[one][other] = held[other][one] = total
                    heapq.heappush(heap, (-total, min(one, other), max(one, other)))
            held[two] = {}
        return np.array(label)

    def certainty(self, state: State) -> float:
        """The least margin of any piece; −∞ where parts don't hold together, which could be exchanged as wholes."""
        label = np.empty(len(state.where), np.int64)
        segments(state.at, state.turn, self.pairs, self.board.cols, label)
        return float(self.margins(state).min()) if (label == label[0]).all() else -math.inf

    def margins(self, state: State) -> Float64[np.ndarray, "n"]:
        """By how much each piece's terms are higher than those of the best other use of its cell."""
        return margins(state.at, state.turn, state.where, self.pairs, self.places, self.board.cols)


def border_confidence(
    puzzle: Puzzle, placement: Placement, edge_model: CompareEdges | None = None
) -> Float[Tensor, "n"]:
    """How sure each piece of anybody's placement may be of its place, by what borders say."""
    matches = Evidence.of(puzzle.pixels).matches(puzzle.board.pitch, MATCHES, edge_model)
    energy = Energy.of_borders(matches, len(puzzle), puzzle.board, puzzle.locks, len(puzzle) > LISTED_ABOVE)
    return energy.answer(energy.state(*placement))[1]


def chances(margin: Float64[np.ndarray, "n"]) -> Float[Tensor, "n"]:
    """How probable it is that pieces with these least margins are right."""
    return torch.from_numpy(margin - _EVEN).float().sigmoid()


def pair_terms(matches: Matches, count: int) -> Float[Tensor, "sides sides"]:
    """Log odds, for and against, that two sides are neighbours in the picture; against, for those without a match."""
    terms = torch.full((SIDES * count, SIDES * count), -STRONGEST)
    own, other = torch.from_numpy(match_sides(matches)).unbind(1)
    terms[own, other] = matches.probability.logit().clamp(-STRONGEST, STRONGEST)
    return torch.maximum(terms, terms.T)


def pair_lists(matches: Matches, count: int) -> PairLists:
    """The same as lists of likely pairs, both ways round; the better ones where both sides list the pair."""
    matches = matches[matches.probability > _LISTED]
    sides = match_sides(matches)
    term = matches.probability.logit().clamp(-STRONGEST, STRONGEST).float().numpy()
    total = SIDES * count
    key = np.concatenate([sides[:, 0] * total + sides[:, 1], sides[:, 1] * total + sides[:, 0]])
    terms = np.concatenate([term, term])
    order = np.lexsort((-terms, key))
    key, first = np.unique(key[order], return_index=True)
    starts = np.searchsorted(key, total * np.arange(total + 1))
    return starts, key % total, terms[order][first]


def place_terms(
    chances: Float[Tensor, "n c 4"] | None, count: int, board: Board, locks: Locks | None = None, trust: float = 1.0
) -> Float[Tensor, "n 4 c"]:
    """How much more probable than by chance each piece's turn and place are, in log odds weighed by trust.

    Without log probabilities nothing is said. Locked pieces count more where they are locked than all else could
    outweigh.
    """
    terms = torch.zeros(count, SIDES, board.cells)
    if board.oblong:
        terms[:, 1::2] = -PINNED
    if chances is not None:
        terms += trust * (chances + math.log(SIDES * board.cells)).clamp(*_CHANCES).transpose(1, 2)
    if locks is not None:
        (cells, turns), held = board.snap(locks.poses), locks.held.nonzero().flatten()
        terms[held, turns[held], cells[held]] = PINNED
    return terms


def place_list(count: int, board: Board, locks: Locks | None = None) -> PlaceList:
    """Listed: locks alone say something of places, and outweigh everything."""
    cells, turns, terms = np.full(count, -1), np.zeros(count, np.int64), np.zeros(count, np.float32)
    if locks is not None:
        held = locks.held.numpy()
        wanted, wanted_turns = (part.numpy()[held] for part in board.snap(locks.poses))
        cells[held], turns[held], terms[held] = wanted, wanted_turns, PINNED
    return cells, turns, terms


def match_sides(matches: Matches) -> Int64[np.ndarray, "m 2"]:
    """The two sides of each match."""
    own, other = SIDES * matches.first + matches.slot // SIDES, SIDES * matches.second + matches.slot % SIDES
    return torch.stack([own, other], 1).numpy()


def _likely(matches: Matches) -> Int64[np.ndarray, "tried 2"]:
    return match_sides(matches[matches.probability > _WORTH_TRYING])


def _doubt(matches: Matches, board: Board) -> float:
    """How improbable the best match of a side is, on the average over as many sides as have one on a full board."""
    own = SIDES * matches.first + matches.slot // SIDES
    best = torch.zeros(SIDES * board.cells).scatter_reduce(0, own, matches.probability, "amax")
    inner = SIDES * board.cells - 2 * (board.rows + board.cols)
    return max(0.0, 1 - float(best.sum()) / max(1, inner))
