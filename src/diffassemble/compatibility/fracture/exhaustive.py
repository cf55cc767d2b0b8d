"""Every place a small break may have on a large one: point against point, at all turns about their normals.

Type checkers are kept away from what numba compiles.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diffassemble.compatibility.fracture.contact import count_buried, touches

_REACH, _PLANE, _FACING = 2.2, 1.2, -0.5
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
