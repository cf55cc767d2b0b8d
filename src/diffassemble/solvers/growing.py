"""What a placement of pieces on a board is worth, and how loose pieces are put down: loops that numba compiles.

A placement gains `gains[a, b]` (symmetric) where sides a and b meet, and `unary[c, p, q]` where piece p lies at turn
q on cell c; the higher the sum, the better. Sides of piece p are 4p … 4p + 3, clockwise from the right; at turn q its
side s faces direction s + q. `at` holds the piece on each cell or −1, `turn` and `where` each piece's turn and cell
or −1.
Type checkers are kept away: they would wrap the functions, and then numba couldn't compile them.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

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
