"""How two surfaces meet when one is moved towards the other: loops that numba compiles.

A pose is 12 numbers: rotation row by row, then translation; it moves the points of the first side into the second's
frame. Type checkers are kept away from what numba compiles.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

from diffassemble.compatibility.fracture.voxels import INSIDE, look_up


@njit(cache=True, nogil=True)
@no_type_check
def place(pose, p):
    """A point, moved."""
    return (
        pose[0] * p[0] + pose[1] * p[1] + pose[2] * p[2] + pose[9],
        pose[3] * p[0] + pose[4] * p[1] + pose[5] * p[2] + pose[10],
        pose[6] * p[0] + pose[7] * p[1] + pose[8] * p[2] + pose[11],
    )


@njit(cache=True, nogil=True)
@no_type_check
def turn(pose, n):
    """A direction, turned."""
    return (
        pose[0] * n[0] + pose[1] * n[1] + pose[2] * n[2],
        pose[3] * n[0] + pose[4] * n[1] + pose[5] * n[2],
        pose[6] * n[0] + pose[7] * n[1] + pose[8] * n[2],
    )


@njit(cache=True, nogil=True)
@no_type_check
def touches(pose, point, normal, voxels, points, normals, reach, plane, facing):
    """Whether a moved point lies on the other break: near it, in its plane, and facing it."""
    x, y, z = place(pose, point)
    j = look_up(x, y, z, voxels.low, voxels.side, voxels.directory, voxels.blocks)
    if j < 0:
        return False
    u, v, w = x - points[j, 0], y - points[j, 1], z - points[j, 2]
    if u * u + v * v + w * w > reach * reach:
        return False
    a, b, c = normals[j, 0], normals[j, 1], normals[j, 2]
    if abs(u * a + v * b + w * c) > plane:
        return False
    p, q, r = turn(pose, normal)
    return p * a + q * b + r * c < facing


@njit(cache=True, nogil=True)
@no_type_check
def buried(pose, point, voxels, points, normals, depth):
    """Whether a moved point lies inside the other body, deeper than `depth`."""
    x, y, z = place(pose, point)
    j = look_up(x, y, z, voxels.low, voxels.side, voxels.directory, voxels.blocks)
    if j < 0:
        return j == INSIDE
    u, v, w = x - points[j, 0], y - points[j, 1], z - points[j, 2]
    height = u * normals[j, 0] + v * normals[j, 1] + w * normals[j, 2]
    # Beside a sharp rim the nearest point's plane says little: the place must lie rather below it than beside it.
    return height < -depth and 2 * height * height > u * u + v * v + w * w


@njit(cache=True, nogil=True)
@no_type_check
def count_buried(pose, body, voxels, points, normals, depth):
    """How many of the points lie inside the other body."""
    count = 0
    for i in range(len(body)):
        if buried(pose, body[i], voxels, points, normals, depth):
            count += 1
    return count


@njit(cache=True, nogil=True)
@no_type_check
def count_touching(pose, own, own_normals, voxels, points, normals, reach, plane, facing):
    """How many of the points lie on the other break."""
    count = 0
    for i in range(len(own)):
        if touches(pose, own[i], own_normals[i], voxels, points, normals, reach, plane, facing):
            count += 1
    return count


@njit(cache=True, nogil=True)
@no_type_check
def meet(pose, own, own_normals, voxels, points, normals):
    """For each point: its nearest on the other break or −1, distance, height above it, and product of normals."""
    near = np.full(len(own), -1, np.int64)
    numbers = np.zeros((len(own), 3), np.float32)
    for i in range(len(own)):
        x, y, z = place(pose, own[i])
        j = look_up(x, y, z, voxels.low, voxels.side, voxels.directory, voxels.blocks)
        if j < 0:
            continue
        u, v, w = x - points[j, 0], y - points[j, 1], z - points[j, 2]
        p, q, r = turn(pose, own_normals[i])
        near[i] = j
        numbers[i, 0] = np.sqrt(u * u + v * v + w * w)
        numbers[i, 1] = u * normals[j, 0] + v * normals[j, 1] + w * normals[j, 2]
        numbers[i, 2] = p * normals[j, 0] + q * normals[j, 1] + r * normals[j, 2]
    return near, numbers


@njit(cache=True, nogil=True)
@no_type_check
def undone(pose):
    """The pose that moves back."""
    back = np.empty(12)
    for i in range(3):
        for j in range(3):
            back[3 * i + j] = pose[3 * j + i]
    for i in range(3):
        back[9 + i] = -(back[3 * i] * pose[9] + back[3 * i + 1] * pose[10] + back[3 * i + 2] * pose[11])
    return back
