"""A second look at a board with empty cells: what borders can't decide is decided by how the picture looks.

Borders hold parts of the picture together. By how far the largest part is shifted, and where small parts and lone
pieces belong, they often don't say; then a critic compares the pictures. What counts is the sum of both, in log odds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from diffassemble.model.critic import Critic, tiles_of
from diffassemble.puzzle import Board, Puzzle
from diffassemble.solvers.growing import NOWHERE, beside, facing
from diffassemble.solvers.terms import State, Terms

# Sides that meet hold together from these log odds on.
_HOLDS = 1.0
# The whole is shifted by up to so many cells; of the places of a part so many are looked at, the most valuable first.
_REACH, _LOOKED_AT = 2, 24
# How often all small parts are looked at again.
_ROUNDS = 2
# With more cells a side than this a cell is too small to be seen.
_MOST = 14


@dataclass(frozen=True)
class SecondLook:
    """Says whether a placement should be another one; `weight` is how much the critic counts beside borders."""

    critic: Critic
    weight: float = 2.5

    def __call__(self, puzzle: Puzzle, terms: Terms, state: State) -> State:
        """The most valuable of what this placement could be; the same one if nothing is to be decided."""
        board = puzzle.board
        if len(puzzle) == board.cells or puzzle.locks is not None or max(board.rows, board.cols) > _MOST:
            return state
        tiles = tiles_of(puzzle.pixels, board, self.critic.config.size)
        state = self._framed(state, terms, tiles)
        for _ in range(_ROUNDS):
            before = state
            for part in parts(state, terms)[1:]:
                state = self._settled(state, part, terms, tiles)
            if np.array_equal(before.where, state.where) and np.array_equal(before.turn, state.turn):
                break
        return state

    def _framed(self, state: State, terms: Terms, tiles: Float[Tensor, "n 4 3 c c"]) -> State:
        """The whole in its best turn and shift, judged by its largest part."""
        others = np.concatenate([np.zeros(0, np.int64), *parts(state, terms)[1:]])
        candidates = list(shifts(state, terms))
        return self._best(candidates, [without(candidate, others) for candidate in candidates], terms, tiles)

    def _settled(
        self, state: State, part: Int64[np.ndarray, "m"], terms: Terms, tiles: Float[Tensor, "n 4 3 c c"]
    ) -> State:
        """A part of the whole on its best place."""
        places = sorted(placings(state, part, terms.board), key=terms.worth, reverse=True)[:_LOOKED_AT]
        return self._best([state, *places], [state, *places], terms, tiles)

    def _best(self, states: list[State], shown: list[State], terms: Terms, tiles: Float[Tensor, "n 4 3 c c"]) -> State:
        at = torch.from_numpy(np.stack([state.at for state in shown]))
        turns = torch.from_numpy(np.stack([np.where(s.at >= 0, s.turn[s.at], 0) for s in shown]))
        looks = self.critic.judge(tiles, at, turns, terms.board)
        worths = torch.tensor([terms.worth(state) for state in states])
        return states[int((worths + self.weight * looks).argmax())]


def parts(state: State, terms: Terms) -> list[Int64[np.ndarray, "m"]]:
    """The pieces that hold together by their borders, the largest part first."""
    links, cols = [], terms.board.cols
    for cell in np.flatnonzero(state.at >= 0).tolist():
        piece = state.at[cell]
        for direction in (0, 1):
            gain = facing(
                piece, state.turn[piece], cell, direction, state.at, state.turn, terms.gains, terms.board.cols
            )
            if gain > _HOLDS:
                links.append((piece, state.at[beside(cell, direction, len(state.at), cols)]))
    one, two = np.array(links, np.int64).reshape(-1, 2).T
    count = len(state.where)
    _, label = connected_components(coo_array((np.ones(len(one)), (one, two)), (count, count)), directed=False)
    groups = [np.flatnonzero(label == number) for number in range(label.max() + 1)]
    return sorted(groups, key=len, reverse=True)


def shifts(state: State, terms: Terms) -> Iterator[State]:
    """The placement itself, then in other turns and shifts of the whole; what falls off is put down by its borders."""
    board = terms.board
    yield state
    placed = np.flatnonzero(state.where >= 0)
    whole = state.where[placed] // board.cols, state.where[placed] % board.cols
    for turn in range(4) if board.rows == board.cols else (0, 2):
        rows, cols = turned_cells(*whole, turn, board)
        for down in range(-_REACH, _REACH + 1):
            for right in range(-_REACH, _REACH + 1):
                if turn or down or right:
                    moved = _moved(state, placed, rows + down, cols + right, turn, board)
                    yield terms.improve(moved, 0, 0.0, 0.0, np.random.default_rng(0))


def placings(state: State, part: Int64[np.ndarray, "m"], board: Board) -> Iterator[State]:
    """A part, without the others moving, on all free places in all turns."""
    rest = without(state, part)
    rows, cols = state.where[part] // board.cols, state.where[part] % board.cols
    for turn in range(4):
        own_rows, own_cols = _about(rows, cols, turn)
        for down in range(board.rows - int(np.ptp(own_rows))):
            for right in range(board.cols - int(np.ptp(own_cols))):
                new_rows, new_cols = own_rows - own_rows.min() + down, own_cols - own_cols.min() + right
                if (rest.at[new_rows * board.cols + new_cols] == NOWHERE).all():
                    yield _moved(rest, part, new_rows, new_cols, turn, board, state.turn)


def without(state: State, pieces: Int64[np.ndarray, "m"]) -> State:
    """The same placement, these pieces lying nowhere."""
    at, where = state.at.copy(), state.where.copy()
    lying = where[pieces]
    at[lying[lying >= 0]] = NOWHERE
    where[pieces] = NOWHERE
    return replace(state, at=at, where=where)


def turned_cells(
    rows: Int64[np.ndarray, "m"], cols: Int64[np.ndarray, "m"], turn: int, board: Board
) -> tuple[Int64[np.ndarray, "m"], Int64[np.ndarray, "m"]]:
    """Where cells come to lie when the whole board is turned clockwise."""
    for _ in range(turn % 2):
        rows, cols = cols, board.rows - 1 - rows
    if turn >= 2:
        rows, cols = board.rows - 1 - rows, board.cols - 1 - cols
    return rows, cols


def _about(
    rows: Int64[np.ndarray, "m"], cols: Int64[np.ndarray, "m"], turn: int
) -> tuple[Int64[np.ndarray, "m"], Int64[np.ndarray, "m"]]:
    for _ in range(turn):
        rows, cols = cols, -rows
    return rows, cols


def _moved(
    state: State,
    pieces: Int64[np.ndarray, "m"],
    rows: Int64[np.ndarray, "m"],
    cols: Int64[np.ndarray, "m"],
    turn: int,
    board: Board,
    turns: Int64[np.ndarray, "n"] | None = None,
) -> State:
    """Pieces taken up and put on these cells, turned on; those beyond the board lie nowhere."""
    fresh = without(state, pieces)
    old = state.turn if turns is None else turns
    quarter = state.turn.copy()
    quarter[pieces] = (old[pieces] + turn) % 4
    inside = (rows >= 0) & (rows < board.rows) & (cols >= 0) & (cols < board.cols)
    cells = rows[inside] * board.cols + cols[inside]
    fresh.at[cells], fresh.where[pieces[inside]] = pieces[inside], cells
    return replace(fresh, turn=quarter)
