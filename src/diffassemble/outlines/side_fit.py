"""How well a tab fits a hole: rigid motions that bring one side onto another, in loops that numba compiles.

Both sides are given in the order in which they lie along each other, so the hole is run through backwards: then the
tab's piece lies to the right of both, the hole's piece to the left, and a gap between them counts as positive. Type
checkers are kept away: they would wrap the functions, and then numba couldn't compile them.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

# Points left out at both ends, where corners are frayed and a third piece begins; every so manieth point is fitted.
_TRIMMED, _STRIDE = 5, 2
# Points lie no further along a side from their counterpart than this.
_WINDOW = 10
_STEPS = 7
# A motion that moves the side by less than this part of the tolerance is the last.
_STILL = 0.02
# What a fit is told by.
ANGLE, SHIFT_X, SHIFT_Y, ERROR, GAP = range(5)


@njit(cache=True, nogil=True)
@no_type_check
def fit_sides(tabs, holes, pairs, tolerance, fits):
    """Bring tabs onto holes by point-to-line steps; `fits` gets angle, shift, error and gap of each pair.

    x in the hole's frame = R(angle) x + shift. The error is the root mean square distance between the two curves, seen
    from both, in which distances beyond three times the `tolerance` count no more; those beyond it pull with no more
    force. The gap is the mean signed distance.
    """
    count = tabs.shape[1]
    tab_normals, hole_normals = _normals(tabs), _normals(holes)
    moved = np.empty((count, 2))
    turned = np.empty((count, 2))
    for number in range(len(pairs)):
        tab, hole = tabs[pairs[number, 0]], holes[pairs[number, 1]]
        normals = hole_normals[pairs[number, 1]]
        angle, x, y = _start(tab, hole)
        for _ in range(_STEPS):
            _move(tab, angle, x, y, moved)
            d_angle, d_x, d_y = _improve(moved, hole, normals, tolerance)
            # The turn was about the middle of the side.
            middle_x, middle_y = moved[:, 0].mean(), moved[:, 1].mean()
            cosine, sine = np.cos(d_angle), np.sin(d_angle)
            off_x, off_y = x - middle_x, y - middle_y
            x = cosine * off_x - sine * off_y + middle_x + d_x
            y = sine * off_x + cosine * off_y + middle_y + d_y
            angle += d_angle
            if abs(d_x) + abs(d_y) + abs(d_angle) * count * 0.5 < _STILL * tolerance:
                break
        _move(tab, angle, x, y, moved)
        _move(tab_normals[pairs[number, 0]], angle, 0.0, 0.0, turned)
        squares, gap, used = _distances(moved, hole, normals, tolerance)
        back, gap_back, used_back = _distances(hole, moved, turned, tolerance)
        fits[number, ANGLE], fits[number, SHIFT_X], fits[number, SHIFT_Y] = angle, x, y
        fits[number, ERROR] = np.sqrt((squares + back) / (used + used_back))
        fits[number, GAP] = (gap - gap_back) / (used + used_back)


@njit(cache=True, nogil=True)
@no_type_check
def _normals(sides):
    """Unit vectors to the right of each point of each side."""
    normals = np.empty_like(sides)
    last = sides.shape[1] - 1
    for side in range(len(sides)):
        for point in range(last + 1):
            one, two = max(point - 2, 0), min(point + 2, last)
            x, y = sides[side, two, 0] - sides[side, one, 0], sides[side, two, 1] - sides[side, one, 1]
            length = np.sqrt(x * x + y * y) + 1e-12
            normals[side, point, 0], normals[side, point, 1] = -y / length, x / length
    return normals


@njit(cache=True, nogil=True)
@no_type_check
def _move(points, angle, x, y, moved):
    cosine, sine = np.cos(angle), np.sin(angle)
    for point in range(len(points)):
        moved[point, 0] = cosine * points[point, 0] - sine * points[point, 1] + x
        moved[point, 1] = sine * points[point, 0] + cosine * points[point, 1] + y


@njit(cache=True, nogil=True)
@no_type_check
def _start(tab, hole):
    """The rigid motion that brings points to those of the same number."""
    mean = np.zeros(4)
    for point in range(len(tab)):
        for axis in range(2):
            mean[axis] += tab[point, axis]
            mean[2 + axis] += hole[point, axis]
    mean /= len(tab)
    cosine, sine = 0.0, 0.0
    for point in range(len(tab)):
        ax, ay = tab[point, 0] - mean[0], tab[point, 1] - mean[1]
        bx, by = hole[point, 0] - mean[2], hole[point, 1] - mean[3]
        cosine += ax * bx + ay * by
        sine += ax * by - ay * bx
    angle = np.arctan2(sine, cosine)
    cosine, sine = np.cos(angle), np.sin(angle)
    return angle, mean[2] - cosine * mean[0] + sine * mean[1], mean[3] - sine * mean[0] - cosine * mean[1]


@njit(cache=True, nogil=True)
@no_type_check
def _nearest(x, y, other, point, begin):
    """The point of the other side nearest to (x, y), among those near `point`, downhill from `begin`."""
    low, high = max(point - _WINDOW, 0), min(point + _WINDOW, len(other) - 1)
    best = min(max(begin, low), high)
    least = (x - other[best, 0]) ** 2 + (y - other[best, 1]) ** 2
    for way in (-1, 1):
        while low <= best + way <= high:
            apart = (x - other[best + way, 0]) ** 2 + (y - other[best + way, 1]) ** 2
            if apart >= least:
                break
            best, least = best + way, apart
    return best


@njit(cache=True, nogil=True)
@no_type_check
def _improve(moved, hole, normals, tolerance):
    """One weighted step of least squares: a turn about the middle, and a shift."""
    middle_x, middle_y = moved[:, 0].mean(), moved[:, 1].mean()
    aa, ax, ay, xx, xy, yy, ra, rx, ry = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    near = 0
    for point in range(_TRIMMED, len(moved) - _TRIMMED, _STRIDE):
        near = _nearest(moved[point, 0], moved[point, 1], hole, point, near + _STRIDE)
        nx, ny = normals[near, 0], normals[near, 1]
        left = (moved[point, 0] - hole[near, 0]) * nx + (moved[point, 1] - hole[near, 1]) * ny
        weight = 1.0 if abs(left) <= tolerance else tolerance / abs(left)
        lever = nx * (middle_y - moved[point, 1]) + ny * (moved[point, 0] - middle_x)
        aa += weight * lever * lever
        ax += weight * lever * nx
        ay += weight * lever * ny
        xx += weight * nx * nx
        xy += weight * nx * ny
        yy += weight * ny * ny
        ra -= weight * lever * left
        rx -= weight * nx * left
        ry -= weight * ny * left
    # A little stiffness, for sides that could slide along each other.
    aa, xx, yy = aa * (1 + 1e-6) + 1e-9, xx + 1e-3, yy + 1e-3
    # Cramer's rule.
    one, two, three = xx * yy - xy * xy, ax * yy - xy * ay, ax * xy - xx * ay
    whole = aa * one - ax * two + ay * three
    if abs(whole) < 1e-12:
        return 0.0, 0.0, 0.0
    d_angle = (ra * one - ax * (rx * yy - xy * ry) + ay * (rx * xy - xx * ry)) / whole
    d_x = (aa * (rx * yy - xy * ry) - ra * two + ay * (ax * ry - rx * ay)) / whole
    d_y = (aa * (xx * ry - rx * xy) - ax * (ax * ry - rx * ay) + ra * three) / whole
    return d_angle, d_x, d_y


@njit(cache=True, nogil=True)
@no_type_check
def _distances(points, other, normals, tolerance):
    """Sums of squared and of signed distances from points to the other side's lines, and how many there are."""
    squares, signed, used = 0.0, 0.0, 0
    most = 3 * tolerance
    near = 0
    for point in range(_TRIMMED, len(points) - _TRIMMED):
        near = _nearest(points[point, 0], points[point, 1], other, point, near + 1)
        left = (points[point, 0] - other[near, 0]) * normals[near, 0]
        left += (points[point, 1] - other[near, 1]) * normals[near, 1]
        apart = (points[point, 0] - other[near, 0]) ** 2 + (points[point, 1] - other[near, 1]) ** 2
        # Where the nearest point is not beside but far along the line, the line says nothing.
        squares += min(left * left if apart - left * left < most * most else apart, most * most)
        signed += min(max(left, -most), most)
        used += 1
    return squares, signed, used
