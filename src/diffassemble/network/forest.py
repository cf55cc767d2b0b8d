"""Clusters joined along matings, one after the other: loops that numba compiles.

Poses are matrices with one more row and column than the space has dimensions (e = d + 1), so that they are
composed by plain products. Array operations are avoided: they take numba many times as long to compile as loops.
Type checkers are kept away: they would wrap the functions, and then numba couldn't compile them.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int64
from numba import njit


@njit(cache=True)
@no_type_check
def join(
    pairs: Int64[np.ndarray, "m 2"],
    relative: Float64[np.ndarray, "m e e"],
    closest: Float64[np.ndarray, "m"],
    room: Float64[np.ndarray, "n d"],
    label: Int64[np.ndarray, "n"],
    following: Int64[np.ndarray, "n"],
    size: Int64[np.ndarray, "n"],
    frame: Float64[np.ndarray, "n e e"],
) -> None:
    """Kruskal's way through the matings: join the two clusters, in place, unless the result could not be.

    If the second of a pair stands at T, then the first stands at T @ relative. Pieces must not come closer than the
    squared distance `closest`, and the box of the whole, its sides sorted, must not exceed `room` of its pieces.
    `following` links the members of a cluster to a ring; `size` is that of the cluster with this label.
    """
    goal, back, motion = np.empty(frame.shape[1:]), np.empty(frame.shape[1:]), np.empty(frame.shape[1:])
    for mating in range(len(pairs)):
        mover, stayer = pairs[mating, 0], pairs[mating, 1]
        if label[mover] == label[stayer]:
            continue
        _multiply(frame[stayer], relative[mating], goal)
        _invert(frame[mover], back)
        _multiply(goal, back, motion)
        if size[label[mover]] > size[label[stayer]]:  # the smaller cluster moves
            mover, stayer = stayer, mover
            _invert(motion, back)
            motion, back = back, motion
        movers, stayers = size[label[mover]], size[label[stayer]]
        if _collide(mover, movers, stayer, stayers, following, frame, motion, closest[mating]):
            continue
        if _exceed(mover, movers, stayer, stayers, following, frame, motion, room[mover]):
            continue
        size[label[stayer]] += movers
        for _ in range(movers):
            _multiply(motion, frame[mover], goal)
            _copy(goal, frame[mover])
            label[mover] = label[stayer]
            mover = following[mover]
        following[mover], following[stayer] = following[stayer], following[mover]


@njit(cache=True)
@no_type_check
def _collide(
    mover: int,
    movers: int,
    stayer: int,
    stayers: int,
    following: Int64[np.ndarray, "n"],
    frame: Float64[np.ndarray, "n e e"],
    motion: Float64[np.ndarray, "e e"],
    closest: float,
) -> bool:
    """Whether the motion would bring one of the mover's ring too close to one of the stayer's."""
    d = len(motion) - 1
    for _ in range(movers):
        for _ in range(stayers):
            apart = 0.0
            for a in range(d):
                moved = motion[a, d]
                for b in range(d):
                    moved += motion[a, b] * frame[mover, b, d]
                apart += (moved - frame[stayer, a, d]) ** 2
            if apart < closest:
                return True
            stayer = following[stayer]
        mover = following[mover]
    return False


@njit(cache=True)
@no_type_check
def _exceed(
    mover: int,
    movers: int,
    stayer: int,
    stayers: int,
    following: Int64[np.ndarray, "n"],
    frame: Float64[np.ndarray, "n e e"],
    motion: Float64[np.ndarray, "e e"],
    room: Float64[np.ndarray, "d"],
) -> bool:
    """Whether the box around both rings after the motion is too large, whichever way it is turned."""
    d = len(motion) - 1
    spans = np.empty(d)
    for a in range(d):
        low, high = np.inf, -np.inf
        for _ in range(movers):
            moved = motion[a, d]
            for b in range(d):
                moved += motion[a, b] * frame[mover, b, d]
            low, high = min(low, moved), max(high, moved)
            mover = following[mover]
        for _ in range(stayers):
            low, high = min(low, frame[stayer, a, d]), max(high, frame[stayer, a, d])
            stayer = following[stayer]
        spans[a] = high - low
    for a in range(d):  # as many sides as there are may be longer than the a-th shortest of the room
        longer = 0
        for b in range(d):
            longer += spans[b] > room[a]
        if longer > d - 1 - a:
            return True
    return False


@njit(cache=True)
@no_type_check
def _multiply(
    left: Float64[np.ndarray, "e e"], right: Float64[np.ndarray, "e e"], product: Float64[np.ndarray, "e e"]
) -> None:
    """Write the product of two matrices into a third."""
    for a in range(len(product)):
        for b in range(len(product)):
            total = 0.0
            for c in range(len(product)):
                total += left[a, c] * right[c, b]
            product[a, b] = total


@njit(cache=True)
@no_type_check
def _invert(motion: Float64[np.ndarray, "e e"], inverse: Float64[np.ndarray, "e e"]) -> None:
    """Write the inverse of a rigid motion into another matrix."""
    d = len(motion) - 1
    for a in range(d):
        inverse[a, d] = 0.0
        for b in range(d):
            inverse[a, b] = motion[b, a]
            inverse[a, d] -= motion[b, a] * motion[b, d]
        inverse[d, a] = 0.0
    inverse[d, d] = 1.0


@njit(cache=True)
@no_type_check
def _copy(matrix: Float64[np.ndarray, "e e"], target: Float64[np.ndarray, "e e"]) -> None:
    """Write one matrix into another."""
    for a in range(len(matrix)):
        for b in range(len(matrix)):
            target[a, b] = matrix[a, b]
