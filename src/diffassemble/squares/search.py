"""Simulated annealing over placements: parts of one are taken away and put back. Loops that numba compiles.

A placement is three arrays: `at` holds the piece on each cell or −1, `turn` and `where` each piece's turn and cell or
−1. Sides of piece p are 4p … 4p + 3, clockwise from the right; at turn q its side s faces direction s + q. Its energy
is a sum of log odds, the higher the better: of sides that meet and of every piece on its cell (see `Terms`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64

from diffassemble.core.kernels import inner, kernel

NOWHERE = -1
_MOVES = 6


@dataclass(frozen=True)
class SearchConfig:
    """Numbers of the random moves, in the order in which the kernel takes them."""

    holds: float = 1.0
    """log odds above which two sides that meet hold a segment together"""
    weak: float = 2.0
    """mean, in log odds, of the random limit below which single pieces are taken away"""
    taken: float = 0.7
    """share of the small segments that one move takes from a large board (listed terms)"""
    tries: int = 100
    """likely pairs drawn on a large board until one is found whose sides do not meet yet; most do"""
    gain: float = 1e-4
    """log odds by which a placement must be better to replace the best; less is rounding"""


class Terms(NamedTuple):
    """The terms of an energy in log odds: dense tables where `pairs` is not empty, else lists; one type for numba.

    dense: `pairs[a, b]` (symmetric) of sides a and b; `places[c, p, q]` of piece p at turn q on cell c.
    listed: the partners of side a are `partner[starts[a] : starts[a + 1]]`, ascending, with their `term`; any other
    pair counts `unlisted`. Piece p at turn `home_turn[p]` on cell `home[p]` (−1: none) counts `home_term[p]`, and any
    other place 0. So nothing has the size pieces × pieces.
    """

    pairs: Float32[np.ndarray, "sides sides"]
    places: Float32[np.ndarray, "cells n 4"]
    starts: Int64[np.ndarray, "sides_and_one"]
    partner: Int64[np.ndarray, "m"]
    term: Float32[np.ndarray, "m"]
    home: Int64[np.ndarray, "n"]
    home_turn: Int64[np.ndarray, "n"]
    home_term: Float32[np.ndarray, "n"]
    unlisted: float


@kernel
def search(at, turn, where, terms, likely, cols, rounds, hot, cold, random, holds, weak, taken, tries, gain):
    """Improve a placement in place by simulated annealing; returns its energy.

    Pieces at −1 are loose; `likely` (m, 2) are pairs of sides worth bringing together. In `rounds` moves the
    temperature, in log odds, falls from `hot` to `cold`. The last five arguments are those of `SearchConfig`.
    """
    # 1. Loose pieces are put down.
    put_down(at, turn, where, terms, cols)
    best = energy(at, turn, terms, cols)
    current, label = best, np.empty(len(turn), np.int64)
    cells, count = len(at), len(turn)
    at_now, turn_now, where_now = np.empty(cells, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    at_try, turn_try, where_try = np.empty(cells, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    _copy(at, turn, where, at_now, turn_now, where_now)
    for number in range(rounds):
        # 2. A copy of the current placement loses some of its pieces, by segments that hold together.
        _copy(at_now, turn_now, where_now, at_try, turn_try, where_try)
        segments(at_try, turn_try, terms, cols, holds, label)
        _disturb(at_try, turn_try, where_try, terms, likely, label, cols, random, weak, taken, tries)
        # 3. They are put down again, the best first.
        put_down(at_try, turn_try, where_try, terms, cols)
        found = energy(at_try, turn_try, terms, cols)
        # 4. What is not much worse becomes the current placement: Metropolis' rule.
        allowed = (hot + (cold - hot) * number / rounds) * -np.log(1e-9 + random.random())
        if found >= current - allowed:
            current = found
            at_now, at_try = at_try, at_now
            turn_now, turn_try = turn_try, turn_now
            where_now, where_try = where_try, where_now
        # 5. The best of all is kept.
        if current > best + gain:
            best = current
            _copy(at_now, turn_now, where_now, at, turn, where)
    return best


@kernel
def energy(at, turn, terms, cols):
    """The energy of a placement."""
    total = 0.0
    for cell in range(len(at)):
        piece = at[cell]
        if piece != NOWHERE:
            total += place_term(terms, cell, piece, turn[piece])
            for direction in range(2):
                total += facing(piece, turn[piece], cell, direction, at, turn, terms, cols)
    return total


@kernel
def margins(at, turn, where, terms, cols):
    """By how much each piece's terms are higher than those of any rival piece or turn on its cell.

    Of listed terms, only pieces that are listed with a neighbour are rivals, and none counts less than `unlisted`.
    """
    margin = np.empty(len(turn))
    for piece in range(len(turn)):
        cell, rival = where[piece], -np.inf
        if terms.pairs.shape[0] > 0:
            for other in range(len(turn)):
                for quarter in range(4):
                    if other != piece or quarter != turn[piece]:
                        found = local_energy(other, quarter, cell, at, turn, terms, cols)
                        rival = found if found > rival else rival
        else:
            rival = terms.unlisted
            for direction in range(4):
                other = beside(cell, direction, len(at), cols)
                if other == NOWHERE or at[other] == NOWHERE:
                    continue
                side = 4 * at[other] + (direction + 2 - turn[at[other]]) % 4
                for index in range(terms.starts[side], terms.starts[side + 1]):
                    candidate, quarter = terms.partner[index] // 4, (direction - terms.partner[index]) % 4
                    if candidate != piece or quarter != turn[piece]:
                        found = local_energy(candidate, quarter, cell, at, turn, terms, cols)
                        rival = found if found > rival else rival
        margin[piece] = local_energy(piece, turn[piece], cell, at, turn, terms, cols) - rival
    return margin


@kernel
def segment_margins(at, turn, where, terms, cols, label, shift_only, margin):
    """By how much the terms of each segment are higher in its place than anywhere else on the board.

    Elsewhere, pieces that it covers do not count, so the margin is rather too small. Of the segment `shift_only` only
    the places count, and it may only be shifted: with all the others. Infinite where there is no other place.
    """
    count, cells, rows = len(turn), len(at), len(at) // cols
    member, covered = np.empty(count, np.int64), np.full(cells, NOWHERE, np.int64)
    tried = 0
    for chosen in range(count):
        if label[chosen] != chosen:
            continue
        size = 0
        for piece in range(count):
            if label[piece] == chosen:
                member[size] = piece
                size += 1
        home, alone, own, rival = where[member[0]], chosen != shift_only, -np.inf, -np.inf
        for by in range(4 if alone else 1):
            for start in range(cells):
                tried += 1
                total, inside = 0.0, True
                for mark in range(2):  # covered cells must be known before neighbours are added
                    for index in range(size):
                        piece = member[index]
                        y, x = where[piece] // cols - home // cols, where[piece] % cols - home % cols
                        for _ in range(by):
                            y, x = x, -y
                        row, col = start // cols + y, start % cols + x
                        inside = 0 <= row < rows and 0 <= col < cols
                        if not inside:
                            break
                        cell, quarter = row * cols + col, (turn[piece] + by) % 4
                        if mark == 0:
                            covered[cell] = tried
                            total += place_term(terms, cell, piece, quarter)
                        elif alone:
                            for direction in range(4):
                                other = beside(cell, direction, cells, cols)
                                if other == NOWHERE or covered[other] == tried or at[other] == NOWHERE:
                                    continue
                                if label[at[other]] != chosen:
                                    total += facing(piece, quarter, cell, direction, at, turn, terms, cols)
                    if not inside:
                        break
                if not inside:
                    continue
                if by == 0 and start == home:
                    own = total
                elif total > rival:
                    rival = total
        for index in range(size):
            margin[member[index]] = own - rival


@kernel
def contacts(at, turn, terms, cols, pieces, values):
    """Write the two pieces and the pair term of every two sides that meet; gives how many there are."""
    count = 0
    for cell in range(len(at)):
        for direction in range(2):
            other = beside(cell, direction, len(at), cols)
            if at[cell] != NOWHERE and other != NOWHERE and at[other] != NOWHERE:
                pieces[count, 0], pieces[count, 1] = at[cell], at[other]
                values[count] = facing(at[cell], turn[at[cell]], cell, direction, at, turn, terms, cols)
                count += 1
    return count


@inner
def beside(cell, direction, cells, cols):
    """The next cell to the right, below, to the left or above, or −1 beyond the board."""
    if direction == 0:
        return cell + 1 if (cell + 1) % cols else NOWHERE
    if direction == 1:
        return cell + cols if cell + cols < cells else NOWHERE
    if direction == 2:
        return cell - 1 if cell % cols else NOWHERE
    return cell - cols if cell >= cols else NOWHERE


@inner
def facing(piece, quarter, cell, direction, at, turn, terms, cols):
    """The pair term of a piece with its neighbour in one direction."""
    other = beside(cell, direction, len(at), cols)
    if other == NOWHERE or at[other] == NOWHERE:
        return 0.0
    neighbour = at[other]
    own = 4 * piece + (direction - quarter) % 4
    return pair_term(terms, own, 4 * neighbour + (direction + 2 - turn[neighbour]) % 4)


@inner
def local_energy(piece, quarter, cell, at, turn, terms, cols):
    """The terms that a piece has on a cell, with its neighbours there."""
    total = place_term(terms, cell, piece, quarter)
    for direction in range(4):
        total += facing(piece, quarter, cell, direction, at, turn, terms, cols)
    return total


@inner
def pair_term(terms, own, other):
    """What two sides count if they meet."""
    if terms.pairs.shape[0] > 0:
        # The neighbour's side first: when many pieces are tried beside it, its row stays at hand.
        return float(terms.pairs[other, own])
    low, high = terms.starts[own], terms.starts[own + 1]
    while low < high:
        middle = (low + high) // 2
        if terms.partner[middle] < other:
            low = middle + 1
        else:
            high = middle
    if low < terms.starts[own + 1] and terms.partner[low] == other:
        return float(terms.term[low])
    return terms.unlisted


@inner
def place_term(terms, cell, piece, quarter):
    """What a piece counts on a cell at a turn."""
    if terms.pairs.shape[0] > 0:
        return float(terms.places[cell, piece, quarter])
    if terms.home[piece] == cell and terms.home_turn[piece] == quarter:
        return float(terms.home_term[piece])
    return 0.0


@inner
def put_down(at, turn, where, terms, cols):
    """Put all loose pieces into empty cells, always the one that counts most next."""
    if terms.pairs.shape[0] > 0:
        _put_down_dense(at, turn, where, terms, cols)
    else:
        _put_down_listed(at, turn, where, terms, cols)


@inner
def _put_down_dense(at, turn, where, terms, cols):
    cells, count, left, free = len(at), len(turn), 0, 0
    loose, empty = np.empty(count, np.int64), np.empty(cells, np.int64)
    for piece in range(count):
        if where[piece] == NOWHERE:
            loose[left] = piece
            left += 1
    best_piece, best_turn = np.empty(cells, np.int64), np.empty(cells, np.int64)
    best, stale = np.empty(cells), np.empty(cells, np.bool_)
    for cell in range(cells):
        stale[cell] = True
        if at[cell] == NOWHERE:
            empty[free] = cell
            free += 1
    while left > 0:
        chosen = NOWHERE
        for apart in range(2):  # cells apart from all others only if nothing fits elsewhere
            for index in range(free):
                cell = empty[index]
                if _touches(cell, at, cols) == (apart == 1):
                    continue
                if stale[cell] or where[best_piece[cell]] != NOWHERE:
                    best[cell] = -np.inf
                    for number in range(left):
                        piece = loose[number]
                        for quarter in range(4):
                            found = local_energy(piece, quarter, cell, at, turn, terms, cols)
                            if found > best[cell]:
                                best[cell], best_piece[cell], best_turn[cell] = found, piece, quarter
                    stale[cell] = False
                if chosen == NOWHERE or best[cell] > best[empty[chosen]]:
                    chosen = index
            if chosen != NOWHERE and (best[empty[chosen]] >= 0 or count >= cells):
                break
        cell = empty[chosen]
        piece = best_piece[cell]
        at[cell], where[piece], turn[piece] = piece, cell, best_turn[cell]
        free, left = free - 1, left - 1
        empty[chosen] = empty[free]
        number = 0
        while loose[number] != piece:
            number += 1
        loose[number] = loose[left]
        for direction in range(4):
            other = beside(cell, direction, cells, cols)
            if other != NOWHERE:
                stale[other] = True


@inner
def _put_down_listed(at, turn, where, terms, cols):
    """Cells with their best proposals compete in a binary tree, whose node 1 is the best cell of all.

    Where nothing likely is left, a piece goes to its listed place, or at its present turn into the first empty cell.
    """
    cells, left = len(at), 0
    for piece in range(len(turn)):
        left += where[piece] == NOWHERE
    if left == 0:
        return
    known, best_piece, best_turn = np.full(cells, -np.inf), np.full(cells, NOWHERE), np.zeros(cells, np.int64)
    leaves = 1
    while leaves < cells:
        leaves *= 2
    tree = np.full(2 * leaves, NOWHERE)
    for cell in range(cells):
        if at[cell] == NOWHERE:
            _propose(cell, at, turn, where, terms, cols, known, best_piece, best_turn, tree)
    next_piece, next_cell = 0, 0
    while left > 0:
        cell = tree[1]
        if cell != NOWHERE and where[best_piece[cell]] != NOWHERE:
            _propose(cell, at, turn, where, terms, cols, known, best_piece, best_turn, tree)
            continue
        if cell == NOWHERE or (len(turn) < cells and known[cell] < 0):
            while where[next_piece] != NOWHERE:
                next_piece += 1
            while at[next_cell] != NOWHERE:
                next_cell += 1
            piece, quarter, cell = next_piece, turn[next_piece], next_cell
            if terms.home[piece] != NOWHERE and at[terms.home[piece]] == NOWHERE:
                cell, quarter = terms.home[piece], terms.home_turn[piece]
        else:
            piece, quarter = best_piece[cell], best_turn[cell]
        at[cell], where[piece], turn[piece] = piece, cell, quarter
        left -= 1
        _compete(cell, np.int64(NOWHERE), known, tree)
        for direction in range(4):
            other = beside(cell, direction, cells, cols)
            if other != NOWHERE and at[other] == NOWHERE:
                _propose(other, at, turn, where, terms, cols, known, best_piece, best_turn, tree)


@inner
def _touches(cell, at, cols):
    for direction in range(4):
        other = beside(cell, direction, len(at), cols)
        if other != NOWHERE and at[other] != NOWHERE:
            return True
    return False


@inner
def _propose(cell, at, turn, where, terms, cols, known, best_piece, best_turn, tree):
    """Note the loose piece, among the partners of the neighbours of an empty cell, that counts most there."""
    best, best_piece[cell] = -np.inf, NOWHERE
    for direction in range(4):
        other = beside(cell, direction, len(at), cols)
        if other == NOWHERE or at[other] == NOWHERE:
            continue
        side = 4 * at[other] + (direction + 2 - turn[at[other]]) % 4
        for index in range(terms.starts[side], terms.starts[side + 1]):
            piece = terms.partner[index] // 4
            if where[piece] != NOWHERE:
                continue
            quarter = (direction - terms.partner[index]) % 4
            found = local_energy(piece, quarter, cell, at, turn, terms, cols)
            if found > best:
                best, best_piece[cell], best_turn[cell] = found, piece, quarter
    known[cell] = best
    _compete(cell, cell if best_piece[cell] != NOWHERE else np.int64(NOWHERE), known, tree)


@inner
def _compete(cell, entrant, known, tree):
    """Set the leaf of a cell to itself or −1 and renew the winners above it: the highest, of equals the first cell."""
    node = len(tree) // 2 + cell
    tree[node] = entrant
    while node > 1:
        node //= 2
        one, two = tree[2 * node], tree[2 * node + 1]
        tree[node] = two if one == NOWHERE or (two != NOWHERE and known[two] > known[one]) else one


@inner
def _disturb(at, turn, where, terms, likely, label, cols, random, weak, taken, tries):
    """One random move: segments or weak pieces go, a window is emptied, all is shifted, a segment turned or moved."""
    move, count, rows, large = _below(np.int64(_MOVES), random), len(turn), len(at) // cols, terms.pairs.shape[0] == 0
    if move == 0:  # some segments, all but one at most; on large boards, of those up to a random size, most
        size, chance = np.zeros(count, np.int64), np.empty(count)
        keep, anchor, limit = 0.0, NOWHERE, 0.0
        if not large:
            keep, anchor = random.random(), label[_below(count, random)]
        for piece in range(count):
            size[label[piece]] += 1
            chance[piece] = random.random()
        if large:
            limit = count ** random.random()
        for piece in range(count):
            own = label[piece]
            if (size[own] < limit and chance[own] < taken) if large else (own != anchor and chance[own] > keep):
                _lift(piece, at, where)
    elif move == 1:
        limit = -weak * np.log(1e-9 + random.random())
        for piece in range(count):
            if local_energy(piece, turn[piece], where[piece], at, turn, terms, cols) < limit:
                _lift(piece, at, where)
    elif move == 2:
        if large:
            high, wide = int(rows ** random.random()), int(cols ** random.random())
        else:
            high, wide = 1 + _below(rows // 2, random), 1 + _below(cols // 2, random)
        top, left = _below(rows - high + 1, random), _below(cols - wide + 1, random)
        for row in range(top, top + high):
            for col in range(left, left + wide):
                if at[row * cols + col] != NOWHERE:
                    _lift(at[row * cols + col], at, where)
    elif move == 3 or len(likely) == 0:
        down, right = _below(np.int64(3), random) - 1, _below(np.int64(3), random) - 1
        _carry(at, turn, where, label, np.int64(NOWHERE), np.int64(0), 0.0, 0.0, down, right, cols)
    elif move == 4:
        _turn_segment(at, turn, where, label, label[_below(count, random)], cols, random)
    else:
        for _ in range(tries if large else 1):
            match = _below(len(likely), random)
            if label[likely[match, 0] // 4] != label[likely[match, 1] // 4]:
                _bring(likely[match, 0], likely[match, 1], at, turn, where, label, cols)
                break


@inner
def _below(limit, random):
    """A random number from 0 to below `limit`; 0 if that is less than 1."""
    return random.integers(0, limit) if limit > 1 else 0


@inner
def _copy(at, turn, where, at_copy, turn_copy, where_copy):
    for cell in range(len(at)):
        at_copy[cell] = at[cell]
    for piece in range(len(turn)):
        turn_copy[piece], where_copy[piece] = turn[piece], where[piece]


@kernel
def segments(at, turn, terms, cols, holds, label):
    """Label pieces that hold together by sides that meet."""
    for piece in range(len(label)):
        label[piece] = piece
    for cell in range(len(at)):
        piece = at[cell]
        if piece == NOWHERE:
            continue
        for direction in range(2):
            if facing(piece, turn[piece], cell, direction, at, turn, terms, cols) > holds:
                one, two = _root(label, piece), _root(label, at[beside(cell, direction, len(at), cols)])
                label[one] = two
    for piece in range(len(label)):
        label[piece] = _root(label, piece)


@inner
def _root(label, piece):
    while label[piece] != piece:
        label[piece] = label[label[piece]]
        piece = label[piece]
    return piece


@inner
def _lift(piece, at, where):
    if where[piece] != NOWHERE:
        at[where[piece]] = NOWHERE
        where[piece] = NOWHERE


@inner
def _bring(own, other, at, turn, where, label, cols):
    """Carry the segment of one side to where that side faces another."""
    piece, stayer = own // 4, other // 4
    if where[piece] == NOWHERE or where[stayer] == NOWHERE:
        return
    direction = (other + turn[stayer]) % 4
    by = (direction + 2 - own - turn[piece]) % 4
    row, col = where[piece] // cols, where[piece] % cols
    down = where[stayer] // cols + (direction == 1) - (direction == 3) - row
    right = where[stayer] % cols + (direction == 0) - (direction == 2) - col
    _carry(at, turn, where, label, label[piece], by, float(row), float(col), down, right, cols)


@inner
def _turn_segment(at, turn, where, label, chosen, cols, random):
    """Turn a segment about the middle of its box, to the nearest cells."""
    top, bottom, left, right = len(at), 0, len(at), 0
    for piece in range(len(turn)):
        if label[piece] == chosen and where[piece] != NOWHERE:
            row, col = where[piece] // cols, where[piece] % cols
            top, bottom = row if row < top else top, row if row > bottom else bottom
            left, right = col if col < left else left, col if col > right else right
    by = 1 + _below(np.int64(3), random)
    middle, across = (top + bottom) / 2, (left + right) / 2
    if by % 2 == 1 and (bottom - top + right - left) % 2 == 1:
        middle += 0.5
    _carry(at, turn, where, label, chosen, by, middle, across, np.int64(0), np.int64(0), cols)


@inner
def _carry(at, turn, where, label, chosen, by, row, col, down, right, cols):
    """Turn a segment (−1: everything) about a point and shift it; what it covers, or leaves the board, is lifted."""
    rows = len(at) // cols
    moved, goal = np.empty(len(turn), np.int64), np.empty(len(turn), np.int64)
    count = 0
    for piece in range(len(turn)):
        if where[piece] == NOWHERE or (chosen != NOWHERE and label[piece] != chosen):
            continue
        y, x = where[piece] // cols - row, where[piece] % cols - col
        for _ in range(by):
            y, x = x, -y
        new_row, new_col = int(y + row) + down, int(x + col) + right  # whole numbers, whatever the turn
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
