"""Trees of pieces grown along matches of sides, and the pieces that the frames of a board hold of them.

In the frame of its tree, each piece has a place (x right, y down, in cells) and a turn. Trees may be required to fit
the shape of a board (Gallagher 2012 and Yu 2015: trimming).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64

from diffassemble.assembly.forest import FREE, join
from diffassemble.core import Board, turn_matrix
from diffassemble.core.board import SIDES, WAYS

# The rotations by whole quarter turns.
QUARTERS = turn_matrix(torch.arange(SIDES)).long().numpy()


def _in_space(turns: Int64[np.ndarray, "n"], places: Int64[np.ndarray, "n 2"]) -> Float64[np.ndarray, "n 3 4"]:
    poses = np.tile(np.eye(3, 4), (len(turns), 1, 1))
    poses[:, :2, :2], poses[:, :2, 3] = QUARTERS[turns], places
    return poses


def _beside() -> Float64[np.ndarray, "16 3 4"]:
    """The pose of a piece, seen from another, if its side b touches the other's side a: number 4·a + b."""
    a, b = np.divmod(np.arange(SIDES**2), SIDES)
    return _in_space((a + 2 - b) % SIDES, WAYS[a])


_BESIDE = _beside()


@dataclass(frozen=True)
class Forest:
    """Pieces in trees, changed in place as they grow; pieces with the same `label` are in one tree.

    `frame` is the pose of each in its tree; the others are as in `assembly.forest.join`.
    """

    label: Int64[np.ndarray, "n"]
    following: Int64[np.ndarray, "n"]
    size: Int64[np.ndarray, "n"]
    frame: Float64[np.ndarray, "n 3 4"]
    lookup: Int64[np.ndarray, "h"]

    @staticmethod
    def of(count: int, turns: Int64[np.ndarray, "n"] | int = 0) -> Forest:
        """Every piece a tree of its own, turned by `turns`."""
        # The smaller tree moves, so a piece moves at most log2(n) times, and each time takes one more entry.
        entries = count * (count.bit_length() + 1)
        lookup = np.full(1 << (2 * entries).bit_length(), FREE, np.int64)
        frame = _in_space(np.broadcast_to(turns, count), np.zeros((count, 2), np.int64))
        return Forest(np.arange(count), np.arange(count), np.ones(count, np.int64), frame, lookup)

    @property
    def place(self) -> Int64[np.ndarray, "n 2"]:
        """The place of each piece in its tree."""
        return self.frame[:, :2, 3].astype(np.int64)

    @property
    def turn(self) -> Int64[np.ndarray, "n"]:
        """The quarter turns of each piece in its tree."""
        cosine, sine = self.frame[:, 0, 0].astype(np.int64), self.frame[:, 1, 0].astype(np.int64)
        return np.where(sine == 0, 1 - cosine, 2 - sine)

    @property
    def trees(self) -> int:
        """Their number."""
        return len(np.unique(self.label))

    @property
    def largest(self) -> Int64[np.ndarray, "k"]:
        """The pieces of the largest tree."""
        return np.flatnonzero(self.label == self.label[self.size[self.label].argmax()])

    def grow(self, matches: Int64[np.ndarray, "m 2"], start: int, joins: int) -> int:
        """Try the matches from `start` on until so many joins are made; returns the first match not yet tried."""
        return start + self.join(matches[start:], joins)[0]

    def join(
        self,
        sides: Int64[np.ndarray, "m 2"],
        joins: int,
        held: Int64[np.ndarray, "n"] | None = None,
        rows: int = 0,
        cols: int = 0,
    ) -> tuple[int, Bool[np.ndarray, "m"]]:
        """Join trees along matches; how many were tried until so many joins were made, and which were refused."""
        refused, any_distance, any_box = np.zeros(len(sides), np.bool_), np.zeros(0), np.zeros((0, 3))
        held = np.zeros(0, np.int64) if held is None else held
        trees = self.label, self.following, self.size, self.frame
        sides = np.ascontiguousarray(sides)
        tried = join(sides, _BESIDE, joins, refused, *trees, any_distance, any_box, self.lookup, held, rows, cols)
        return int(tried), refused


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
        """Every piece a tree of its own, turned by `turns`."""
        return FramedForest(Forest.of(len(turns), turns), board, np.ones(len(turns), np.int64))

    def join(self, sides: Int64[np.ndarray, "m 2"]) -> Bool[np.ndarray, "m"]:
        """Join trees along matches, one after the other; which matches were refused.

        A match is refused if two pieces would share a cell, or if the best frame would hold no more than half of the
        smaller tree's pieces.
        """
        return self.forest.join(sides, len(sides), self.held, self.board.rows, self.board.cols)[1]

    def open_sides(self) -> Bool[np.ndarray, "sides"]:
        """Which sides face a cell that their own tree leaves free."""
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
    """The weight of the places in each frame of this shape (x, y); frame 0, 0 starts one shape before the first."""
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
