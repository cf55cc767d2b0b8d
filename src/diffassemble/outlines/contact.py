"""How two rims lie against each other at a pose: loops that numba compiles.

A pose (cosine, sine, x, y) takes working coordinates of the first piece into the frame of the second. Points of one rim
are looked up in the other's grid of nearest points. Type checkers are kept away, as in `assembly/forest.py`.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

# Rims farther apart than this do not touch; those that overlap by more than DEPTH collide.
REACH = 10.0
DEPTH = 4.0

# Numbers that describe a contact, and which of them are never negative and mostly small.
FEATURES = 22
SKEWED = (0, 1, 3, 5, 7, 8, 9, 11, 12, 13, 14, 15, 16, 18, 19, 20)


@njit(cache=True)
@no_type_check
def look_up(rims, piece, x, y):
    """The rim point of a piece that is nearest to a place in its frame, −1 if far, and the distance beyond the gap."""
    column = int(np.rint(x - rims.corner[piece, 0]))
    row = int(np.rint(y - rims.corner[piece, 1]))
    rows, columns = rims.shape[piece, 0], rims.shape[piece, 1]
    if row < 0 or column < 0 or row >= rows or column >= columns:
        return -1, 1e9
    code = rims.grid[rims.cells[piece] + row * columns + column]
    at = rims.start[piece] + (code if code > 0 else -code) - 1
    dx, dy = x - rims.points[at, 0], y - rims.points[at, 1]
    far = np.sqrt(dx * dx + dy * dy)
    along = dx * rims.normals[at, 0] + dy * rims.normals[at, 1]
    if far < 2.5:
        return at, along - rims.gap
    return at, (far if code > 0 else -far) - rims.gap


@njit(cache=True)
@no_type_check
def refine(rims, first, second, poses, rounds, reach):
    """Move each pose, in place, to where the rims lie on each other: robust steps of Gauss and Newton.

    What overlaps counts three times as much as what gapes, since wear only takes away.
    """
    for number in range(len(poses)):
        for turn in range(rounds):
            c, s, x0, y0 = poses[number, 0], poses[number, 1], poses[number, 2], poses[number, 3]
            wide = reach * (1 - 0.5 * turn / rounds)
            normal = np.zeros((3, 3))
            side = np.zeros(3)
            for backwards in range(2):
                mover, base = (second, first) if backwards else (first, second)
                for k in range(rims.start[mover], rims.start[mover + 1], 3):
                    px, py = rims.points[k, 0], rims.points[k, 1]
                    nx, ny = rims.normals[k, 0], rims.normals[k, 1]
                    if backwards:
                        qx, qy = c * (px - x0) + s * (py - y0), -s * (px - x0) + c * (py - y0)
                        mx, my = c * nx + s * ny, -s * nx + c * ny
                    else:
                        qx, qy = c * px - s * py + x0, s * px + c * py + y0
                        mx, my = c * nx - s * ny, s * nx + c * ny
                    at, apart = look_up(rims, base, qx, qy)
                    if at < 0 or apart > wide or apart < -wide:
                        continue
                    bx, by = rims.normals[at, 0], rims.normals[at, 1]
                    facing = -(mx * bx + my * by)
                    if facing < 0.5:
                        continue
                    apart = (qx - rims.points[at, 0]) * bx + (qy - rims.points[at, 1]) * by - rims.gap
                    trust = facing / (1 + (apart / (0.4 * wide)) ** 2)
                    if apart < 0:
                        trust *= 3
                    if backwards:  # the line belongs to the first piece, which moves
                        lx, ly = -(c * bx - s * by), -(s * bx + c * by)
                        ax, ay = px, py
                    else:
                        lx, ly = bx, by
                        ax, ay = qx, qy
                    row0, row1, row2 = lx, ly, (ax - x0) * ly - (ay - y0) * lx
                    normal[0, 0] += trust * row0 * row0
                    normal[0, 1] += trust * row0 * row1
                    normal[0, 2] += trust * row0 * row2
                    normal[1, 1] += trust * row1 * row1
                    normal[1, 2] += trust * row1 * row2
                    normal[2, 2] += trust * row2 * row2
                    side[0] -= trust * row0 * apart
                    side[1] -= trust * row1 * apart
                    side[2] -= trust * row2 * apart
            normal[1, 0], normal[2, 0], normal[2, 1] = normal[0, 1], normal[0, 2], normal[1, 2]
            # What the contact leaves open, sliding along a straight seam, stays.
            normal[0, 0] += 2.0
            normal[1, 1] += 2.0
            normal[2, 2] += 2.0 * 30.0**2
            step = np.linalg.solve(normal, side)
            if np.abs(step[0]) > 6 or np.abs(step[1]) > 6 or np.abs(step[2]) > 0.15:
                step *= min(6 / max(np.abs(step[0]), np.abs(step[1]), 1e-9), 0.15 / max(np.abs(step[2]), 1e-9), 1.0)
            cc, ss = np.cos(step[2]), np.sin(step[2])
            poses[number, 0], poses[number, 1] = cc * c - ss * s, ss * c + cc * s
            poses[number, 2], poses[number, 3] = x0 + step[0], y0 + step[1]
            if np.abs(step[0]) + np.abs(step[1]) < 0.02 and np.abs(step[2]) < 3e-4:
                break


@njit(cache=True)
@no_type_check
def describe(rims, first, second, poses, features, arcs):
    """Numbers of each pose, in place, that tell true contacts from others; `arcs` has bits for what touches.

    Rims are divided into 64 arcs of equal length; bit b of `arcs[m, 0]` says that arc b of the first piece touches.
    """
    longest = max(rims.start[first + 1] - rims.start[first], rims.start[second + 1] - rims.start[second])
    step = 2
    room = 2 * (longest // step + 2)
    who = np.zeros((room, 2), np.int64)
    gap = np.zeros(room)
    spot = np.zeros((room, 4))
    for number in range(len(poses)):
        c, s, x0, y0 = poses[number, 0], poses[number, 1], poses[number, 2], poses[number, 3]
        count, tight, overlap = 0, 0, 0.0
        longest_run = 0
        near_front = 0
        arcs[number, 0], arcs[number, 1] = 0, 0
        for backwards in range(2):
            mover, base = (second, first) if backwards else (first, second)
            run, missed = 0, 99
            whole = rims.start[mover + 1] - rims.start[mover]
            for k in range(rims.start[mover], rims.start[mover + 1], step):
                px, py = rims.points[k, 0], rims.points[k, 1]
                nx, ny = rims.normals[k, 0], rims.normals[k, 1]
                if backwards:
                    qx, qy = c * (px - x0) + s * (py - y0), -s * (px - x0) + c * (py - y0)
                    mx, my = c * nx + s * ny, -s * nx + c * ny
                else:
                    qx, qy = c * px - s * py + x0, s * px + c * py + y0
                    mx, my = c * nx - s * ny, s * nx + c * ny
                at, apart = look_up(rims, base, qx, qy)
                if at >= 0 and apart < -1:
                    overlap += min(-1 - apart, 4 * DEPTH) * step
                touching = False
                if at >= 0 and apart < 1.6 * REACH and apart > -DEPTH:
                    facing = -(mx * rims.normals[at, 0] + my * rims.normals[at, 1])
                    if facing > 0.3:
                        near_front += 1
                    touching = facing > 0.5 and apart < REACH
                if touching:
                    arcs[number, backwards] |= np.int64(1) << np.int64(64 * (k - rims.start[mover]) // whole)
                    who[count, backwards], who[count, 1 - backwards] = k, at
                    gap[count] = apart
                    # Place and normal in the frame of the second piece.
                    if backwards:
                        spot[count, 0], spot[count, 1], spot[count, 2], spot[count, 3] = px, py, nx, ny
                    else:
                        spot[count, 0], spot[count, 1], spot[count, 2], spot[count, 3] = qx, qy, -mx, -my
                    count += 1
                    tight += apart < 2.0
                    run, missed = run + 1, 0
                    if run > longest_run:
                        longest_run = run
                else:
                    missed += 1
                    if missed > 3:
                        run = 0
        out = features[number]
        out[:] = 0
        out[20] = rims.like
        out[21] = np.log(len(rims.cells))
        out[5] = overlap / (2 * rims.unit)
        if count < 6:
            continue
        length = count * step / 2.0
        out[0] = length / rims.unit
        shorter = min(rims.start[first + 1] - rims.start[first], rims.start[second + 1] - rims.start[second])
        out[1] = length / shorter
        mean_gap = gap[:count].mean()
        out[2] = mean_gap
        out[3] = gap[:count].std()
        out[4] = tight / count
        # How far the contact can slide: the weakest direction of its normals; how far it bends off a line.
        xx = (spot[:count, 2] ** 2).mean()
        yy = (spot[:count, 3] ** 2).mean()
        xy = (spot[:count, 2] * spot[:count, 3]).mean()
        out[6] = (xx + yy) / 2 - np.sqrt(((xx - yy) / 2) ** 2 + xy * xy)
        ax, ay = spot[:count, 0].mean(), spot[:count, 1].mean()
        xx = ((spot[:count, 0] - ax) ** 2).mean()
        yy = ((spot[:count, 1] - ay) ** 2).mean()
        xy = ((spot[:count, 0] - ax) * (spot[:count, 1] - ay)).mean()
        spread = np.sqrt(((xx - yy) / 2) ** 2 + xy * xy)
        out[7] = np.sqrt(max((xx + yy) / 2 - spread, 0.0)) / rims.unit
        out[8] = np.sqrt((xx + yy) / 2 + spread) / rims.unit
        out[9] = longest_run * step / rims.unit
        out[10] = count / max(near_front, count)
        # Colours: as they are, continued over the gap, against those a little farther along the seam.
        plain, beyond, shifted, shifts, textured = 0.0, 0.0, 0.0, 0, 0.0
        values = np.zeros(count)
        mean_first, mean_second = np.zeros(3), np.zeros(3)
        for m in range(count):
            a, b = who[m, 0], who[m, 1]
            unlike, continued, between = 0.0, 0.0, 0.0
            for channel in range(3):
                own, other = rims.near[a, channel], rims.near[b, channel]
                mean_first[channel] += own / count
                mean_second[channel] += other / count
                unlike += (own - other) ** 2
                reach = 0.5 * (3.5 + 0.5 * max(gap[m], 0.0)) / 5.5
                slope_own = own - rims.deep[a, channel]
                slope_other = other - rims.deep[b, channel]
                continued += (own + reach * slope_own - other - reach * slope_other) ** 2
                between += slope_own**2 + slope_other**2
            values[m] = np.sqrt(unlike)
            plain += min(values[m], 50.0)
            beyond += min(np.sqrt(continued), 50.0)
            textured += min(np.sqrt(between), 50.0)
            for away in (-14, 14):
                moved = b + away
                low, high = rims.start[second], rims.start[second + 1]
                moved = moved - (high - low) if moved >= high else moved + (high - low) if moved < low else moved
                unlike = 0.0
                for channel in range(3):
                    unlike += (rims.near[a, channel] - rims.near[moved, channel]) ** 2
                shifted += min(np.sqrt(unlike), 50.0)
                shifts += 1
        values.sort()
        out[11] = plain / count
        out[12] = values[count // 2]
        out[13] = beyond / count
        out[14] = shifted / shifts
        out[15] = textured / count
        unlike = 0.0
        for channel in range(3):
            unlike += (mean_first[channel] - mean_second[channel]) ** 2
        out[16] = np.sqrt(unlike)
        # How alike colours change along the seam.
        both, one, two = 0.0, 0.0, 0.0
        for m in range(count):
            a, b = who[m, 0], who[m, 1]
            for channel in range(3):
                own = rims.near[a, channel] - mean_first[channel]
                other = rims.near[b, channel] - mean_second[channel]
                both += own * other
                one += own * own
                two += other * other
        out[17] = both / np.sqrt((one + 1.0) * (two + 1.0))
        out[18] = np.sqrt((one + two) / (2 * count))
        out[19] = values[(9 * count) // 10]


@njit(cache=True)
@no_type_check
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
            x, y = c * px - s * py + x0, s * px + c * py + y0
            there = int(np.rint(x - rims.corner[second, 0]))
            down = int(np.rint(y - rims.corner[second, 1]))
            if there < 0 or down < 0 or down >= rims.shape[second, 0] or there >= rims.shape[second, 1]:
                continue
            shared += rims.grid[rims.cells[second] + down * rims.shape[second, 1] + there] < 0
    return 16.0 * shared


@njit(cache=True)
@no_type_check
def separation(rims, first, second, pose, farthest):
    """How far beyond the usual gap two rims that face each other lie apart at a pose: the median along the seam."""
    c, s, x0, y0 = pose[0], pose[1], pose[2], pose[3]
    found = np.zeros(rims.start[first + 1] - rims.start[first])
    count = 0
    for k in range(rims.start[first], rims.start[first + 1], 2):
        px, py = rims.points[k, 0], rims.points[k, 1]
        at, apart = look_up(rims, second, c * px - s * py + x0, s * px + c * py + y0)
        if at < 0 or apart > farthest or apart < -DEPTH:
            continue
        nx, ny = rims.normals[k, 0], rims.normals[k, 1]
        if (c * nx - s * ny) * rims.normals[at, 0] + (s * nx + c * ny) * rims.normals[at, 1] < -0.7:
            found[count] = apart
            count += 1
    return np.median(found[:count]) if count > 5 else 0.0
