"""Points sorted into cubes of space by hashing, so that neighbours are found at once: loops that numba compiles.

Type checkers are kept away: they would wrap the functions, and then numba couldn't compile them.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
@no_type_check
def bucket(x, y, z, mask):
    """Number of the bucket that the points of a cube lie in; cubes may share one."""
    return ((x * 73856093) ^ (y * 19349663) ^ (z * 83492791)) & mask


@njit(cache=True, nogil=True)
@no_type_check
def sort_points(points, side):
    """Cubes of the given side: where each bucket starts, point numbers in order of bucket, and each point's cube."""
    count = len(points)
    size = 64
    while size < 2 * count:
        size *= 2
    mask = size - 1
    cubes = np.empty((count, 3), np.int64)
    start = np.zeros(size + 1, np.int64)
    for i in range(count):
        for k in range(3):
            cubes[i, k] = int(np.floor(points[i, k] / side))
        start[bucket(cubes[i, 0], cubes[i, 1], cubes[i, 2], mask) + 1] += 1
    for b in range(size):
        start[b + 1] += start[b]
    fill = start[:-1].copy()
    order = np.empty(count, np.int64)
    for i in range(count):
        b = bucket(cubes[i, 0], cubes[i, 1], cubes[i, 2], mask)
        order[fill[b]] = i
        fill[b] += 1
    return start, order, cubes


@njit(cache=True, nogil=True)
@no_type_check
def thin(points, distance):
    """Numbers of points, taken as they come, of which no two lie nearer to each other than the distance."""
    size = 64
    while size < len(points):
        size *= 2
    mask = size - 1
    head = np.full(size, -1, np.int64)
    following = np.full(len(points), -1, np.int64)
    kept = np.empty(len(points), np.int64)
    found = 0
    limit = distance * distance
    for i in range(len(points)):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        cx, cy, cz = int(np.floor(x / distance)), int(np.floor(y / distance)), int(np.floor(z / distance))
        free = True
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    j = head[bucket(cx + dx, cy + dy, cz + dz, mask)]
                    while j >= 0 and free:
                        u, v, w = points[j, 0] - x, points[j, 1] - y, points[j, 2] - z
                        if u * u + v * v + w * w < limit:
                            free = False
                        j = following[j]
                    if not free:
                        break
                if not free:
                    break
            if not free:
                break
        if free:
            b = bucket(cx, cy, cz, mask)
            following[i] = head[b]
            head[b] = i
            kept[found] = i
            found += 1
    return kept[:found]


@njit(cache=True, nogil=True)
@no_type_check
def nearest_within(queries, points, radius):
    """Number of the nearest point within the radius of each query, or −1."""
    start, order, _ = sort_points(points, radius)
    mask = len(start) - 2
    nearest = np.full(len(queries), -1, np.int64)
    for q in range(len(queries)):
        x, y, z = queries[q, 0], queries[q, 1], queries[q, 2]
        cx, cy, cz = int(np.floor(x / radius)), int(np.floor(y / radius)), int(np.floor(z / radius))
        best = radius * radius
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    b = bucket(cx + dx, cy + dy, cz + dz, mask)
                    for k in range(start[b], start[b + 1]):
                        j = order[k]
                        u, v, w = points[j, 0] - x, points[j, 1] - y, points[j, 2] - z
                        far = u * u + v * v + w * w
                        if far < best:
                            best = far
                            nearest[q] = j
    return nearest
