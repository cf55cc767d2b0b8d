"""Trees of pieces grown along matches of sides, and what the frames of a board hold of them.

Every tree has a frame of its own, in which each of its pieces has a place (x right, y down, in cells) and a turn. Trees
may have to keep to the shape of a board (Gallagher 2012 and Yu 2015: trimming). Loops that numba compiles come last.
Array operations are avoided there: they take numba many times as long to compile as loops. Type checkers are kept away:
they would wrap the functions, and then numba couldn't compile them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numba import njit

from diffassemble.core import Board
from diffassemble.core.board import SIDES, WAYS

# Called by other compiled functions only, which keep its code with theirs.
_inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)

_FREE = -1


@dataclass(frozen=True)
class Forest:
    """Pieces in trees, changed in place as they grow; pieces with the same `label` are in one tree.

    `following` links the pieces of a tree to a ring, `size` is that of the tree with this label, and `lookup` is a hash
    table of all cells that a tree has ever taken. A tree that was joined to another leaves its entries there:
    its label never comes back.
    """

    label: Int64[np.ndarray, "n"]
    following: Int64[np.ndarray, "n"]
    size: Int64[np.ndarray, "n"]
    place: Int64[np.ndarray, "n 2"]
    turn: Int64[np.ndarray, "n"]
    lookup: Int64[np.ndarray, "h"]

    @staticmethod
    def of(count: int) -> Forest:
        """Every piece for itself, as it lies."""
        # The smaller tree moves, so a piece moves at most log2(n) times, and each time takes one more entry.
        entries = count * (count.bit_length() + 1)
        forest = Forest(
            label=np.arange(count),
            following=np.arange(count),
            size=np.ones(count, np.int64),
            place=np.zeros((count, 2), np.int64),
            turn=np.zeros(count, np.int64),
            lookup=np.full(1 << (2 * entries).bit_length(), _FREE, np.int64),
        )
        _note_all(forest.lookup, count)
        return forest

    @property
    def trees(self) -> int:
        """How many there are."""
        return len(np.unique(self.label))

    @property
    def largest(self) -> Int64[np.ndarray, "k"]:
        """The pieces of the largest tree."""
        return np.flatnonzero(self.label == self.label[self.size[self.label].argmax()])

    def grow(self, matches: Int64[np.ndarray, "m 2"], start: int, joins: int) -> int:
        """Try the matches from `start` on until so many joins were made; returns the first match not yet tried."""
        return int(_join(matches, start, joins, np.empty(len(matches), np.bool_), None, *self._state))

    @property
    def _state(self) -> tuple[np.ndarray, ...]:
        return self.label, self.following, self.size, self.place, self.turn, self.lookup


@dataclass(frozen=True)
class FramedForest:
    """A forest whose trees reach beyond the frame only with a few of their pieces.

    `held` is how many pieces of the tree with this label the best frame holds.
    """

    forest: Forest
    board: Board
    held: Int64[np.ndarray, "n"]

    @staticmethod
    def of(board: Board, turns: Int64[np.ndarray, "n"]) -> FramedForest:
        """Every piece for itself, turned like that."""
        forest = Forest.of(len(turns))
        forest.turn[:] = turns
        return FramedForest(forest, board, np.ones(len(turns), np.int64))

    def join(self, sides: Int64[np.ndarray, "m 2"]) -> Bool[np.ndarray, "m"]:
        """Join trees along matches, one after the other; which matches were refused.

        A match is refused if pieces would lie on each other, or if of the smaller tree's pieces the best frame would
        hold no more than half.
        """
        refused = np.zeros(len(sides), np.bool_)
        frame = self.held, self.board.rows, self.board.cols
        _join(sides, 0, len(sides), refused, frame, *self.forest._state)
        return refused

    def open_sides(self) -> Bool[np.ndarray, "sides"]:
        """Which sides look at a cell that their own tree leaves free."""
        label, place, turn = self.forest.label, self.forest.place, self.forest.turn
        way = (turn[:, None] + np.arange(SIDES)) % SIDES
        beside = place[:, None] + WAYS[way]
        span = 2 * len(label) + 3
        taken = (label * span + place[:, 0]) * span + place[:, 1]
        sought = (label[:, None] * span + beside[..., 0]) * span + beside[..., 1]
        return ~np.isin(sought, taken).ravel()


def held_by_frames(
    place: Int64[np.ndarray, "k 2"], weight: Float64[np.ndarray, "k"], shape: tuple[int, int]
) -> Float64[np.ndarray, "x y"]:
    """What frames of this shape (x, y) hold of pieces at these places; frame 0, 0 starts one shape before the first."""
    room = np.array(shape)
    taken = np.zeros(np.ptp(place, axis=0) + 2 * room)
    np.add.at(taken, tuple((place - place.min(0) + room).T), weight)
    total = np.pad(taken.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    wide = total[shape[0] :] - total[: -shape[0]]
    return wide[:, shape[1] :] - wide[:, : -shape[1]]


def turned(place: Int64[np.ndarray, "k 2"], by: int) -> Int64[np.ndarray, "k 2"]:
    """Places after clockwise quarter turns around the origin."""
    for _ in range(by):
        place = np.stack([-place[:, 1], place[:, 0]], 1)
    return place


@njit(cache=True)
@no_type_check
def _join(sides, start, joins, refused, frame, label, following, size, place, turn, lookup):
    """Kruskal's way through the matches: join two trees unless pieces would lie on each other, or leave the frame.

    The frame is what is held of every tree, and the board's rows and cols. Ends after so many joins; returns the first
    match not yet tried, and marks those that were refused.
    """
    for number in range(start, len(sides)):
        if joins == 0:
            return number
        stayer, mover = sides[number, 0] // 4, sides[number, 1] // 4
        if label[mover] == label[stayer]:
            continue
        side, answer = sides[number, 0] % 4, sides[number, 1] % 4
        if size[label[mover]] > size[label[stayer]]:  # the smaller tree moves
            stayer, mover, side, answer = mover, stayer, answer, side
        way = (side + turn[stayer]) % 4
        by = (way + 2 - answer - turn[mover]) % 4
        right, down = _turned(np.int64(1), np.int64(0), way)
        x, y = _turned(place[mover, 0], place[mover, 1], by)
        right, down = place[stayer, 0] + right - x, place[stayer, 1] + down - y
        refused[number] = True
        if _collides(mover, label[stayer], by, right, down, label, following, size, place, lookup):
            continue
        if frame is not None:
            held, rows, cols = frame
            most = _held_together(mover, stayer, by, right, down, label, following, size, place, rows, cols)
            more, less = held[label[stayer]], held[label[mover]]
            if 2 * most <= 2 * max(more, less) + min(more, less):
                continue
            held[label[stayer]] = most
        refused[number] = False
        _move(mover, stayer, by, right, down, label, following, size, place, turn, lookup)
        joins -= 1
    return len(sides)


@_inner
@no_type_check
def _collides(mover, home, by, right, down, label, following, size, place, lookup):
    """Whether the mover's tree, turned and then shifted, would come to lie on a piece of the tree `home`."""
    for _ in range(size[label[mover]]):
        x, y = _turned(place[mover, 0], place[mover, 1], by)
        key = _key(home, x + right, y + down, len(label))
        if lookup[_slot(lookup, key)] == key:
            return True
        mover = following[mover]
    return False


@_inner
@no_type_check
def _move(mover, stayer, by, right, down, label, following, size, place, turn, lookup):
    """Turn and shift the mover's tree into the frame of the stayer's, and make one of both."""
    home, moving = label[stayer], size[label[mover]]
    size[home] += moving
    for _ in range(moving):
        x, y = _turned(place[mover, 0], place[mover, 1], by)
        place[mover, 0], place[mover, 1] = x + right, y + down
        turn[mover] = (turn[mover] + by) % 4
        label[mover] = home
        key = _key(home, x + right, y + down, len(label))
        lookup[_slot(lookup, key)] = key
        mover = following[mover]
    following[mover], following[stayer] = following[stayer], following[mover]


@_inner
@no_type_check
def _turned(x, y, by):
    """A point after clockwise quarter turns around the origin."""
    if by == 0:
        return x, y
    if by == 1:
        return -y, x
    if by == 2:
        return -x, -y
    return y, -x


@_inner
@no_type_check
def _key(label, x, y, count):
    """A number for a cell of a tree: within its frame, a tree of n pieces reaches no farther than n."""
    span = 2 * count + 1
    return (label * span + x + count) * span + y + count


@_inner
@no_type_check
def _slot(lookup, key):
    """Where the key stands, or where it would."""
    mask = len(lookup) - 1
    slot = (key ^ (key >> 15)) * 0x9E3779B1 & mask
    while lookup[slot] != _FREE and lookup[slot] != key:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
@no_type_check
def _note_all(lookup, count):
    """Note that every piece has taken the first cell of its own tree."""
    for piece in range(count):
        key = _key(piece, np.int64(0), np.int64(0), count)
        lookup[_slot(lookup, key)] = key


@_inner
@no_type_check
def _held_together(mover, stayer, by, right, down, label, following, size, place, rows, cols):
    """How many pieces the best frame would hold if the mover's tree, turned and shifted, were one with the stayer's."""
    staying, total = size[label[stayer]], size[label[stayer]] + size[label[mover]]
    whole = np.empty((total, 2), np.int64)
    for number in range(total):
        if number < staying:
            whole[number, 0], whole[number, 1] = place[stayer, 0], place[stayer, 1]
            stayer = following[stayer]
        else:
            x, y = _turned(place[mover, 0], place[mover, 1], by)
            whole[number, 0], whole[number, 1] = x + right, y + down
            mover = following[mover]
    left, top, wide, high = _box(whole)
    if (wide <= cols and high <= rows) or (wide <= rows and high <= cols):
        return total
    taken = np.zeros((wide, high), np.int64)
    for number in range(total):
        taken[whole[number, 0] - left, whole[number, 1] - top] = 1
    return max(_most_held(taken, cols, rows), _most_held(taken, rows, cols))


@_inner
@no_type_check
def _box(whole):
    """The box around some places: its left and top, and how wide and high it is."""
    left, top, last, lowest = whole[0, 0], whole[0, 1], whole[0, 0], whole[0, 1]
    for number in range(len(whole)):
        left, last = min(left, whole[number, 0]), max(last, whole[number, 0])
        top, lowest = min(top, whole[number, 1]), max(lowest, whole[number, 1])
    return left, top, last - left + 1, lowest - top + 1


@_inner
@no_type_check
def _most_held(taken, wide, high):
    """The most that a frame of this width and height holds; it slides over one strip after the other."""
    most = 0
    strip = np.zeros(taken.shape[1], np.int64)
    for x in range(taken.shape[0]):
        inside = 0
        for y in range(taken.shape[1]):
            strip[y] += taken[x, y]
            if x >= wide:
                strip[y] -= taken[x - wide, y]
            inside += strip[y]
            if y >= high:
                inside -= strip[y - high]
            most = max(most, inside)
    return most
