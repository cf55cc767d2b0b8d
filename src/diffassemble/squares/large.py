"""Large boards: the search of `hybrid` on lists of likely pairs, so that time and memory grow with the pieces alone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32, Int64

from diffassemble.core import Board, Locks, Matches, Poses, Puzzle
from diffassemble.core.board import SIDES, Placement
from diffassemble.core.locks import hold, settle
from diffassemble.squares.baselines.gallagher import trim
from diffassemble.squares.diffusion import Answer, held_place
from diffassemble.squares.energy import PINNED, STRONGEST
from diffassemble.squares.forest import Forest
from diffassemble.squares.placement import agreement
from diffassemble.squares.sparse_search import margins, sparse_search, worth

# Matings at least this probable are listed, and those are tried as moves.
_LISTED, _WORTH_TRYING = 0.01, 0.1
# What it gains to lie where all samples of the network agree, in log odds, before it is weighed by trust.
_AGREED = 4.0
# Searches run in so many phases of so many moves each, with a look at the clock between them.
_PHASES, _MOVES = 8, 100

Table = tuple[Int64[np.ndarray, "sides_and_one"], Int64[np.ndarray, "m"], Float32[np.ndarray, "m"]]
Homes = tuple[Int64[np.ndarray, "n"], Int64[np.ndarray, "n"], Float32[np.ndarray, "n"]]


@dataclass(frozen=True)
class SparseState:
    """A placement as the search sees it: the piece on each cell, and the turn and cell of each piece; −1 is none."""

    at: Int64[np.ndarray, "cells"]
    turn: Int64[np.ndarray, "n"]
    where: Int64[np.ndarray, "n"]


@dataclass(frozen=True)
class SparseTerms:
    """All that a placement is worth; `table` and `homes` as in `sparse_growing`, `likely` pairs of sides to try."""

    table: Table
    homes: Homes
    likely: Int64[np.ndarray, "tried 2"]
    board: Board

    @property
    def arrays(self) -> tuple[Table, Homes]:
        return self.table, self.homes

    def state(self, placement: Placement) -> SparseState:
        """A placement of the pieces that have a cell."""
        cells, turns = (part.numpy().copy() for part in placement)
        at, placed = np.full(self.board.cells, -1), np.flatnonzero(cells >= 0)
        at[cells[placed]] = placed
        return SparseState(at, turns, cells)

    def worth(self, state: SparseState) -> float:
        return float(worth(state.at, state.turn, *self.arrays, self.board.cols))

    def improve(
        self, state: SparseState, moves: int, hot: float, cold: float, random: np.random.Generator
    ) -> SparseState:
        """The best placement that the search finds from this one; without moves, loose pieces are put down."""
        found = SparseState(state.at.copy(), state.turn.copy(), state.where.copy())
        arrays = found.at, found.turn, found.where, *self.arrays, self.likely
        sparse_search(*arrays, self.board.cols, moves, hot, cold, random)
        return found

    def answer(self, state: SparseState) -> Answer:
        """The placement, with the chance of each piece's place against the best likely other use of its cell."""
        margin = margins(state.at, state.turn, state.where, *self.arrays, self.board.cols)
        return self.placement(state), torch.from_numpy(margin).float().sigmoid()

    @staticmethod
    def placement(state: SparseState) -> Placement:
        return torch.from_numpy(state.where), torch.from_numpy(state.turn)


def large_answers(
    puzzle: Puzzle, matches: Matches, samples: Sequence[Poses], trust: float, heat: float, until: float
) -> Iterator[Answer]:
    """Ever more valuable placements, from what borders or the network give, until the clock says so."""
    board = puzzle.board
    table, likely = _table(matches, len(puzzle)), _sides(matches[matches.weight > _WORTH_TRYING])
    placements = [held_place(sample, puzzle) for sample in samples]
    terms = SparseTerms(table, _homes(placements, board, trust, puzzle.locks), likely, board)
    starts = [terms.state(placement) for placement in [*placements, *_bordered(puzzle, matches, terms)]]
    best, random = max(starts, key=terms.worth), np.random.default_rng(0)
    yield terms.answer(best)
    for phase in range(_PHASES):
        if time.monotonic() > until:
            break
        hot, cold = (heat * (1 - done / _PHASES) for done in (phase, phase + 1))
        best = terms.improve(best, _MOVES, hot, cold, random)
        yield terms.answer(best)


def _bordered(puzzle: Puzzle, matches: Matches, terms: SparseTerms) -> list[Placement]:
    """Pieces joined along the most probable matings, trimmed to the board, the others put down; in all turns."""
    board, forest = puzzle.board, Forest.of(len(puzzle))
    forest.grow(_sides(matches[matches.weight.argsort(descending=True, stable=True)]), 0, len(puzzle))
    whole = terms.placement(terms.improve(terms.state(trim(forest, board)), 0, 0.0, 0.0, np.random.default_rng(0)))
    turned = [board.turned(*whole, by)[1:] for by in board.fitting_turns()]
    if puzzle.locks is None:
        return turned
    return [hold(whole, board, puzzle.locks), *(settle(other, board, puzzle.locks) for other in turned)]


def _homes(placements: Sequence[Placement], board: Board, trust: float, locks: Locks | None) -> Homes:
    """Where the first sample has each piece, worth the more the more samples agree; locks outweigh everything."""
    first, *others = placements
    share = (1 + len(others) * agreement(board, first, others)) / len(placements)
    cells, turns, pull = first[0].clone(), first[1].clone(), _AGREED * trust * share
    if locks is not None:
        wanted, wanted_turns = board.snap(locks.poses)
        cells, turns = torch.where(locks.held, wanted, cells), torch.where(locks.held, wanted_turns, turns)
        pull = torch.where(locks.held, torch.tensor(PINNED), pull)
    return cells.numpy(), turns.numpy(), pull.float().numpy()


def _table(matches: Matches, count: int) -> Table:
    """Pairs of sides, both ways round, and their log odds; the better ones where both sides list the pair."""
    matches = matches[matches.weight > _LISTED]
    sides = _sides(matches)
    gain = torch.logit(matches.weight).clamp(-STRONGEST, STRONGEST).float().numpy()
    total = SIDES * count
    key = np.concatenate([sides[:, 0] * total + sides[:, 1], sides[:, 1] * total + sides[:, 0]])
    gains = np.concatenate([gain, gain])
    order = np.lexsort((-gains, key))
    key, first = np.unique(key[order], return_index=True)
    starts = np.searchsorted(key, total * np.arange(total + 1))
    return starts, key % total, gains[order][first]


def _sides(matches: Matches) -> Int64[np.ndarray, "m 2"]:
    """The two sides of each mating."""
    return torch.stack(
        [SIDES * matches.first + matches.slot // SIDES, SIDES * matches.second + matches.slot % SIDES], 1
    ).numpy()
