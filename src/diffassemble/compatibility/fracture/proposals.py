"""Very many cheap guesses at how two breaks fit: pairs of points against pairs of points, checked at once.

Type checkers are kept away from what numba compiles.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diffassemble.compatibility.fracture.contact import count_buried, place, touches, turn
from diffassemble.compatibility.fracture.voxels import look_up

_REACH, _PLANE, _FACING = 2.2, 1.2, -0.5


@njit(cache=True, nogil=True)
@no_type_check
def propose(own, keys, mates, table, company, around, trial, other, spacing, draws, most, shortest, state):
    """The best poses (h, 12) that pass all checks, and their scores (h,): likeness of touching points less buried ones.

    `own` and `other` are sides; key k (a point of `own`) may correspond to the points mates[k] of `other`; `table`
    holds numbers k · len(mates[k]) + m to draw from, likely ones often; `company[k]` are other keys not far from key k,
    `around[k]` points near it; `trial` are the points that are counted.
    """
    poses, scores = np.empty((most, 12)), np.full(most, -1e9)
    found, width, pose, looked, worst = 0, mates.shape[1], np.empty(12), 0, -1e9
    first_part, deep = trial[: len(trial) // 3], 1.5 * other.body.spacing
    for _ in range(draws):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
        one, two = table[(state >> 20) % len(table)], table[(state >> 41) % len(table)]
        first = one // width
        if state & 1 << 18:  # small interfaces are met more often by pairs that are not far from each other
            second = company[first, (state >> 36) % company.shape[1]]
            two = second * width + two % width
        second = two // width
        if first == second:
            continue
        a, b = keys[first], keys[second]
        c, d = mates[first, one % width], mates[second, two % width]
        if not _alike(own, other, a, b, c, d, spacing, shortest):
            continue
        _pose_of(own, other, a, b, c, d, pose)
        if not _holds_near(pose, own, other, around[first], around[second], spacing):
            continue
        looked += 1
        if looked > 12 * most:
            break
        if 3 * likeness(pose, own, other, first_part, _REACH, _PLANE, _FACING, spacing) < 0.5 * worst:
            continue
        score = likeness(pose, own, other, trial, _REACH, _PLANE, _FACING, spacing)
        if score <= worst:
            continue
        body = other.body
        score -= 0.5 * count_buried(pose, own.probe, body.voxels, body.points, body.normals, deep)
        slot = found if found < most else np.argmin(scores)
        if score > scores[slot]:
            poses[slot], scores[slot] = pose, score
            found = min(found + 1, most)
            if found == most:
                worst = scores.min()
    return poses[:found], scores[:found]


@njit(cache=True, nogil=True)
@no_type_check
def likeness(pose, own, other, trial, reach, plane, facing, spacing):
    """Over the points that touch, the sum of how much each looks as its mate should (0 … 1, squared)."""
    total, width = 0.0, own.seen.shape[1]
    for i in trial:
        x, y, z = place(pose, own.points[i])
        j = look_up(x, y, z, other.voxels.low, other.voxels.side, other.voxels.directory, other.voxels.blocks)
        if j < 0:
            continue
        u, v, w = x - other.points[j, 0], y - other.points[j, 1], z - other.points[j, 2]
        if u * u + v * v + w * w > (reach * spacing) ** 2:
            continue
        a, b, c = other.smooth[j, 0], other.smooth[j, 1], other.smooth[j, 2]
        if abs(u * a + v * b + w * c) > plane * spacing:
            continue
        p, q, r = turn(pose, own.smooth[i])
        if p * a + q * b + r * c > facing:
            continue
        alike = 0.0
        for k in range(width):
            alike += own.sought[i, k] * other.seen[j, k]
        if alike > 0:
            total += alike * alike
    return total


@njit(cache=True, nogil=True)
@no_type_check
def _alike(own, other, a, b, c, d, spacing, shortest):
    """Whether two points of one break lie to each other as two points of the other do."""
    ux, uy, uz = (
        own.points[b, 0] - own.points[a, 0],
        own.points[b, 1] - own.points[a, 1],
        own.points[b, 2] - own.points[a, 2],
    )
    vx, vy, vz = (
        other.points[d, 0] - other.points[c, 0],
        other.points[d, 1] - other.points[c, 1],
        other.points[d, 2] - other.points[c, 2],
    )
    length, facing = np.sqrt(ux * ux + uy * uy + uz * uz), np.sqrt(vx * vx + vy * vy + vz * vz)
    if length < shortest or facing < shortest or abs(length - facing) > 1.5 * spacing:
        return False
    n, m, p, q = own.smooth[a], own.smooth[b], other.smooth[c], other.smooth[d]
    one = (n[0] * ux + n[1] * uy + n[2] * uz) / length
    if abs(one + (p[0] * vx + p[1] * vy + p[2] * vz) / facing) > 0.3:
        return False
    one = (m[0] * ux + m[1] * uy + m[2] * uz) / length
    if abs(one + (q[0] * vx + q[1] * vy + q[2] * vz) / facing) > 0.3:
        return False
    one = n[0] * m[0] + n[1] * m[1] + n[2] * m[2]
    if abs(one - (p[0] * q[0] + p[1] * q[1] + p[2] * q[2])) > 0.35:
        return False
    for i, j in ((a, c), (b, d)):
        if own.rim[i] < 2.5 and other.rim[j] < 2.5:
            o, r = own.original[i], other.original[j]
            one = (o[0] * ux + o[1] * uy + o[2] * uz) / length
            if abs(one - (r[0] * vx + r[1] * vy + r[2] * vz) / facing) > 0.35:
                return False
    return True


@njit(cache=True, nogil=True)
@no_type_check
def _pose_of(own, other, a, b, c, d, pose):
    """The pose that brings two points onto two others, turned about their axis so that normals oppose each other."""
    u, v = np.empty(3), np.empty(3)
    for k in range(3):
        u[k] = own.points[b, k] - own.points[a, k]
        v[k] = other.points[d, k] - other.points[c, k]
    u /= np.sqrt((u * u).sum())
    v /= np.sqrt((v * v).sum())
    turn = _shortest_turn(u, v)
    cosine, sine = 0.0, 0.0
    for i, j in ((a, c), (b, d)):
        extra, extra2 = _spin(turn, v, own.smooth[i], other.smooth[j], -1.0)
        cosine, sine = cosine + extra, sine + extra2
        if own.rim[i] < 2.5 and other.rim[j] < 2.5:
            extra, extra2 = _spin(turn, v, own.original[i], other.original[j], 1.0)
            cosine, sine = cosine + extra, sine + extra2
    length = max(np.sqrt(cosine * cosine + sine * sine), 1e-9)
    turn = _about(v, cosine / length, sine / length) @ turn
    pose[:9] = turn.copy().reshape(9)
    for k in range(3):
        moved = 0.0
        for m in range(3):
            moved += turn[k, m] * (own.points[a, m] + own.points[b, m]) / 2
        pose[9 + k] = (other.points[c, k] + other.points[d, k]) / 2 - moved


@njit(cache=True, nogil=True)
@no_type_check
def _shortest_turn(u, v):
    """The rotation that brings one unit vector onto another the shortest way."""
    c = u[0] * v[0] + u[1] * v[1] + u[2] * v[2]
    if c < -0.999999:
        axis = np.array([1.0, 0.0, 0.0]) if abs(u[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
        axis -= (axis * u).sum() * u
        axis /= np.sqrt((axis * axis).sum())
        return 2 * np.outer(axis, axis) - np.eye(3)
    x, y, z = u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + cross + cross @ cross / (1 + c)


@njit(cache=True, nogil=True)
@no_type_check
def _about(axis, c, s):
    """The rotation about a unit axis by an angle of given cosine and sine."""
    x, y, z = axis[0], axis[1], axis[2]
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return c * np.eye(3) + s * cross + (1 - c) * np.outer(axis, axis)


@njit(cache=True, nogil=True)
@no_type_check
def _spin(turn, axis, given, wanted, sign):
    """What a pair of directions says about the angle around the axis, as cosine and sine."""
    x = turn[0, 0] * given[0] + turn[0, 1] * given[1] + turn[0, 2] * given[2]
    y = turn[1, 0] * given[0] + turn[1, 1] * given[1] + turn[1, 2] * given[2]
    z = turn[2, 0] * given[0] + turn[2, 1] * given[1] + turn[2, 2] * given[2]
    p, q, r = sign * wanted[0], sign * wanted[1], sign * wanted[2]
    along = x * axis[0] + y * axis[1] + z * axis[2]
    across = p * axis[0] + q * axis[1] + r * axis[2]
    cosine = x * p + y * q + z * r - along * across
    sine = axis[0] * (y * r - z * q) + axis[1] * (z * p - x * r) + axis[2] * (x * q - y * p)
    return cosine, sine


@njit(cache=True, nogil=True)
@no_type_check
def _holds_near(pose, own, other, near_first, near_second, spacing):
    """Whether at least half of the points around both correspondences touch."""
    total = len(near_first) + len(near_second)
    missed = 0
    for k in range(total):
        i = near_first[k // 2] if k % 2 == 0 else near_second[k // 2]
        if not touches(
            pose, own.points[i], own.smooth[i], other.voxels, other.points, other.smooth,
            _REACH * spacing, _PLANE * spacing, _FACING,
        ):  # fmt: skip
            missed += 1
            if 2 * missed > total:
                return False
    return True
