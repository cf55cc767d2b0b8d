"""Trees that keep to the frame, and what frames hold of a tree (Gallagher 2012 and Yu 2015: trimming).

Loops that numba compiles come last; type checkers are kept away from them, as in `spanning`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numba import njit

from diffassemble.compatibility.image import SIDES
from diffassemble.puzzle import Board
from diffassemble.solvers.spanning import Forest, _collides, _move, _turned

# Where a neighbour stands, as (x, y): right, below, left, above.
WAYS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])


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
        forest = self.forest
        state = forest.label, forest.following, forest.size, forest.place, forest.turn, forest.lookup
        return _join(sides, self.held, self.board.rows, self.board.cols, *state)

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


@njit(cache=True)
@no_type_check
def _join(
    sides: Int64[np.ndarray, "m 2"],
    held: Int64[np.ndarray, "n"],
    rows: int,
    cols: int,
    label: Int64[np.ndarray, "n"],
    following: Int64[np.ndarray, "n"],
    size: Int64[np.ndarray, "n"],
    place: Int64[np.ndarray, "n 2"],
    turn: Int64[np.ndarray, "n"],
    lookup: Int64[np.ndarray, "h"],
) -> Bool[np.ndarray, "m"]:
    """Kruskal's way through the matches, within the frame; which were refused."""
    refused = np.zeros(len(sides), np.bool_)
    for number in range(len(sides)):
        stayer, mover = sides[number, 0] // 4, sides[number, 1] // 4
        if label[mover] == label[stayer]:
            continue
        side, answer = sides[number, 0] % 4, sides[number, 1] % 4
        if size[label[mover]] > size[label[stayer]]:  # the smaller tree moves
            stayer, mover, side, answer = mover, stayer, answer, side
        way = (side + turn[stayer]) % 4
        by = (way + 2 - answer - turn[mover]) % 4
        right, down = _turned(1, 0, way)
        x, y = _turned(place[mover, 0], place[mover, 1], by)
        right, down = place[stayer, 0] + right - x, place[stayer, 1] + down - y
        refused[number] = True
        if _collides(mover, label[stayer], by, right, down, label, following, size, place, lookup):
            continue
        most = _held_together(mover, stayer, by, right, down, label, following, size, place, rows, cols)
        more, less = held[label[stayer]], held[label[mover]]
        if 2 * most > 2 * max(more, less) + min(more, less):
            _move(mover, stayer, by, right, down, label, following, size, place, turn, lookup)
            held[label[stayer]] = most
            refused[number] = False
    return refused


@njit(cache=True)
@no_type_check
def _held_together(
    mover: int,
    stayer: int,
    by: int,
    right: int,
    down: int,
    label: Int64[np.ndarray, "n"],
    following: Int64[np.ndarray, "n"],
    size: Int64[np.ndarray, "n"],
    place: Int64[np.ndarray, "n 2"],
    rows: int,
    cols: int,
) -> int:
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


@njit(cache=True)
@no_type_check
def _box(whole: Int64[np.ndarray, "k 2"]) -> tuple[int, int, int, int]:
    """The box around some places: its left and top, and how wide and high it is."""
    left, top, last, lowest = whole[0, 0], whole[0, 1], whole[0, 0], whole[0, 1]
    for number in range(len(whole)):
        left, last = min(left, whole[number, 0]), max(last, whole[number, 0])
        top, lowest = min(top, whole[number, 1]), max(lowest, whole[number, 1])
    return left, top, last - left + 1, lowest - top + 1


@njit(cache=True)
@no_type_check
def _most_held(taken: Int64[np.ndarray, "x y"], wide: int, high: int) -> int:
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
