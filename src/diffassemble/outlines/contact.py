"""How two rims touch at a pose: loops that numba compiles.

A pose (cosine, sine, x, y) takes working coordinates of the first piece into the frame of the second. Points of one rim
are looked up in the other's grid of nearest points. The numbers here define what the networks of `arcs` read:
changing them means training these anew.
"""

from __future__ import annotations

import numpy as np

from diffassemble.core.kernels import inner, kernel

REACH, DEPTH, STRIDE = 10.0, 4.0, 2
"""rims farther apart than REACH do not touch, those that overlap by more than DEPTH collide (working pixels); every
second rim point is described"""
FEATURES, SIGNED = 22, [2, 4, 6, 10, 17, 21]
"""how many numbers describe a contact, and which of them are not both positive and mostly small"""


@kernel
def refine(rims, first, second, poses, rounds, reach):
    """Move each pose, in place, to where the rims coincide: robust steps of Gauss and Newton.

    Residuals are distances (working pixels) of rim points within `reach` along the other rim's normals. Overlaps count
    three times as much as gaps, since wear only removes material.
    """
    for number in range(len(poses)):
        for turn in range(rounds):
            c, s, x0, y0 = poses[number, 0], poses[number, 1], poses[number, 2], poses[number, 3]
            wide = reach * (1 - 0.5 * turn / rounds)
            # The normal equations; sliding along a straight seam, which the contact leaves open, is damped.
            xx, xy, xt, yy, yt, tt = 2.0, 0.0, 0.0, 2.0, 0.0, 2.0 * 30.0**2
            bx, by, bt = 0.0, 0.0, 0.0
            for backwards in range(2):
                mover, base = (second, first) if backwards else (first, second)
                for k in range(rims.start[mover], rims.start[mover + 1], 3):
                    qx, qy, mx, my = _placed(rims, k, c, s, x0, y0, backwards)
                    at, apart = look_up(rims, base, qx, qy)
                    if at < 0 or apart > wide or apart < -wide:
                        continue
                    lx, ly = rims.normals[at, 0], rims.normals[at, 1]
                    facing = -(mx * lx + my * ly)
                    if facing < 0.5:
                        continue
                    apart = (qx - rims.points[at, 0]) * lx + (qy - rims.points[at, 1]) * ly - rims.gap
                    trust = facing / (1 + (apart / (0.4 * wide)) ** 2)
                    if apart < 0:
                        trust *= 3
                    ax, ay = qx, qy
                    if backwards:  # the line belongs to the first piece, which moves
                        lx, ly = -(c * lx - s * ly), -(s * lx + c * ly)
                        ax, ay = rims.points[k, 0], rims.points[k, 1]
                    lt = (ax - x0) * ly - (ay - y0) * lx
                    xx += trust * lx * lx
                    xy += trust * lx * ly
                    xt += trust * lx * lt
                    yy += trust * ly * ly
                    yt += trust * ly * lt
                    tt += trust * lt * lt
                    bx -= trust * lx * apart
                    by -= trust * ly * apart
                    bt -= trust * lt * apart
            # Solved by elimination: numba takes 2.6 s to compile numpy.linalg.solve.
            f, g = xy / xx, xt / xx
            yy, yt, tt = yy - f * xy, yt - f * xt, tt - g * xt
            by, bt, h = by - f * bx, bt - g * bx, yt / yy
            dt = (bt - h * by) / (tt - h * yt)
            dy = by / yy - h * dt
            dx = bx / xx - f * dy - g * dt
            share = min(1.0, 6.0 / (abs(dx) + 1e-9), 6.0 / (abs(dy) + 1e-9), 0.15 / (abs(dt) + 1e-9))
            dx, dy, dt = dx * share, dy * share, dt * share
            cc, ss = np.cos(dt), np.sin(dt)
            poses[number, 0], poses[number, 1] = cc * c - ss * s, ss * c + cc * s
            poses[number, 2], poses[number, 3] = x0 + dx, y0 + dy
            if abs(dx) + abs(dy) < 0.02 and abs(dt) < 3e-4:
                break


@kernel
def describe(rims, first, second, poses, features, arcs):
    """The features of each pose, in place; bit b of `arcs[m, 0]` is set if arc b of 64 of the first piece touches.

    Lengths are in units of a piece, gaps in working pixels, colours in CIELAB. 0 length, 1 share of the shorter rim,
    2 mean and 3 deviation of the gap, 4 share of tight points, 5 overlap, 6 how far it can slide, 7 bend, 8 extent,
    9 longest run, 10 share of facing points that touch; 11 mean, 12 median and 19 upper decile of the difference of
    colours, 13 continued over the gap, 14 shifted along it; 15 texture, 16 difference of means, 17 correlation and
    18 variation along the seam; 20 difference that touching pieces seldom have, 21 log of the number of pieces.
    """
    room = rims.start[first + 1] - rims.start[first] + rims.start[second + 1] - rims.start[second] + 4
    who = np.zeros((room, 2), np.int64)
    gap = np.zeros(room)
    spot = np.zeros((room, 4))
    for number in range(len(poses)):
        for k in range(FEATURES):
            features[number, k] = 0.0
        features[number, 20] = rims.like
        features[number, 21] = np.log(len(rims.cells))
        count = _touching(rims, first, second, poses, features, arcs, number, who, gap, spot)
        if count >= 6:
            _describe_shape(rims, features, number, count, gap, spot)
            _describe_colours(rims, second, features, number, count, who, gap)


@inner
def _touching(rims, first, second, poses, features, arcs, number, who, gap, spot):
    """How many rim points touch; which, their gaps, and places and normals in the frame of the second piece."""
    c, s, x0, y0 = poses[number, 0], poses[number, 1], poses[number, 2], poses[number, 3]
    count, tight, facing_count, longest = 0, 0, 0, 0
    overlapping = 0.0
    shorter = rims.start[first + 1] - rims.start[first]
    arcs[number, 0], arcs[number, 1] = 0, 0
    for backwards in range(2):
        mover, base = (second, first) if backwards else (first, second)
        run, missed = 0, 99
        whole = rims.start[mover + 1] - rims.start[mover]
        if whole < shorter:
            shorter = whole
        for k in range(rims.start[mover], rims.start[mover + 1], STRIDE):
            qx, qy, mx, my = _placed(rims, k, c, s, x0, y0, backwards)
            at, apart = look_up(rims, base, qx, qy)
            if at >= 0 and apart < -1:
                overlapping += min(-1 - apart, 4 * DEPTH) * STRIDE
            touching = False
            if at >= 0 and apart < 1.6 * REACH and apart > -DEPTH:
                facing = -(mx * rims.normals[at, 0] + my * rims.normals[at, 1])
                if facing > 0.3:
                    facing_count += 1
                touching = facing > 0.5 and apart < REACH
            if not touching:
                missed += 1
                if missed > 3:
                    run = 0
                continue
            arcs[number, backwards] |= np.int64(1) << np.int64(64 * (k - rims.start[mover]) // whole)
            who[count, backwards], who[count, 1 - backwards] = k, at
            gap[count] = apart
            if backwards:
                spot[count, 0], spot[count, 1] = rims.points[k, 0], rims.points[k, 1]
                spot[count, 2], spot[count, 3] = rims.normals[k, 0], rims.normals[k, 1]
            else:
                spot[count, 0], spot[count, 1], spot[count, 2], spot[count, 3] = qx, qy, -mx, -my
            count += 1
            if apart < 2.0:
                tight += 1
            run, missed = run + 1, 0
            if run > longest:
                longest = run
    features[number, 5] = overlapping / (2 * rims.unit)
    if count >= 6:
        length = count * STRIDE / 2.0
        features[number, 0], features[number, 1] = length / rims.unit, length / shorter
        features[number, 4] = tight / count
        features[number, 9] = longest * STRIDE / rims.unit
        features[number, 10] = count / max(facing_count, count)
    return count


@inner
def _describe_shape(rims, features, number, count, gap, spot):
    """Mean and deviation of the gap; how far the contact can slide, bends off a line, and extends."""
    mean, ax, ay, nxx, nyy, nxy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for m in range(count):
        mean += gap[m] / count
        ax += spot[m, 0] / count
        ay += spot[m, 1] / count
        nxx += spot[m, 2] ** 2 / count
        nyy += spot[m, 3] ** 2 / count
        nxy += spot[m, 2] * spot[m, 3] / count
    square, xx, yy, xy = 0.0, 0.0, 0.0, 0.0
    for m in range(count):
        x, y = spot[m, 0] - ax, spot[m, 1] - ay
        square += (gap[m] - mean) ** 2 / count
        xx += x * x / count
        yy += y * y / count
        xy += x * y / count
    features[number, 2], features[number, 3] = mean, np.sqrt(square)
    # The weakest direction of the normals; then the spread across and along the seam.
    features[number, 6] = (nxx + nyy) / 2 - np.sqrt(((nxx - nyy) / 2) ** 2 + nxy * nxy)
    spread = np.sqrt(((xx - yy) / 2) ** 2 + xy * xy)
    across = (xx + yy) / 2 - spread
    features[number, 7] = np.sqrt(max(across, 0.0)) / rims.unit
    features[number, 8] = np.sqrt((xx + yy) / 2 + spread) / rims.unit


@inner
def _describe_colours(rims, second, features, number, count, who, gap):
    """Differences of colours: as they are, continued over the gap, against those farther along; their correlation."""
    plain, continued, shifted, texture = 0.0, 0.0, 0.0, 0.0
    values = np.zeros(count)
    low, high = rims.start[second], rims.start[second + 1]
    for m in range(count):
        a, b = who[m, 0], who[m, 1]
        beyond, between = 0.0, 0.0
        reach = 0.5 * (3.5 + 0.5 * (gap[m] if gap[m] > 0 else 0.0)) / 5.5
        for channel in range(3):
            own, other = rims.near[a, channel], rims.near[b, channel]
            slope_own, slope_other = own - rims.deep[a, channel], other - rims.deep[b, channel]
            beyond += (own + reach * slope_own - other - reach * slope_other) ** 2
            between += slope_own**2 + slope_other**2
        values[m] = _unlike(rims, a, b)
        plain += min(values[m], 50.0)
        continued += min(np.sqrt(beyond), 50.0)
        texture += min(np.sqrt(between), 50.0)
        for away in (-14, 14):
            shifted += min(_unlike(rims, a, low + (b + away - low) % (high - low)), 50.0)
    both, one, two, apart = 0.0, 0.0, 0.0, 0.0
    for channel in range(3):
        mean_first, mean_second = 0.0, 0.0
        for m in range(count):
            mean_first += rims.near[who[m, 0], channel] / count
            mean_second += rims.near[who[m, 1], channel] / count
        for m in range(count):
            own, other = rims.near[who[m, 0], channel] - mean_first, rims.near[who[m, 1], channel] - mean_second
            both += own * other
            one += own * own
            two += other * other
        apart += (mean_first - mean_second) ** 2
    _sort(values, count)
    features[number, 11], features[number, 12] = plain / count, values[count // 2]
    features[number, 13], features[number, 14] = continued / count, shifted / (2 * count)
    features[number, 15], features[number, 16] = texture / count, np.sqrt(apart)
    features[number, 17] = both / np.sqrt((one + 1.0) * (two + 1.0))
    features[number, 18] = np.sqrt((one + two) / (2 * count))
    features[number, 19] = values[(9 * count) // 10]


@kernel
def overlap(rims, first, second, pose):
    """The area that two pieces share at a pose, in square working pixels, from every fourth row and column."""
    c, s, x0, y0 = pose[0], pose[1], pose[2], pose[3]
    shared = 0
    rows, columns = rims.shape[first, 0], rims.shape[first, 1]
    for row in range(0, rows, 4):
        for column in range(0, columns, 4):
            if rims.grid[rims.cells[first] + row * columns + column] > 0:
                continue
            px, py = rims.corner[first, 0] + column, rims.corner[first, 1] + row
            there = _cell(rims, second, c * px - s * py + x0, s * px + c * py + y0)
            if there >= 0 and rims.grid[there] < 0:
                shared += 1
    return 16.0 * shared


@kernel
def separation(rims, first, second, pose, farthest):
    """The median distance of two rims that face each other at a pose, beyond the usual gap; 0 if they hardly do."""
    found = np.zeros(rims.start[first + 1] - rims.start[first])
    count = 0
    for k in range(rims.start[first], rims.start[first + 1], STRIDE):
        qx, qy, mx, my = _placed(rims, k, pose[0], pose[1], pose[2], pose[3], 0)
        at, apart = look_up(rims, second, qx, qy)
        if at < 0 or apart > farthest or apart < -DEPTH:
            continue
        if mx * rims.normals[at, 0] + my * rims.normals[at, 1] < -0.7:
            found[count] = apart
            count += 1
    _sort(found, count)
    return found[count // 2] if count > 5 else 0.0


@inner
def look_up(rims, piece, x, y):
    """The rim point of a piece that is nearest to a place in its frame, −1 if far, and the distance beyond the gap."""
    cell = _cell(rims, piece, x, y)
    if cell < 0:
        return -1, 1e9
    code = rims.grid[cell]
    at = rims.start[piece] + (code if code > 0 else -code) - 1
    dx, dy = x - rims.points[at, 0], y - rims.points[at, 1]
    far = np.sqrt(dx * dx + dy * dy)
    if far < 2.5:
        return at, dx * rims.normals[at, 0] + dy * rims.normals[at, 1] - rims.gap
    return at, (far if code > 0 else -far) - rims.gap


@inner
def _cell(rims, piece, x, y):
    """The cell of a piece's grid that holds a place in its frame, −1 outside."""
    column = int(np.rint(x - rims.corner[piece, 0]))
    row = int(np.rint(y - rims.corner[piece, 1]))
    if row < 0 or column < 0 or row >= rims.shape[piece, 0] or column >= rims.shape[piece, 1]:
        return -1
    return rims.cells[piece] + row * rims.shape[piece, 1] + column


@inner
def _placed(rims, point, c, s, x0, y0, backwards):
    """A rim point and its normal in the other piece's frame; `backwards` if it is a point of the second piece."""
    px, py, nx, ny = rims.points[point, 0], rims.points[point, 1], rims.normals[point, 0], rims.normals[point, 1]
    if backwards:
        return c * (px - x0) + s * (py - y0), -s * (px - x0) + c * (py - y0), c * nx + s * ny, -s * nx + c * ny
    return c * px - s * py + x0, s * px + c * py + y0, c * nx - s * ny, s * nx + c * ny


@inner
def _unlike(rims, one, two):
    """The difference of colours of two rim points (CIELAB)."""
    square = 0.0
    for channel in range(3):
        square += (rims.near[one, channel] - rims.near[two, channel]) ** 2
    return np.sqrt(square)


@inner
def _sort(values, count):
    """Sort the first values in place, by Shell's method: numba compiles numpy's sort for a second."""
    for step in (301, 132, 57, 23, 10, 4, 1):
        for index in range(step, count):
            value, at = values[index], index
            while at >= step and values[at - step] > value:
                values[at] = values[at - step]
                at -= step
            values[at] = value
