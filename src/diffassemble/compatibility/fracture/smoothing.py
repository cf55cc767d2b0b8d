"""Values on a surface, averaged over neighbours that face the same way: a loop that numba compiles."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float32
from numba import njit

from diffassemble.compatibility.fracture.buckets import bucket, sort_points


def smoothed(
    points: Float32[np.ndarray, "p 3"],
    normals: Float32[np.ndarray, "p 3"],
    values: Float32[np.ndarray, "p c"],
    radius: float,
) -> Float32[np.ndarray, "p c"]:
    """Means over the neighbours within the radius, weighted by how much their normals agree."""
    return _average(points, normals, np.ascontiguousarray(values), np.float32(radius))


def smoothed_normals(
    points: Float32[np.ndarray, "p 3"], normals: Float32[np.ndarray, "p 3"], radius: float
) -> Float32[np.ndarray, "p 3"]:
    """Unit normals without the roughness below the radius."""
    mean = smoothed(points, normals, normals, radius)
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), np.float32(1e-6))


@njit(cache=True, nogil=True)
@no_type_check
def _average(points, normals, values, radius):
    start, order, cubes = sort_points(points, radius)
    mask = len(start) - 2
    result = np.zeros_like(values)
    for q in range(len(points)):
        x, y, z = points[q, 0], points[q, 1], points[q, 2]
        cx, cy, cz = cubes[q, 0], cubes[q, 1], cubes[q, 2]
        total = 0.0
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    b = bucket(cx + dx, cy + dy, cz + dz, mask)
                    for k in range(start[b], start[b + 1]):
                        j = order[k]
                        u, v, w = points[j, 0] - x, points[j, 1] - y, points[j, 2] - z
                        if u * u + v * v + w * w > radius * radius:
                            continue
                        if cubes[j, 0] != cx + dx or cubes[j, 1] != cy + dy or cubes[j, 2] != cz + dz:
                            continue
                        like = normals[q, 0] * normals[j, 0] + normals[q, 1] * normals[j, 1]
                        like += normals[q, 2] * normals[j, 2]
                        if like > 0:
                            total += like
                            for c in range(values.shape[1]):
                                result[q, c] += like * values[j, c]
        for c in range(values.shape[1]):
            result[q, c] /= max(total, 1e-6)
    return result
