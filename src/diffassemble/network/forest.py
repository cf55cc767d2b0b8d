"""Clusters joined along matches, one after the other: loops that numba compiles.

Poses are matrices with one more row and column than the space has dimensions (e = d + 1), so that they are
composed by plain products. Array operations are avoided: they take numba many times as long to compile as loops.
Type checkers are kept away: they would wrap the functions, and then numba couldn't compile them.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

# Called by other compiled functions only, which keep its code with theirs.
_inner = njit(no_cpython_wrapper=True)


@njit(cache=True)
@no_type_check
def join(pairs, relative, closest, room, label, following, size, frame):
    """Kruskal's way through the matches: join the two clusters, in place, unless the result could not be.

    If the second of a pair stands at T, then the first stands at T @ relative. Pieces must not come closer than the
    squared distance `closest`, and the box of the whole, its sides sorted, must not exceed `room` of its pieces.
    `following` links the members of a cluster to a ring; `size` is that of the cluster with this label.
    """
    work = np.empty((3, frame.shape[1], frame.shape[2]))
    # As variables: numba would compile a function anew for every constant.
    goal, back, motion = np.int64(0), np.int64(1), np.int64(2)
    for match in range(len(pairs)):
        mover, stayer = pairs[match, 0], pairs[match, 1]
        if label[mover] == label[stayer]:
            continue
        _multiply(frame, stayer, relative, match, work, goal)
        _invert(frame, mover, work, back)
        _multiply(work, goal, work, back, work, motion)
        if size[label[mover]] > size[label[stayer]]:  # the smaller cluster moves
            mover, stayer = stayer, mover
            _invert(work, motion, work, back)
            motion, back = back, motion
        movers, stayers = size[label[mover]], size[label[stayer]]
        if _collide(mover, movers, stayer, stayers, following, frame, work, motion, closest[match]):
            continue
        if _exceed(mover, movers, stayer, stayers, following, frame, work, motion, room):
            continue
        size[label[stayer]] += movers
        for _ in range(movers):
            _multiply(work, motion, frame, mover, work, goal)
            for a in range(work.shape[1]):
                for b in range(work.shape[1]):
                    frame[mover, a, b] = work[goal, a, b]
            label[mover] = label[stayer]
            mover = following[mover]
        following[mover], following[stayer] = following[stayer], following[mover]


@_inner
@no_type_check
def _collide(mover, movers, stayer, stayers, following, frame, work, motion, closest):
    """Whether the motion would bring one of the mover's ring too close to one of the stayer's."""
    d = work.shape[1] - 1
    for _ in range(movers):
        for _ in range(stayers):
            apart = 0.0
            for a in range(d):
                moved = work[motion, a, d]
                for b in range(d):
                    moved += work[motion, a, b] * frame[mover, b, d]
                apart += (moved - frame[stayer, a, d]) ** 2
            if apart < closest:
                return True
            stayer = following[stayer]
        mover = following[mover]
    return False


@_inner
@no_type_check
def _exceed(mover, movers, stayer, stayers, following, frame, work, motion, room):
    """Whether the box around both rings after the motion is too large, whichever way it is turned."""
    d, of = work.shape[1] - 1, mover
    spans = np.empty(d)
    for a in range(d):
        low, high = np.inf, -np.inf
        for _ in range(movers):
            moved = work[motion, a, d]
            for b in range(d):
                moved += work[motion, a, b] * frame[mover, b, d]
            low, high = moved if moved < low else low, moved if moved > high else high
            mover = following[mover]
        for _ in range(stayers):
            there = frame[stayer, a, d]
            low, high = there if there < low else low, there if there > high else high
            stayer = following[stayer]
        spans[a] = high - low
    for a in range(d):  # as many sides as there are may be longer than the a-th shortest of the room
        longer = 0
        for b in range(d):
            longer += spans[b] > room[of, a]
        if longer > d - 1 - a:
            return True
    return False


@_inner
@no_type_check
def _multiply(lefts, left, rights, right, products, product):
    """Write the product of two of the matrices into a third."""
    for a in range(products.shape[1]):
        for b in range(products.shape[1]):
            total = 0.0
            for c in range(products.shape[1]):
                total += lefts[left, a, c] * rights[right, c, b]
            products[product, a, b] = total


@_inner
@no_type_check
def _invert(motions, motion, inverses, inverse):
    """Write the inverse of one of the rigid motions into another matrix."""
    d = motions.shape[1] - 1
    for a in range(d):
        inverses[inverse, a, d] = 0.0
        for b in range(d):
            inverses[inverse, a, b] = motions[motion, b, a]
            inverses[inverse, a, d] -= motions[motion, b, a] * motions[motion, b, d]
        inverses[inverse, d, a] = 0.0
    inverses[inverse, d, d] = 1.0
