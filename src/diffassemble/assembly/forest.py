"""Trees of pieces joined along matches, one after the other: loops that numba compiles.

Every tree has a frame of its own, in which its pieces stand. Motions are rotations with one more column, the shift
(e = d + 1); those on a board are of whole numbers. `axes` are 0, 1, … d − 1: the length of a tuple is known when
numba compiles, which makes loops over it several times as fast. Array operations, `min` and `max` are avoided: they
take numba many times as long to compile as loops. Type checkers are kept away: they would wrap the functions, and
then numba couldn't compile them.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

# Called by other compiled functions only, which keep its code with theirs.
_inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)

FREE = -1


@njit(cache=True)
@no_type_check
def join(pairs, relative, joins, refused, label, following, size, frame, axes, closest, room, lookup, board):
    """Kruskal's way through the matches: join two trees, in place, unless the result could not be.

    If the second of a pair stands at T, then the first stands at T @ relative. `following` links the pieces of a tree
    to a ring; `size` is that of the tree with this label; `frame` is where each piece stands in its tree. Ends after so
    many joins; returns the first match not yet tried, and marks those that were refused.

    In space, pieces must not come closer than the squared distance `closest` of their match, and the box of the whole,
    its sides sorted, must not exceed `room` of its pieces.

    On a board, where these are none, pairs are of sides, 4·piece + side: if the piece of the first, a, stands at T,
    then that of the second, b, stands at T @ relative[4·a + b]. `lookup` is a hash table of all cells that a tree has
    ever taken; one that was joined to another leaves its entries there, but its label never comes back. If trees shall
    keep to a `board`, that is what its best frame holds of the tree with this label, its rows and its cols; of the
    smaller tree's pieces more than half must be held.
    """
    work = np.empty((3, len(axes), len(axes) + 1), frame.dtype)
    # As variables: numba would compile a function anew for every constant.
    goal, back, motion = np.int64(0), np.int64(1), np.int64(2)
    for match in range(len(pairs)):
        if joins == 0:
            return match
        mover, stayer, way = pairs[match, 0], pairs[match, 1], match
        if lookup is not None:
            way = 4 * (mover & 3) + (stayer & 3)
            mover, stayer = stayer >> 2, mover >> 2
        if label[mover] == label[stayer]:
            continue
        _multiply(frame, stayer, relative, way, work, goal, axes)
        _invert(frame, mover, work, back, axes)
        _multiply(work, goal, work, back, work, motion, axes)
        if size[label[mover]] > size[label[stayer]]:  # the smaller tree moves
            mover, stayer = stayer, mover
            _invert(work, motion, work, back, axes)
            motion, back = back, motion
        movers, stayers, home = size[label[mover]], size[label[stayer]], label[stayer]
        refused[match] = True
        collide = False
        if closest is not None:
            collide = _too_close(mover, movers, stayer, stayers, following, frame, work, motion, axes, closest[match])
        if lookup is not None:
            collide = _on_taken(mover, movers, home, following, frame, work, motion, axes, lookup)
        if collide or _exceed(mover, movers, stayer, stayers, following, frame, work, motion, axes, room):
            continue
        if board is not None:
            held, rows, cols = board
            most = _held_together(mover, movers, stayer, stayers, following, frame, work, motion, axes, rows, cols)
            more, less = held[home], held[label[mover]]
            if more < less:
                more, less = less, more
            if 2 * most <= 2 * more + less:
                continue
            held[home] = most
        refused[match] = False
        joins -= 1
        if lookup is not None:
            _note(stayer, home, frame, lookup)
        size[home] += movers
        for _ in range(movers):
            _multiply(work, motion, frame, mover, work, goal, axes)
            for a in range(len(axes)):
                for b in range(len(axes) + 1):
                    frame[mover, a, b] = work[goal, a, b]
            label[mover] = home
            if lookup is not None:
                _note(mover, home, frame, lookup)
            mover = following[mover]
        following[mover], following[stayer] = following[stayer], following[mover]
    return len(pairs)


@_inner
@no_type_check
def _too_close(mover, movers, stayer, stayers, following, frame, work, motion, axes, closest):
    """Whether the motion would bring one of the mover's ring too close to one of the stayer's."""
    d = len(axes)
    for _ in range(movers):
        for _ in range(stayers):
            apart = 0.0
            for a in range(d):
                apart += (_moved(mover, frame, work, motion, axes, a) - frame[stayer, a, d]) ** 2
            if apart < closest:
                return True
            stayer = following[stayer]
        mover = following[mover]
    return False


@_inner
@no_type_check
def _on_taken(mover, movers, home, following, frame, work, motion, axes, lookup):
    """Whether the motion would lay one of the mover's ring on a cell of the tree `home`."""
    x, y = axes
    for _ in range(movers):
        across, down = _moved(mover, frame, work, motion, axes, x), _moved(mover, frame, work, motion, axes, y)
        key = _key(home, across, down, len(following))
        if lookup[_slot(lookup, key)] == key:
            return True
        mover = following[mover]
    return False


@_inner
@no_type_check
def _exceed(mover, movers, stayer, stayers, following, frame, work, motion, axes, room):
    """Whether the box around both rings after the motion is too large, whichever way it is turned."""
    if room is None:
        return False
    d = len(axes)
    spans = np.empty(d)
    for a in range(d):
        low, high = _extent(mover, movers, stayer, stayers, following, frame, work, motion, axes, a)
        spans[a] = high - low
    for a in range(d):  # as many sides as there are may be longer than the a-th shortest of the room
        longer = 0
        for b in range(d):
            longer += spans[b] > room[mover, a]
        if longer > d - 1 - a:
            return True
    return False


@_inner
@no_type_check
def _held_together(mover, movers, stayer, stayers, following, frame, work, motion, axes, rows, cols):
    """How many pieces the best frame of a board would hold of both rings after the motion."""
    x, y = axes
    left, right = _extent(mover, movers, stayer, stayers, following, frame, work, motion, axes, x)
    top, bottom = _extent(mover, movers, stayer, stayers, following, frame, work, motion, axes, y)
    wide, high = right - left + 1, bottom - top + 1
    if (wide <= cols and high <= rows) or (wide <= rows and high <= cols):
        return movers + stayers
    taken = np.zeros((wide, high), np.int64)
    for _ in range(stayers):
        taken[frame[stayer, x, 2] - left, frame[stayer, y, 2] - top] = 1
        stayer = following[stayer]
    for _ in range(movers):
        taken[_moved(mover, frame, work, motion, axes, x) - left, _moved(mover, frame, work, motion, axes, y) - top] = 1
        mover = following[mover]
    upright, across = _most_held(taken, cols, rows), _most_held(taken, rows, cols)
    return upright if upright > across else across


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
            if inside > most:
                most = inside
    return most


@_inner
@no_type_check
def _extent(mover, movers, stayer, stayers, following, frame, work, motion, axes, a):
    """From where to where both rings reach along one axis after the motion."""
    d = len(axes)
    low, high = frame[stayer, a, d], frame[stayer, a, d]
    for number in range(stayers + movers):
        if number < stayers:
            at = frame[stayer, a, d]
            stayer = following[stayer]
        else:
            at = _moved(mover, frame, work, motion, axes, a)
            mover = following[mover]
        low, high = at if at < low else low, at if at > high else high
    return low, high


@_inner
@no_type_check
def _moved(piece, frame, work, motion, axes, a):
    """Where a piece stands along one axis after the motion."""
    d = len(axes)
    moved = work[motion, a, d]
    for b in range(d):
        moved += work[motion, a, b] * frame[piece, b, d]
    return moved


@_inner
@no_type_check
def _multiply(lefts, left, rights, right, products, product, axes):
    """Write the product of two of the motions into a third."""
    d = len(axes)
    for a in range(d):
        for b in range(d + 1):
            total = products.dtype.type(0)
            for c in range(d):
                total += lefts[left, a, c] * rights[right, c, b]
            if b == d:
                total += lefts[left, a, d]
            products[product, a, b] = total


@_inner
@no_type_check
def _invert(motions, motion, inverses, inverse, axes):
    """Write the inverse of one of the motions into another."""
    d = len(axes)
    for a in range(d):
        shift = inverses.dtype.type(0)
        for b in range(d):
            inverses[inverse, a, b] = motions[motion, b, a]
            shift -= motions[motion, b, a] * motions[motion, b, d]
        inverses[inverse, a, d] = shift


@_inner
@no_type_check
def _note(piece, home, frame, lookup):
    """Note that a piece of the tree `home` has taken its cell; lone pieces need none, for no two of them collide."""
    key = _key(home, frame[piece, 0, 2], frame[piece, 1, 2], len(frame))
    lookup[_slot(lookup, key)] = key


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
    while lookup[slot] != FREE and lookup[slot] != key:
        slot = (slot + 1) & mask
    return slot
