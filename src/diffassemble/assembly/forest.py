"""Trees of pieces joined along matches, the most probable first: Kruskal's algorithm with constraints, for numba.

Every tree has a frame of its own, in which its pieces have poses (3, 4): a rotation and one more column, the shift. The
plane is z = 0 and a board the whole numbers of it, so that numba compiles every function once for all kinds.
"""

from __future__ import annotations

import numpy as np

from diffassemble.core.kernels import inner, kernel

FREE = -1


@kernel
def join(pairs, relative, joins, refused, label, following, size, frame, closest, room, lookup, held, rows, cols):
    """Join two trees along each match, in place, unless a constraint forbids it.

    Arguments:
        pairs: (m, 2) first and second piece of each match; with a `lookup` first and second side, 4·piece + side.
        relative: (m, 3, 4); if the second has pose T, the first has T @ relative. With a `lookup` (16, 3, 4), the pose
            of the second piece seen from the first, by 4·side of first + side of second.
        joins: the number of joins after which it ends.
        refused: (m,) set for every match that a constraint forbids.
        label, following, size, frame: the trees; `following` links the pieces of a tree to a ring, `size` is that of
            the tree with this label, `frame` (n, 3, 4) the pose of each piece in its tree.
        closest: (m,) squared distance that the pieces of the two trees must keep; empty: any.
        room: (n, 3) sorted sides of the largest box for the tree of a piece; empty: any.
        lookup: (h,) hash table of all cells that a tree of a board has taken; empty for poses that are not on a board.
            A tree joined to another leaves its entries there, but its label is not used again.
        held: (n,) how many pieces of the tree with this label the best frame of rows × cols holds; of the smaller
            tree's pieces more than half must be held. With rows 0 there is no such frame.

    Returns:
        The number of matches tried.
    """
    work = np.empty((3, 3, 4))
    # As variables: numba would compile a function anew for every constant.
    goal, back, motion = np.int64(0), np.int64(1), np.int64(2)
    on_board = len(lookup) > 0
    for match in range(len(pairs)):
        if joins == 0:
            return match
        # 1. The motion that brings the tree of one piece, the mover, into the frame of the other's, the stayer.
        mover, stayer, way = pairs[match, 0], pairs[match, 1], match
        if on_board:
            way = 4 * (mover & 3) + (stayer & 3)
            mover, stayer = stayer >> 2, mover >> 2
        if label[mover] == label[stayer]:
            continue
        _multiply(frame, stayer, relative, way, work, goal)
        _invert(frame, mover, work, back)
        _multiply(work, goal, work, back, work, motion)
        if size[label[mover]] > size[label[stayer]]:  # the smaller tree moves
            mover, stayer = stayer, mover
            _invert(work, motion, work, back)
            motion, back = back, motion
        # 2. The constraints.
        movers, stayers, home, most = size[label[mover]], size[label[stayer]], label[stayer], np.int64(0)
        refused[match] = True
        if len(closest) > 0 and _too_close(
            mover, movers, stayer, stayers, following, frame, work, motion, closest[match]
        ):
            continue
        if on_board and _on_taken(mover, movers, home, following, frame, work, motion, lookup):
            continue
        if len(room) > 0 and _exceeds(mover, movers, stayer, stayers, following, frame, work, motion, room):
            continue
        if rows > 0:
            most = _most_held(mover, movers, stayer, stayers, following, frame, work, motion, rows, cols)
            more, less = held[home], held[label[mover]]
            if more < less:
                more, less = less, more
            if 2 * most <= 2 * more + less:
                continue
            held[home] = most
        # 3. The join.
        refused[match] = False
        joins -= 1
        if on_board:
            _note(stayer, home, frame, lookup)
        size[home] += movers
        for _ in range(movers):
            _multiply(work, motion, frame, mover, work, goal)
            for a in range(3):
                for b in range(4):
                    frame[mover, a, b] = work[goal, a, b]
            label[mover] = home
            if on_board:
                _note(mover, home, frame, lookup)
            mover = following[mover]
        following[mover], following[stayer] = following[stayer], following[mover]
    return len(pairs)


@inner
def _too_close(mover, movers, stayer, stayers, following, frame, work, motion, closest):
    """Whether the motion would bring a piece of the mover's tree too close to one of the stayer's."""
    for _ in range(movers):
        for _ in range(stayers):
            apart = 0.0
            for a in range(3):
                apart += (_moved(mover, frame, work, motion, a) - frame[stayer, a, 3]) ** 2
            if apart < closest:
                return True
            stayer = following[stayer]
        mover = following[mover]
    return False


@inner
def _on_taken(mover, movers, home, following, frame, work, motion, lookup):
    """Whether the motion would bring a piece of the mover's tree to a cell of the tree `home`."""
    for _ in range(movers):
        across, down = _moved(mover, frame, work, motion, 0), _moved(mover, frame, work, motion, 1)
        key = _key(home, across, down, len(following))
        if lookup[_slot(lookup, key)] == key:
            return True
        mover = following[mover]
    return False


@inner
def _exceeds(mover, movers, stayer, stayers, following, frame, work, motion, room):
    """Whether the box around both trees after the motion is too large, in any order of its sides."""
    spans = np.empty(3)
    for a in range(3):
        low, high = _extent(mover, movers, stayer, stayers, following, frame, work, motion, a)
        spans[a] = high - low
    for a in range(3):  # as many sides as there are may be longer than the a-th shortest of the room
        longer = 0
        for b in range(3):
            longer += spans[b] > room[mover, a]
        if longer > 2 - a:
            return True
    return False


@inner
def _most_held(mover, movers, stayer, stayers, following, frame, work, motion, rows, cols):
    """How many pieces the best frame of rows × cols, or of cols × rows, would hold of both trees after the motion."""
    left, right = _extent(mover, movers, stayer, stayers, following, frame, work, motion, 0)
    top, bottom = _extent(mover, movers, stayer, stayers, following, frame, work, motion, 1)
    wide, high = int(right - left) + 1, int(bottom - top) + 1
    if (wide <= cols and high <= rows) or (wide <= rows and high <= cols):
        return movers + stayers
    taken = np.zeros((wide, high), np.int64)
    for _ in range(stayers):
        taken[int(frame[stayer, 0, 3] - left), int(frame[stayer, 1, 3] - top)] = 1
        stayer = following[stayer]
    for _ in range(movers):
        across, down = _moved(mover, frame, work, motion, 0), _moved(mover, frame, work, motion, 1)
        taken[int(across - left), int(down - top)] = 1
        mover = following[mover]
    upright, across = _best_window(taken, cols, rows), _best_window(taken, rows, cols)
    return upright if upright > across else across


@inner
def _best_window(taken, wide, high):
    """The largest sum in a window of this width and height, which slides along one strip after the other."""
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


@inner
def _extent(mover, movers, stayer, stayers, following, frame, work, motion, a):
    """The least and the greatest position of both trees along one axis after the motion."""
    low, high = frame[stayer, a, 3], frame[stayer, a, 3]
    for number in range(stayers + movers):
        if number < stayers:
            at = frame[stayer, a, 3]
            stayer = following[stayer]
        else:
            at = _moved(mover, frame, work, motion, a)
            mover = following[mover]
        low, high = at if at < low else low, at if at > high else high
    return low, high


@inner
def _moved(piece, frame, work, motion, a):
    """The position of a piece along one axis after the motion."""
    moved = work[motion, a, 3]
    for b in range(3):
        moved += work[motion, a, b] * frame[piece, b, 3]
    return moved


@inner
def _multiply(lefts, left, rights, right, products, product):
    """Write the product of two of the poses into a third."""
    for a in range(3):
        for b in range(4):
            total = 0.0
            for c in range(3):
                total += lefts[left, a, c] * rights[right, c, b]
            if b == 3:
                total += lefts[left, a, 3]
            products[product, a, b] = total


@inner
def _invert(poses, pose, inverses, inverse):
    """Write the inverse of one of the poses into another."""
    for a in range(3):
        shift = 0.0
        for b in range(3):
            inverses[inverse, a, b] = poses[pose, b, a]
            shift -= poses[pose, b, a] * poses[pose, b, 3]
        inverses[inverse, a, 3] = shift


@inner
def _note(piece, home, frame, lookup):
    """Enter the cell of a piece of the tree `home`; single pieces need none, for no two of them collide."""
    key = _key(home, frame[piece, 0, 3], frame[piece, 1, 3], len(frame))
    lookup[_slot(lookup, key)] = key


@inner
def _key(label, x, y, count):
    """A number for a cell of a tree: within its frame, a tree of n pieces reaches no farther than n."""
    span = 2 * count + 1
    return (label * span + int(x) + count) * span + int(y) + count


@inner
def _slot(lookup, key):
    """The place of the key in the table, or the free one for it."""
    mask = len(lookup) - 1
    slot = (key ^ (key >> 15)) * 0x9E3779B1 & mask
    while lookup[slot] != FREE and lookup[slot] != key:
        slot = (slot + 1) & mask
    return slot
