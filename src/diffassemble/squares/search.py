"""Better placements, by taking parts of one away and growing them back: loops that numba compiles."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float32, Int64
from numba import njit

# ----------------------------------------------------------------------------------------------------------------------
# What a placement of pieces on a board is worth, and how loose pieces are put down: loops that numba compiles.
#
# A placement gains `gains[a, b]` (symmetric) where sides a and b meet, and `unary[c, p, q]` where piece p lies at turn
# q on cell c; the higher the sum, the better. Sides of piece p are 4p … 4p + 3, clockwise from the right; at turn q its
# side s faces direction s + q. `at` holds the piece on each cell or −1, `turn` and `where` each piece's turn and cell
# or −1.
# Type checkers are kept away: they would wrap the functions, and then numba couldn't compile them.


NOWHERE = -1


@njit(cache=True)
@no_type_check
def worth(at, turn, gains, unary, cols):
    """What a placement gains in all."""
    total = 0.0
    for cell in range(len(at)):
        piece = at[cell]
        if piece == NOWHERE:
            continue
        total += unary[cell, piece, turn[piece]]
        for direction in range(2):
            total += facing(piece, turn[piece], cell, direction, at, turn, gains, cols)
    return total


@njit(cache=True)
@no_type_check
def beside(cell, direction, cells, cols):
    """The next cell to the right, below, to the left or above, or −1 beyond the board."""
    if direction == 0:
        return cell + 1 if (cell + 1) % cols else NOWHERE
    if direction == 1:
        return cell + cols if cell + cols < cells else NOWHERE
    if direction == 2:
        return cell - 1 if cell % cols else NOWHERE
    return cell - cols if cell >= cols else NOWHERE


@njit(cache=True)
@no_type_check
def facing(piece, quarter, cell, direction, at, turn, gains, cols):
    """What a piece gains in one direction."""
    other = beside(cell, direction, len(at), cols)
    if other == NOWHERE or at[other] == NOWHERE:
        return 0.0
    neighbour = at[other]
    own = 4 * piece + (direction - quarter) % 4
    # The neighbour's side first: when many pieces are tried beside it, its row of gains stays at hand.
    return gains[4 * neighbour + (direction + 2 - turn[neighbour]) % 4, own]


@njit(cache=True)
@no_type_check
def value(piece, quarter, cell, at, turn, gains, unary, cols):
    """What a piece gains on a cell, given what lies around it."""
    total = float(unary[cell, piece, quarter])
    for direction in range(4):
        total += facing(piece, quarter, cell, direction, at, turn, gains, cols)
    return total


@njit(cache=True)
@no_type_check
def grow(at, turn, where, gains, unary, cols):
    """Put all pieces that lie nowhere into empty cells, always the most valuable one next."""
    cells, roomy = len(at), len(turn) < len(at)
    loose, empty = np.flatnonzero(where == NOWHERE), np.flatnonzero(at == NOWHERE)
    left, free = len(loose), len(empty)
    best_piece, best_turn = np.full(cells, NOWHERE), np.zeros(cells, np.int64)
    best_value, stale = np.full(cells, -np.inf), np.ones(cells, np.bool_)
    while left > 0:
        chosen = NOWHERE
        for touching in (True, False):  # cells apart from all others only if nothing fits elsewhere
            for index in range(free):
                cell = empty[index]
                if _touches(cell, at, cols) != touching:
                    continue
                if stale[cell] or where[best_piece[cell]] != NOWHERE:
                    _judge(cell, loose[:left], at, turn, gains, unary, cols, best_piece, best_turn, best_value)
                    stale[cell] = False
                if chosen == NOWHERE or best_value[cell] > best_value[empty[chosen]]:
                    chosen = index
            if chosen != NOWHERE and (best_value[empty[chosen]] >= 0 or not roomy):
                break
        cell = empty[chosen]
        piece = best_piece[cell]
        at[cell], where[piece], turn[piece] = piece, cell, best_turn[cell]
        free, left = free - 1, left - 1
        empty[chosen] = empty[free]
        _drop(loose, piece, left)
        for direction in range(4):
            other = beside(cell, direction, cells, cols)
            if other != NOWHERE:
                stale[other] = True


@njit(cache=True)
@no_type_check
def _drop(loose, piece, last):
    """Take a piece off the list by putting the last one in its place."""
    index = 0
    while loose[index] != piece:
        index += 1
    loose[index] = loose[last]


@njit(cache=True)
@no_type_check
def _touches(cell, at, cols):
    for direction in range(4):
        other = beside(cell, direction, len(at), cols)
        if other != NOWHERE and at[other] != NOWHERE:
            return True
    return False


@njit(cache=True)
@no_type_check
def _judge(cell, loose, at, turn, gains, unary, cols, best_piece, best_turn, best_value):
    """Find the loose piece and its turn of most value for an empty cell."""
    best_value[cell] = -np.inf
    for piece in loose:
        for quarter in range(4):
            found = value(piece, quarter, cell, at, turn, gains, unary, cols)
            if found > best_value[cell]:
                best_value[cell], best_piece[cell], best_turn[cell] = found, piece, quarter


@njit(cache=True)
@no_type_check
def margins(at, turn, where, gains, unary, cols):
    """By how much each piece is worth more where it lies than any other piece or turn would be there."""
    margin = np.empty(len(turn))
    for piece in range(len(turn)):
        rival = -np.inf
        for other in range(len(turn)):
            for quarter in range(4):
                if other != piece or quarter != turn[piece]:
                    rival = max(rival, value(other, quarter, where[piece], at, turn, gains, unary, cols))
        margin[piece] = value(piece, turn[piece], where[piece], at, turn, gains, unary, cols) - rival
    return margin


# ----------------------------------------------------------------------------------------------------------------------
# Better placements, by taking parts of one away and growing them back: loops that numba compiles.
#
# For the arrays see `growing`. Type checkers are kept away: they would wrap the functions, and then numba couldn't
# compile them.


# Realised matings above these log odds hold a segment together.
_TOGETHER = 1.0
_MOVES = 6


@njit(cache=True)
@no_type_check
def search(
    at: Int64[np.ndarray, "cells"],
    turn: Int64[np.ndarray, "n"],
    where: Int64[np.ndarray, "n"],
    gains: Float32[np.ndarray, "sides sides"],
    unary: Float32[np.ndarray, "cells n 4"],
    likely: Int64[np.ndarray, "m 2"],
    cols: int,
    rounds: int,
    hot: float,
    cold: float,
    random: np.random.Generator,
) -> float:
    """Improve a placement in place over so many rounds; gives its worth.

    Each round changes the current placement by a random move and keeps the change unless it is much worse; how much
    is borne falls from `hot` to `cold`. The best of all is the answer. `likely` lists matings worth trying.
    """
    cells, count = len(at), len(turn)
    grow(at, turn, where, gains, unary, cols)
    best = worth(at, turn, gains, unary, cols)
    current, label = best, np.empty(count, np.int64)
    at_now, turn_now, where_now = at.copy(), turn.copy(), where.copy()
    at_try, turn_try, where_try = at.copy(), turn.copy(), where.copy()
    for number in range(rounds):
        for cell in range(cells):
            at_try[cell] = at_now[cell]
        for piece in range(count):
            turn_try[piece], where_try[piece] = turn_now[piece], where_now[piece]
        _segments(at_try, turn_try, gains, cols, label)
        _disturb(at_try, turn_try, where_try, gains, unary, likely, label, cols, random)
        grow(at_try, turn_try, where_try, gains, unary, cols)
        found = worth(at_try, turn_try, gains, unary, cols)
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
def _segments(at, turn, gains, cols, label):
    """Label pieces that realised matings hold together."""
    for piece in range(len(label)):
        label[piece] = piece
    for cell in range(len(at)):
        piece = at[cell]
        if piece == NOWHERE:
            continue
        for direction in range(2):
            if facing(piece, turn[piece], cell, direction, at, turn, gains, cols) > _TOGETHER:
                one, two = _root(label, piece), _root(label, at[beside(cell, direction, len(at), cols)])
                label[one] = two
    for piece in range(len(label)):
        label[piece] = _root(label, piece)


@njit(cache=True)
@no_type_check
def _root(label, piece):
    while label[piece] != piece:
        label[piece] = label[label[piece]]
        piece = label[piece]
    return piece


@njit(cache=True)
@no_type_check
def _disturb(at, turn, where, gains, unary, likely, label, cols, random):
    """One random move: whole segments go, are moved to a likely mate, shifted or turned; or a window is emptied."""
    move = random.integers(0, _MOVES)
    count, cells = len(turn), len(at)
    if move == 0:  # some segments go
        keep, anchor = random.random(), label[random.integers(0, count)]
        chance = random.random(count)
        for piece in range(count):
            if label[piece] != anchor and chance[label[piece]] > keep:
                _lift(piece, at, where)
    elif move == 1:  # pieces go that gain nothing where they lie, and some that gain little
        limit = -2 * np.log(1e-9 + random.random())
        for piece in range(count):
            if value(piece, turn[piece], where[piece], at, turn, gains, unary, cols) < limit:
                _lift(piece, at, where)
    elif move == 2:  # a window is emptied
        rows = cells // cols
        high, wide = 1 + random.integers(0, max(1, rows // 2)), 1 + random.integers(0, max(1, cols // 2))
        top, left = random.integers(0, rows - high + 1), random.integers(0, cols - wide + 1)
        for cell in range(cells):
            if top <= cell // cols < top + high and left <= cell % cols < left + wide and at[cell] != NOWHERE:
                _lift(at[cell], at, where)
    elif move == 3 or len(likely) == 0:  # all is shifted
        down, right = random.integers(-1, 2), random.integers(-1, 2)
        _carry(at, turn, where, label, -1, 0, 0.0, 0.0, down, right, cols)
    elif move == 4:  # a segment is turned about its middle
        _turn_segment(at, turn, where, label, label[random.integers(0, count)], cols, random)
    else:
        mating = random.integers(0, len(likely))
        _bring(likely[mating, 0], likely[mating, 1], at, turn, where, label, cols)


@njit(cache=True)
@no_type_check
def _lift(piece, at, where):
    if where[piece] != NOWHERE:
        at[where[piece]] = NOWHERE
        where[piece] = NOWHERE


@njit(cache=True)
@no_type_check
def _bring(own, mate, at, turn, where, label, cols):
    """Carry the segment of one side to where that side faces its mate."""
    piece, stayer = own // 4, mate // 4
    if label[piece] == label[stayer] or where[piece] == NOWHERE or where[stayer] == NOWHERE:
        return
    direction = (mate + turn[stayer]) % 4
    quarter = (direction + 2 - own) % 4
    row, col = where[stayer] // cols, where[stayer] % cols
    row, col = row + (direction == 1) - (direction == 3), col + (direction == 0) - (direction == 2)
    by = (quarter - turn[piece]) % 4
    from_row, from_col = where[piece] // cols, where[piece] % cols
    down, right = row - from_row, col - from_col
    _carry(at, turn, where, label, label[piece], by, from_row * 1.0, from_col * 1.0, down, right, cols)


@njit(cache=True)
@no_type_check
def _turn_segment(at, turn, where, label, chosen, cols, random):
    """Turn a segment about the middle of its box, to the nearest cells."""
    top, bottom, left, right = len(at), 0, len(at), 0
    for piece in range(len(turn)):
        if label[piece] == chosen and where[piece] != NOWHERE:
            row, col = where[piece] // cols, where[piece] % cols
            top, bottom, left, right = min(top, row), max(bottom, row), min(left, col), max(right, col)
    by = 1 + random.integers(0, 3)
    row, col = (top + bottom) / 2, (left + right) / 2
    if by % 2 == 1 and (bottom - top + right - left) % 2 == 1:
        row += 0.5
    _carry(at, turn, where, label, chosen, by, row, col, 0, 0, cols)


@njit(cache=True)
@no_type_check
def _carry(at, turn, where, label, chosen, by, row, col, down, right, cols):
    """Turn a segment (−1: everything) about a point and shift it; what it covers, or leaves the board, is lifted."""
    rows = len(at) // cols
    moved, goal = np.empty(len(turn), np.int64), np.empty(len(turn), np.int64)
    count = 0
    for piece in range(len(turn)):
        if where[piece] == NOWHERE or (chosen >= 0 and label[piece] != chosen):
            continue
        y, x = where[piece] // cols - row, where[piece] % cols - col
        for _ in range(by):
            y, x = x, -y
        new_row, new_col = int(np.round(y + row)) + down, int(np.round(x + col)) + right
        inside = 0 <= new_row < rows and 0 <= new_col < cols
        moved[count], goal[count] = piece, new_row * cols + new_col if inside else NOWHERE
        count += 1
    for index in range(count):
        _lift(moved[index], at, where)
    for index in range(count):
        piece, cell = moved[index], goal[index]
        turn[piece] = (turn[piece] + by) % 4
        if cell != NOWHERE:
            if at[cell] != NOWHERE:
                _lift(at[cell], at, where)
            at[cell], where[piece] = piece, cell
