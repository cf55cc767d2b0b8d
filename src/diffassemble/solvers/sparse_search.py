"""Better placements on large boards, by taking parts of one away and growing them back; see `search`.

The moves are the same, but for windows, which are mostly small here; for the arrays see `sparse_growing`.
Type checkers are kept away: they would wrap the functions, and then numba couldn't compile them.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diffassemble.solvers.growing import NOWHERE, beside
from diffassemble.solvers.search import _bring, _carry, _lift, _root, _turn_segment
from diffassemble.solvers.sparse_growing import facing, grow, value, worth

# Realised matings above these log odds hold a segment together.
_TOGETHER = 1.0
_MOVES = 6


@njit(cache=True)
@no_type_check
def sparse_search(at, turn, where, table, homes, likely, cols, rounds, hot, cold, random):
    """Improve a placement in place over so many rounds; gives its worth. As `search`, without large arrays."""
    grow(at, turn, where, table, homes, cols)
    best = worth(at, turn, table, homes, cols)
    current, label = best, np.empty(len(turn), np.int64)
    at_now, turn_now, where_now = at.copy(), turn.copy(), where.copy()
    at_try, turn_try, where_try = at.copy(), turn.copy(), where.copy()
    for number in range(rounds):
        at_try[:], turn_try[:], where_try[:] = at_now, turn_now, where_now
        _segments(at_try, turn_try, table, cols, label)
        _disturb(at_try, turn_try, where_try, table, homes, likely, label, cols, random)
        grow(at_try, turn_try, where_try, table, homes, cols)
        found = worth(at_try, turn_try, table, homes, cols)
        borne = (hot + (cold - hot) * number / rounds) * -np.log(1e-9 + random.random())
        if found >= current - borne:
            current = found
            at_now, at_try = at_try, at_now
            turn_now, turn_try = turn_try, turn_now
            where_now, where_try = where_try, where_now
        if current > best + 1e-4:
            best = current
            at[:], turn[:], where[:] = at_now, turn_now, where_now
    return best


@njit(cache=True)
@no_type_check
def _segments(at, turn, table, cols, label):
    """Label pieces that realised matings hold together."""
    for piece in range(len(label)):
        label[piece] = piece
    for cell in range(len(at)):
        piece = at[cell]
        if piece == NOWHERE:
            continue
        for direction in range(2):
            if facing(piece, turn[piece], cell, direction, at, turn, table, cols) > _TOGETHER:
                label[_root(label, piece)] = _root(label, at[beside(cell, direction, len(at), cols)])
    for piece in range(len(label)):
        label[piece] = _root(label, piece)


@njit(cache=True)
@no_type_check
def _disturb(at, turn, where, table, homes, likely, label, cols, random):
    """One random move: segments go, weak pieces go, a window is emptied, all is shifted, a segment turned or moved."""
    move, count, cells = random.integers(0, _MOVES), len(turn), len(at)
    if move == 0:
        size = np.zeros(count, np.int64)
        for piece in range(count):
            size[label[piece]] += 1
        chance = random.random(count)
        limit = count ** random.random()
        for piece in range(count):
            if size[label[piece]] < limit and chance[label[piece]] < 0.7:
                _lift(piece, at, where)
    elif move == 1:
        limit = -2 * np.log(1e-9 + random.random())
        for piece in range(count):
            if value(piece, turn[piece], where[piece], at, turn, table, homes, cols) < limit:
                _lift(piece, at, where)
    elif move == 2:
        rows = cells // cols
        high, wide = int(rows ** random.random()), int(cols ** random.random())
        top, left = random.integers(0, rows - high + 1), random.integers(0, cols - wide + 1)
        for row in range(top, top + high):
            for col in range(left, left + wide):
                if at[row * cols + col] != NOWHERE:
                    _lift(at[row * cols + col], at, where)
    elif move == 3 or len(likely) == 0:
        down, right = random.integers(-1, 2), random.integers(-1, 2)
        _carry(at, turn, where, label, -1, 0, 0.0, 0.0, down, right, cols)
    elif move == 4:
        _turn_segment(at, turn, where, label, label[random.integers(0, count)], cols, random)
    else:
        _bring_unmet(at, turn, where, likely, label, cols, random)


@njit(cache=True)
@no_type_check
def _bring_unmet(at, turn, where, likely, label, cols, random):
    """Carry the segment of one side to where that side faces a likely mate in another segment."""
    for _ in range(100):  # most likely mates lie together already
        mating = random.integers(0, len(likely))
        own, mate = likely[mating, 0], likely[mating, 1]
        if label[own // 4] != label[mate // 4]:
            _bring(own, mate, at, turn, where, label, cols)
            return
