"""Refine a pose: slide one break along the other until their surfaces coincide (symmetric point to plane)."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diffassemble.compatibility.fracture.contact import place, turn
from diffassemble.compatibility.fracture.voxels import look_up


@njit(cache=True, nogil=True)
@no_type_check
def refine(pose, own, own_normals, voxels, points, normals, first, last, rounds):
    """The pose after some rounds, in which points are matched within a radius that falls from `first` to `last`."""
    pose = pose.copy()
    for number in range(rounds):
        radius = first + (last - first) * number / max(1, rounds - 1)
        matrix, vector, count, middle = _equations(pose, own, own_normals, voxels, points, normals, radius)
        if count < 6:
            break
        scale = np.trace(matrix[:3, :3]) / 3
        for k in range(6):
            # Where the break is flat nothing holds the pose: then it shall stay.
            matrix[k, k] += 1e-3 * scale if k < 3 else 1e-3 * count
        _move(pose, np.linalg.solve(matrix, vector), middle)
    return pose


@njit(cache=True, nogil=True)
@no_type_check
def _equations(pose, own, own_normals, voxels, points, normals, radius):
    """Normal equations of the motion (turn about the middle of the matched points, then shift)."""
    matrix, vector, middle = np.zeros((6, 6)), np.zeros(6), np.zeros(3)
    pairs = np.empty((len(own), 9))
    count = 0
    for i in range(len(own)):
        x, y, z = place(pose, own[i])
        j = look_up(x, y, z, voxels.low, voxels.side, voxels.directory, voxels.blocks)
        if j < 0:
            continue
        u, v, w = points[j, 0] - x, points[j, 1] - y, points[j, 2] - z
        if u * u + v * v + w * w > radius * radius:
            continue
        p, q, r = turn(pose, own_normals[i])
        a, b, c = normals[j, 0] - p, normals[j, 1] - q, normals[j, 2] - r
        if p * normals[j, 0] + q * normals[j, 1] + r * normals[j, 2] > -0.4:
            continue
        length = np.sqrt(a * a + b * b + c * c)
        pairs[count, 0], pairs[count, 1], pairs[count, 2] = x + u / 2, y + v / 2, z + w / 2
        pairs[count, 3], pairs[count, 4], pairs[count, 5] = a / length, b / length, c / length
        pairs[count, 6] = (u * a + v * b + w * c) / length
        middle += pairs[count, :3]
        count += 1
    middle /= max(1, count)
    row = np.empty(6)
    for i in range(count):
        g, n = pairs[i, :3] - middle, pairs[i, 3:6]
        row[0], row[1], row[2] = g[1] * n[2] - g[2] * n[1], g[2] * n[0] - g[0] * n[2], g[0] * n[1] - g[1] * n[0]
        row[3], row[4], row[5] = n[0], n[1], n[2]
        for k in range(6):
            vector[k] += row[k] * pairs[i, 6]
            for m in range(6):
                matrix[k, m] += row[k] * row[m]
    return matrix, vector, count, middle


@njit(cache=True, nogil=True)
@no_type_check
def _move(pose, motion, middle):
    """Turn the pose about the middle by a rotation vector, and shift it, in place."""
    angle = np.sqrt(motion[0] ** 2 + motion[1] ** 2 + motion[2] ** 2)
    spin = np.eye(3)
    if angle > 1e-12:
        x, y, z = motion[0] / angle, motion[1] / angle, motion[2] / angle
        c, s = np.cos(angle), np.sin(angle)
        d = 1 - c
        spin[0, 0], spin[0, 1], spin[0, 2] = c + x * x * d, x * y * d - z * s, x * z * d + y * s
        spin[1, 0], spin[1, 1], spin[1, 2] = y * x * d + z * s, c + y * y * d, y * z * d - x * s
        spin[2, 0], spin[2, 1], spin[2, 2] = z * x * d - y * s, z * y * d + x * s, c + z * z * d
    turned = spin @ np.ascontiguousarray(pose[:9]).reshape(3, 3)
    shifted = spin @ (pose[9:] - middle) + middle + motion[3:]
    pose[:9] = turned.copy().reshape(9)
    pose[9:] = shifted
