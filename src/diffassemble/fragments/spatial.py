"""Neighbours in space, found at once: points sorted into cubes, and voxels that know the nearest point."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64
from numba import njit
from scipy.ndimage import binary_dilation, label
from scipy.spatial import cKDTree

OUTSIDE, INSIDE = -1, -2
_BLOCK = 8
_BAND = 3
# More blocks in a row than this are never made: voxels grow instead.
_MOST_BLOCKS = 160


def kernel(function: Callable[..., Any]) -> Any:
    """Have numba compile a loop, once a machine; what a type checker has wrapped around it is taken off.

    Arrays are handed to kernels contiguous and numbers always in one precision: every other kind is compiled again.
    """
    return njit(cache=True, nogil=True)(unwrap(function))


def inner(function: Callable[..., Any]) -> Any:
    """Have numba compile what only kernels call, which keep its code with theirs."""
    return njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(unwrap(function))


@inner
def bucket(x, y, z, mask):
    """Number of the bucket that the points of a cube lie in; cubes may share one."""
    return ((x * 73856093) ^ (y * 19349663) ^ (z * 83492791)) & mask


@inner
def sort_points(points, side):
    """Cubes of the given side: where each bucket starts, point numbers in order of bucket, and each point's cube."""
    count, size = len(points), 64
    while size < 2 * count:
        size *= 2
    mask = size - 1
    cubes, start = np.empty((count, 3), np.int64), np.zeros(size + 1, np.int64)
    for i in range(count):
        for k in range(3):
            cubes[i, k] = int(np.floor(points[i, k] / side))
        start[bucket(cubes[i, 0], cubes[i, 1], cubes[i, 2], mask) + 1] += 1
    for b in range(size):
        start[b + 1] += start[b]
    fill, order = start[:-1].copy(), np.empty(count, np.int64)
    for i in range(count):
        b = bucket(cubes[i, 0], cubes[i, 1], cubes[i, 2], mask)
        order[fill[b]] = i
        fill[b] += 1
    return start, order, cubes


@kernel
def thin(points, distance):
    """Numbers of points, taken as they come, of which no two lie nearer to each other than the distance."""
    size, found, limit = 64, 0, distance * distance
    while size < len(points):
        size *= 2
    mask = size - 1
    head, following = np.full(size, -1, np.int64), np.full(len(points), -1, np.int64)
    kept = np.empty(len(points), np.int64)
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
        if free:
            b = bucket(cx, cy, cz, mask)
            following[i] = head[b]
            head[b] = i
            kept[found] = i
            found += 1
    return kept[:found]


def nearest_within(
    queries: Float32[np.ndarray, "q 3"], points: Float32[np.ndarray, "p 3"], radius: float | np.float32
) -> Int64[np.ndarray, "q"]:
    """Number of the nearest point within the radius of each query, or −1."""
    if not len(queries) or not len(points):
        return np.full(len(queries), -1, np.int64)
    far, nearest = cKDTree(points).query(queries, distance_upper_bound=float(radius))
    return np.where(np.isfinite(far), nearest, -1)


def nearest_across(
    queries: Float32[np.ndarray, "q 3"], points: Float32[np.ndarray, "p 3"], radius: float
) -> Int64[np.ndarray, "q"]:
    """As `nearest_within`, fast where two surfaces meet at their edges: only points in the boxes of both are used."""
    nearest = np.full(len(queries), -1, np.int64)
    if len(queries) and len(points):
        asked, others = _within_box(queries, points, radius), _within_box(points, queries, radius)
        found = nearest_within(queries[asked], points[others], radius)
        nearest[asked] = np.where(found >= 0, others[found], -1) if len(others) else -1
    return nearest


def _within_box(points: np.ndarray, others: np.ndarray, margin: float) -> Int64[np.ndarray, "_"]:
    """Numbers of the points within the box of others, or no farther than the margin from it."""
    margin *= 1.001
    return np.flatnonzero(((points >= others.min(0) - margin) & (points <= others.max(0) + margin)).all(1))


class Voxels(NamedTuple):
    """Voxels around a surface, in blocks of 8³: none where there is nothing.

    A voxel near the surface holds the number of the point nearest to its middle; beyond, it is OUTSIDE, or INSIDE where
    a flood from outside does not come. A directory entry is a block's number, or OUTSIDE or INSIDE for all of it.
    """

    low: Float64[np.ndarray, "3"]
    side: float
    directory: Int32[np.ndarray, "x y z"]
    blocks: Int32[np.ndarray, "b v"]


def voxelise(points: Float32[np.ndarray, "p 3"], spacing: float, closed: bool = True) -> Voxels:
    """Voxels of the given side that know the points nearest to them, up to three voxels away."""
    low = points.min(0).astype(np.float64) - (_BAND + 1) * spacing
    extent = points.max(0).astype(np.float64) + (_BAND + 1) * spacing - low
    side = max(float(spacing), float(extent.max()) / (_MOST_BLOCKS * _BLOCK))
    size = np.ceil(extent / (side * _BLOCK)).astype(np.int64) + 1
    directory = np.full(tuple(size), OUTSIDE, np.int32)
    # Blocks within the band around a point; the band spans two blocks along an axis at most.
    ends = [((points - low + sign * _BAND * side) / side).astype(np.int64) // _BLOCK for sign in (-1, 1)]
    for corner in product(ends, repeat=3):
        directory[tuple(end[:, axis] for axis, end in enumerate(corner))] = 0
    directory[directory == 0] = np.arange(count := int((directory == 0).sum()))
    blocks = np.full((count, _BLOCK**3), OUTSIDE, np.int32)
    _write_nearest(points, low, side, directory, blocks)
    if closed:
        _mark_inside(points, low, extent, spacing, side, directory, blocks)
    return Voxels(low, side, directory, blocks)


def _mark_inside(points, low, extent, spacing, side, directory, blocks) -> None:  # type: ignore[no-untyped-def]
    """Flood a coarse grid from outside; empty voxels and blocks whose middle stays dry are inside."""
    coarse = max(1.3 * spacing, float(extent.max()) / 150)
    wall = np.zeros(tuple(np.ceil(extent / coarse).astype(np.int64) + 3), bool)
    cells = np.floor((points - low) / coarse).astype(np.int64) + 1
    wall[cells[:, 0], cells[:, 1], cells[:, 2]] = True
    wall = binary_dilation(wall, np.ones((3, 3, 3), bool))  # no gaps between points, so that nothing leaks in
    regions, _ = label(~wall)
    dry = ~wall & (regions != regions[0, 0, 0])
    if not dry.any():
        return

    def is_dry(places: np.ndarray) -> np.ndarray:
        index = (places * (side / coarse)).astype(np.int64) + 1
        kept = np.minimum(index, np.array(dry.shape) - 1)
        return (index == kept).all(-1) & dry[kept[..., 0], kept[..., 1], kept[..., 2]]

    empty, middles = np.argwhere(directory < 0), np.indices((_BLOCK,) * 3).reshape(3, -1).T + 0.5
    directory[tuple(empty[is_dry(_BLOCK * empty + _BLOCK / 2)].T)] = INSIDE
    opened = np.argwhere(directory >= 0)
    for part in np.array_split(opened, len(opened) // 1000 + 1):
        own = directory[tuple(part.T)]
        inside = (blocks[own] < 0) & is_dry(_BLOCK * part[:, None] + middles)
        blocks[own] = np.where(inside, INSIDE, blocks[own])


@kernel
def _write_nearest(points, low, side, directory, blocks):
    """Write each point's number into the voxels around it, unless a nearer one is there."""
    best = np.full(blocks.shape, np.float32(np.inf), np.float32)
    for i in range(len(points)):
        a, b, c = (points[i, 0] - low[0]) / side, (points[i, 1] - low[1]) / side, (points[i, 2] - low[2]) / side
        for x in range(int(a) - 2, int(a) + 3):
            for y in range(int(b) - 2, int(b) + 3):
                for z in range(int(c) - 2, int(c) + 3):
                    u, v, w = x + 0.5 - a, y + 0.5 - b, z + 0.5 - c
                    far = u * u + v * v + w * w
                    block = directory[x // 8, y // 8, z // 8]
                    cell = ((x % 8) * 8 + y % 8) * 8 + z % 8
                    if far < best[block, cell]:
                        best[block, cell] = far
                        blocks[block, cell] = i


@inner
def look_up(x, y, z, low, side, directory, blocks):
    """Number of the point nearest to a place (to about a voxel), or OUTSIDE or INSIDE."""
    a, b, c = (x - low[0]) / side, (y - low[1]) / side, (z - low[2]) / side
    if a < 0 or b < 0 or c < 0:
        return OUTSIDE
    i, j, k = int(a), int(b), int(c)
    if i >> 3 >= directory.shape[0] or j >> 3 >= directory.shape[1] or k >> 3 >= directory.shape[2]:
        return OUTSIDE
    block = directory[i >> 3, j >> 3, k >> 3]
    if block < 0:
        return block
    return blocks[block, ((i & 7) * 8 + (j & 7)) * 8 + (k & 7)]
