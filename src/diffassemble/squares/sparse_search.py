"""The same search on lists of likely pairs, so that time and memory grow with the pieces alone."""

from __future__ import annotations

import heapq
from typing import no_type_check

import numpy as np
from numba import njit

from diffassemble.squares.search import NOWHERE, _bring, _carry, _lift, _root, _turn_segment, beside

# ----------------------------------------------------------------------------------------------------------------------
# What placements on large boards are worth, and how loose pieces are put down: loops that numba compiles.
#
# As in `growing`, but nothing here is of the size pieces × pieces. Of all pairs of sides only the likely ones are
# listed: `table` is (starts, partner, gain), the partners of side a being those from starts[a] to starts[a + 1], in
# ascending order; all other pairs cost STRONGEST. What the network thinks is told for one cell and turn of each piece:
# `homes` is (cell or −1, turn, gain). The rest as in `growing`.
# Type checkers are kept away: they would wrap the functions, and then numba couldn't compile them.


UNLISTED = -6.0


@njit(cache=True)
@no_type_check
def gain_between(table, one, other):
    """What two sides gain together."""
    starts, partner, gain = table
    low, high = starts[one], starts[one + 1]
    while low < high:
        middle = (low + high) // 2
        if partner[middle] < other:
            low = middle + 1
        else:
            high = middle
    if low < starts[one + 1] and partner[low] == other:
        return float(gain[low])
    return UNLISTED


@njit(cache=True)
@no_type_check
def facing(piece, quarter, cell, direction, at, turn, table, cols):
    """What a piece gains in one direction."""
    other = beside(cell, direction, len(at), cols)
    if other == NOWHERE or at[other] == NOWHERE:
        return 0.0
    neighbour = at[other]
    own = 4 * piece + (direction - quarter) % 4
    return gain_between(table, own, 4 * neighbour + (direction + 2 - turn[neighbour]) % 4)


@njit(cache=True)
@no_type_check
def at_home(piece, quarter, cell, homes):
    """What the network's opinion adds."""
    home, home_turn, pull = homes
    return float(pull[piece]) if home[piece] == cell and home_turn[piece] == quarter else 0.0


@njit(cache=True)
@no_type_check
def value(piece, quarter, cell, at, turn, table, homes, cols):
    """What a piece gains on a cell, given what lies around it."""
    total = at_home(piece, quarter, cell, homes)
    for direction in range(4):
        total += facing(piece, quarter, cell, direction, at, turn, table, cols)
    return total


@njit(cache=True)
@no_type_check
def worth(at, turn, table, homes, cols):
    """What a placement gains in all."""
    total = 0.0
    for cell in range(len(at)):
        piece = at[cell]
        if piece == NOWHERE:
            continue
        total += at_home(piece, turn[piece], cell, homes)
        for direction in range(2):
            total += facing(piece, turn[piece], cell, direction, at, turn, table, cols)
    return total


@njit(cache=True)
@no_type_check
def best_for(cell, at, turn, where, table, homes, cols):
    """The value, the loose piece and its turn of most value among the partners of what lies around an empty cell."""
    starts, partner, _ = table
    best, best_piece, best_turn = -np.inf, NOWHERE, 0
    for direction in range(4):
        other = beside(cell, direction, len(at), cols)
        if other == NOWHERE or at[other] == NOWHERE:
            continue
        shown = 4 * at[other] + (direction + 2 - turn[at[other]]) % 4
        for index in range(starts[shown], starts[shown + 1]):
            piece = partner[index] // 4
            if where[piece] != NOWHERE:
                continue
            quarter = (direction - partner[index]) % 4
            found = value(piece, quarter, cell, at, turn, table, homes, cols)
            if found > best:
                best, best_piece, best_turn = found, piece, quarter
    return best, best_piece, best_turn


@njit(cache=True)
@no_type_check
def grow(at, turn, where, table, homes, cols):
    """Put all pieces that lie nowhere into empty cells, always the most valuable one next.

    Where nothing likely is left, a piece goes home, or, as it lies, into the first empty cell.
    """
    cells = len(at)
    left, roomy = 0, len(turn) < cells
    for piece in range(len(turn)):
        left += where[piece] == NOWHERE
    known, heap = np.full(cells, -np.inf), [(0.0, 0, 0, 0)]
    heap.pop()
    if left:
        for cell in range(cells):
            if at[cell] == NOWHERE:
                _propose(cell, at, turn, where, table, homes, cols, known, heap)
    next_piece, next_cell = 0, 0
    while left > 0:
        cell, piece, quarter = _taken(at, turn, where, table, homes, cols, known, heap, roomy)
        if cell == NOWHERE:
            while where[next_piece] != NOWHERE:
                next_piece += 1
            while at[next_cell] != NOWHERE:
                next_cell += 1
            piece, quarter, cell = next_piece, turn[next_piece], next_cell
            if homes[0][piece] != NOWHERE and at[homes[0][piece]] == NOWHERE:
                cell, quarter = homes[0][piece], homes[1][piece]
        at[cell], where[piece], turn[piece] = piece, cell, quarter
        left -= 1
        for direction in range(4):
            other = beside(cell, direction, cells, cols)
            if other != NOWHERE and at[other] == NOWHERE:
                _propose(other, at, turn, where, table, homes, cols, known, heap)


@njit(cache=True)
@no_type_check
def _propose(cell, at, turn, where, table, homes, cols, known, heap):
    """Note the best piece for an empty cell."""
    found, piece, quarter = best_for(cell, at, turn, where, table, homes, cols)
    known[cell] = found
    if piece != NOWHERE:
        heapq.heappush(heap, (-found, cell, piece, quarter))


@njit(cache=True)
@no_type_check
def _taken(at, turn, where, table, homes, cols, known, heap, roomy):
    """The most valuable proposal that still holds, as cell, piece and turn; −1 if there is none."""
    while len(heap) > 0:
        lost, cell, piece, quarter = heapq.heappop(heap)
        if at[cell] != NOWHERE or -lost != known[cell]:
            continue
        if where[piece] != NOWHERE:
            _propose(cell, at, turn, where, table, homes, cols, known, heap)
            continue
        if roomy and lost > 0:
            continue
        return cell, piece, quarter
    return NOWHERE, 0, 0


@njit(cache=True)
@no_type_check
def margins(at, turn, where, table, homes, cols):
    """By how much each piece is worth more where it lies than any likely other piece or turn would be there."""
    margin = np.empty(len(turn))
    for piece in range(len(turn)):
        cell, quarter = where[piece], turn[piece]
        own = value(piece, quarter, cell, at, turn, table, homes, cols)
        rival = UNLISTED
        starts, partner, _ = table
        for direction in range(4):
            other = beside(cell, direction, len(at), cols)
            if other == NOWHERE or at[other] == NOWHERE:
                continue
            shown = 4 * at[other] + (direction + 2 - turn[at[other]]) % 4
            for index in range(starts[shown], starts[shown + 1]):
                candidate, turned = partner[index] // 4, (direction - partner[index]) % 4
                if candidate != piece or turned != quarter:
                    rival = max(rival, value(candidate, turned, cell, at, turn, table, homes, cols))
        margin[piece] = own - rival
    return margin


# ----------------------------------------------------------------------------------------------------------------------
# Better placements on large boards, by taking parts of one away and growing them back; see `search`.
#
# The moves are the same, but for windows, which are mostly small here; for the arrays see `sparse_growing`.
# Type checkers are kept away: they would wrap the functions, and then numba couldn't compile them.


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
    for _ in range(100):  # most likely matches lie together already
        mating = random.integers(0, len(likely))
        own, mate = likely[mating, 0], likely[mating, 1]
        if label[own // 4] != label[mate // 4]:
            _bring(own, mate, at, turn, where, label, cols)
            return
