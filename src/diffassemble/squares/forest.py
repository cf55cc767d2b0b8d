"""Trees of pieces grown along matches of sides, and the frames of a board that hold most of them.

In the frame of its tree, each piece has a place (x right, y down, in cells) and a turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64

from diffassemble.assembly.forest import FREE, join
from diffassemble.core import Board, Poses, turn_matrix
from diffassemble.core.board import SIDES, WAYS, Placement

QUARTERS = turn_matrix(torch.arange(SIDES)).long().numpy()
"""the rotations by whole quarter turns"""


def _in_space(turns: Int64[np.ndarray, "n"], places: Int64[np.ndarray, "n 2"]) -> Float64[np.ndarray, "n 3 4"]:
    poses = np.tile(np.eye(3, 4), (len(turns), 1, 1))
    poses[:, :2, :2], poses[:, :2, 3] = QUARTERS[turns], places
    return poses


_OWN, _OTHER = np.divmod(np.arange(SIDES**2), SIDES)
# The pose of a piece relative to another whose side a touches its side b: number 4·a + b.
_BESIDE = _in_space((_OWN + 2 - _OTHER) % SIDES, WAYS[_OWN])


@dataclass(frozen=True)
class Forest:
    """Pieces in trees, changed in place as they grow; pieces with the same `label` are in one tree.

    `frame` is the pose of each in its tree. With a board, trees reach beyond its frame with a few of their pieces only;
    `held` is how many pieces of the tree with this label the best frame holds. The others are as in `forest.join`.
    """

    label: Int64[np.ndarray, "n"]
    following: Int64[np.ndarray, "n"]
    size: Int64[np.ndarray, "n"]
    frame: Float64[np.ndarray, "n 3 4"]
    lookup: Int64[np.ndarray, "h"]
    held: Int64[np.ndarray, "k"]
    board: Board | None = None

    @staticmethod
    def of(count: int, turns: Int64[np.ndarray, "n"] | int = 0, board: Board | None = None) -> Forest:
        """Every piece a tree of its own, turned by `turns`."""
        # The smaller tree moves, so a piece moves at most log2(n) times, and each time takes one more entry.
        entries = count * (count.bit_length() + 1)
        lookup = np.full(1 << (2 * entries).bit_length(), FREE, np.int64)
        frame = _in_space(np.broadcast_to(turns, count), np.zeros((count, 2), np.int64))
        held = np.ones(0 if board is None else count, np.int64)
        return Forest(np.arange(count), np.arange(count), np.ones(count, np.int64), frame, lookup, held, board)

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

    def join(self, sides: Int64[np.ndarray, "m 2"], joins: int | None = None) -> tuple[int, Bool[np.ndarray, "m"]]:
        """Join trees along matches, one after the other; how many were tried until so many joins, and which refused.

        A match is refused if two pieces would share a cell, or, with a board, if the best frame would hold no more than
        half of the smaller tree's pieces.
        """
        refused, any_distance, any_box = np.zeros(len(sides), np.bool_), np.zeros(0), np.zeros((0, 3))
        along = np.ascontiguousarray(sides), _BESIDE, len(sides) if joins is None else joins, refused
        trees = self.label, self.following, self.size, self.frame
        shape = (0, 0) if self.board is None else (self.board.rows, self.board.cols)
        return int(join(*along, *trees, any_distance, any_box, self.lookup, self.held, *shape)), refused

    def open_sides(self) -> Bool[np.ndarray, "sides"]:
        """Which sides face a cell that their own tree leaves free."""
        way = (self.turn[:, None] + np.arange(SIDES)) % SIDES
        place = self.place
        beside = place[:, None] + WAYS[way]
        span = 2 * len(self.label) + 3
        taken = (self.label * span + place[:, 0]) * span + place[:, 1]
        sought = (self.label[:, None] * span + beside[..., 0]) * span + beside[..., 1]
        return ~np.isin(sought, taken).ravel()

    def layout(self, board: Board) -> Poses:
        """Every tree around the middle of the cells that its pieces would have if they were listed row by row."""
        start, label = board.centres()[: len(self.label)], torch.from_numpy(self.label)
        place = torch.from_numpy(self.place) * board.pitch
        offset = torch.zeros_like(start).index_add(0, label, start - place)
        offset = offset / torch.from_numpy(self.size)[:, None]
        return Poses(turn_matrix(torch.from_numpy(self.turn)), place + offset[label])

    def in_frame(self, by: int, framed: Int64[np.ndarray, "k"]) -> Placement:
        """The largest tree, turned as a whole, on these cells; the cells of all other pieces are −1."""
        members = self.largest
        cells, turns = np.full(len(self.label), -1), self.turn
        cells[members], turns[members] = framed, (turns[members] + by) % SIDES
        return torch.from_numpy(cells), torch.from_numpy(turns)

    def trimmed(self, board: Board) -> Placement:
        """Trimming: the largest tree within the frame that holds most of its pieces; the cells of all others are −1."""
        place = self.place[self.largest]
        return self.in_frame(*best_frames(place, np.ones(len(place)), board, 1)[0][1:])


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


def best_frames(
    places: Int64[np.ndarray, "k 2"], weight: Float64[np.ndarray, "k"], board: Board, most: int
) -> list[tuple[float, int, Int64[np.ndarray, "k"]]]:
    """The best frames for pieces at these places: the weight each holds, its turn, the cells in it, or −1."""
    shape, found = (board.cols, board.rows), []
    for by in (0,) if board.oblong or board.rows == board.cols else (0, 1):
        place = np.stack([-places[:, 1], places[:, 0]], 1) if by else places
        held = held_by_frames(place, weight, shape)
        corners = np.argwhere(np.isfinite(held))
        value = np.round(held.ravel(), 6)
        middle = corners[value == value.max()].mean(0)
        for index in np.lexsort((np.abs(corners - middle).sum(1), -value))[:most]:
            col, row = (place - place.min(0) + np.array(shape) - corners[index]).T
            inside = (col >= 0) & (col < board.cols) & (row >= 0) & (row < board.rows)
            found.append((float(value[index]), by, np.where(inside, row * board.cols + col, -1)))
    return sorted(found, key=lambda frame: -frame[0])
