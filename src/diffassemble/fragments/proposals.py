"""Very many cheap guesses at how two breaks fit."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diffassemble.fragments.contact import count_buried, place, touches, turn
from diffassemble.fragments.spatial import look_up

# ----------------------------------------------------------------------------------------------------------------------
# Very many cheap guesses at how two breaks fit: pairs of points against pairs of points, checked at once.
#
# Type checkers are kept away from what numba compiles.


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


# ----------------------------------------------------------------------------------------------------------------------
# Every place a small break may have on a large one: point against point, at all turns about their normals.
#
# Type checkers are kept away from what numba compiles.


# After so many points of the trial the share that must touch is asked for.
_FIRST = 10


@njit(cache=True, nogil=True)
@no_type_check
def propose_everywhere(own, keys, trial, other, places, spacing, turns, most, share):
    """The best poses (h, 12) of `own` with a key on a place of `other`, and their scores, matched less buried points.

    At least `share` of the trial must touch. Where both points are at a rim, only turns that make the original surfaces
    go on into each other are tried.
    """
    poses, scores = np.empty((most, 12)), np.full(most, -1e9)
    pose, frame, found = np.empty(12), np.empty((3, 3)), 0
    least = share * len(trial)
    probe = own.probe[::3]
    deep = 1.5 * other.body.spacing
    for a in keys:
        for b in places:
            _frames(own.smooth[a], other.smooth[b], frame, pose)
            base = np.ascontiguousarray(pose[:9]).reshape(3, 3).copy()
            for number in range(turns):
                angle = 2 * np.pi * number / turns
                _spun(base, other.smooth[b], angle, own.points[a], other.points[b], pose)
                if not _goes_on(own, other, a, b, pose):
                    continue
                score = float(_count(pose, own, other, trial, spacing, share, least))
                if score < least:
                    continue
                body = other.body
                score -= 3 * count_buried(pose, probe, body.voxels, body.points, body.normals, deep)
                slot = found if found < most else np.argmin(scores)
                if score > scores[slot]:
                    poses[slot], scores[slot] = pose, score
                    found = min(found + 1, most)
                    if found == most:  # from now on only what is better than the worst of the best counts
                        least = max(least, scores.min() + 0.5)
    return poses[:found], scores[:found]


@njit(cache=True, nogil=True)
@no_type_check
def _frames(n, m, frame, pose):
    """The shortest turn that makes two normals oppose each other, into the pose's rotation."""
    x, y, z = -m[0], -m[1], -m[2]
    c = n[0] * x + n[1] * y + n[2] * z
    if c < -0.99999:
        axis = np.array([1.0, 0.0, 0.0]) if abs(n[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
        along = axis[0] * n[0] + axis[1] * n[1] + axis[2] * n[2]
        for k in range(3):
            axis[k] -= along * n[k]
        axis /= np.sqrt((axis * axis).sum())
        for i in range(3):
            for j in range(3):
                pose[3 * i + j] = 2 * axis[i] * axis[j] - (1.0 if i == j else 0.0)
        return
    p, q, r = n[1] * z - n[2] * y, n[2] * x - n[0] * z, n[0] * y - n[1] * x
    frame[0, 0], frame[0, 1], frame[0, 2] = 0.0, -r, q
    frame[1, 0], frame[1, 1], frame[1, 2] = r, 0.0, -p
    frame[2, 0], frame[2, 1], frame[2, 2] = -q, p, 0.0
    turn = np.eye(3) + frame + frame @ frame / (1 + c)
    pose[:9] = turn.reshape(9)


@njit(cache=True, nogil=True)
@no_type_check
def _spun(base, axis, angle, point, place, pose):
    """The rotation turned about an axis, with the point brought onto its place."""
    c, s = np.cos(angle), np.sin(angle)
    d = 1 - c
    x, y, z = axis[0], axis[1], axis[2]
    spin = (
        (c + x * x * d, x * y * d - z * s, x * z * d + y * s),
        (y * x * d + z * s, c + y * y * d, y * z * d - x * s),
        (z * x * d - y * s, z * y * d + x * s, c + z * z * d),
    )
    for i in range(3):
        moved = 0.0
        for j in range(3):
            total = spin[i][0] * base[0, j] + spin[i][1] * base[1, j] + spin[i][2] * base[2, j]
            pose[3 * i + j] = total
            moved += total * point[j]
        pose[9 + i] = place[i] - moved


@njit(cache=True, nogil=True)
@no_type_check
def _goes_on(own, other, a, b, pose):
    """Whether the original surfaces go on into each other, as far as both are known."""
    if own.rim[a] > 2.5 or other.rim[b] > 2.5:
        return True
    o, r = own.original[a], other.original[b]
    total = 0.0
    for i in range(3):
        total += r[i] * (pose[3 * i] * o[0] + pose[3 * i + 1] * o[1] + pose[3 * i + 2] * o[2])
    return total > 0.7


@njit(cache=True, nogil=True)
@no_type_check
def _count(pose, own, other, trial, spacing, share, least):
    """Points of the trial that touch; given up early where the first ones hardly do or `least` is out of reach."""
    missed = 0
    for k in range(len(trial)):
        i = trial[k]
        if touches(
            pose, own.points[i], own.smooth[i], other.voxels, other.points, other.smooth,
            _REACH * spacing, _PLANE * spacing, _FACING,
        ):  # fmt: skip
            continue
        missed += 1
        if len(trial) - missed < least or (k < _FIRST and missed > (1 - share) * _FIRST):
            return 0
    return len(trial) - missed
