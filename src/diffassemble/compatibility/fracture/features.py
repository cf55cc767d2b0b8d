"""What the surface around a point looks like, seen from its normal: numbers that do not change when it is moved.

`NAMES` lists them; partners see the negative of each other's relief, so for the mate `SIGNS` flips what is height-like.
Type checkers are kept away from what numba compiles.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float32
from numba import njit

from diffassemble.compatibility.fracture.buckets import bucket, sort_points
from diffassemble.compatibility.fracture.sampling import Sample

NAMES = (
    "area",
    "likeness",
    "likeness_deviation",
    "opposed",
    "height",
    "height_deviation",
    "height_skew",
    "bulge",
    "position_small",
    "position_middle",
    "position_large",
    "normal_small",
    "normal_middle",
    "normal_large",
    "offset",
)
SIGNS = np.array([-1.0 if name in ("height", "height_skew", "bulge") else 1.0 for name in NAMES], np.float32)


def neighbourhood(
    points: Float32[np.ndarray, "q 3"], normals: Float32[np.ndarray, "q 3"], support: Sample, radius: float
) -> Float32[np.ndarray, "q f"]:
    """The numbers of `NAMES` for each point, from those points of the support that lie within the radius of it."""
    return _measure(points, normals, support.points, support.normals, np.float32(support.area), np.float32(radius))


@njit(cache=True, nogil=True, fastmath=True)
@no_type_check
def eigenvalues(xx, xy, xz, yy, yz, zz):
    """Eigenvalues of a symmetric 3×3 matrix, smallest first, in closed form."""
    mean = (xx + yy + zz) / 3
    off = xy * xy + xz * xz + yz * yz
    a, b, c = xx - mean, yy - mean, zz - mean
    spread = np.sqrt(max((a * a + b * b + c * c + 2 * off) / 6, 1e-20))
    determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    angle = np.arccos(min(1.0, max(-1.0, determinant / (2 * spread**3)))) / 3
    large = mean + 2 * spread * np.cos(angle)
    small = mean + 2 * spread * np.cos(angle + 2 * np.pi / 3)
    return max(small, 0.0), max(3 * mean - large - small, 0.0), max(large, 0.0)


@njit(cache=True, nogil=True, fastmath=True)
@no_type_check
def _measure(points, normals, others, other_normals, area, radius):
    start, order, cubes = sort_points(others, radius)
    mask = len(start) - 2
    packed, facing = others[order], other_normals[order]
    result = np.zeros((len(points), 15), np.float32)
    moments = np.zeros(24)
    for q in range(len(points)):
        x, y, z = points[q, 0], points[q, 1], points[q, 2]
        nx, ny, nz = normals[q, 0], normals[q, 1], normals[q, 2]
        cx, cy, cz = int(np.floor(x / radius)), int(np.floor(y / radius)), int(np.floor(z / radius))
        moments[:] = 0
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    b = bucket(cx + dx, cy + dy, cz + dz, mask)
                    for k in range(start[b], start[b + 1]):
                        u, v, w = packed[k, 0] - x, packed[k, 1] - y, packed[k, 2] - z
                        if u * u + v * v + w * w > radius * radius:
                            continue
                        cube = cubes[order[k]]
                        if cube[0] == cx + dx and cube[1] == cy + dy and cube[2] == cz + dz:
                            _add(moments, u, v, w, facing[k], nx, ny, nz)
        _summarise(moments, area, radius, result[q])
    return result


@njit(cache=True, nogil=True, fastmath=True)
@no_type_check
def _add(moments, u, v, w, facing, nx, ny, nz):
    """Add one neighbour to the sums."""
    a, b, c = facing[0], facing[1], facing[2]
    like = a * nx + b * ny + c * nz
    height = u * nx + v * ny + w * nz
    moments[0] += 1
    moments[1] += like
    moments[2] += like * like
    moments[3] += 1.0 if like < -0.5 else 0.0
    moments[4] += height
    moments[5] += height * height
    moments[6] += height * height * height
    moments[7] += u * a + v * b + w * c
    moments[8] += u
    moments[9] += v
    moments[10] += w
    moments[11] += u * u
    moments[12] += u * v
    moments[13] += u * w
    moments[14] += v * v
    moments[15] += v * w
    moments[16] += w * w
    moments[17] += a * a
    moments[18] += a * b
    moments[19] += a * c
    moments[20] += b * b
    moments[21] += b * c
    moments[22] += c * c


@njit(cache=True, nogil=True, fastmath=True)
@no_type_check
def _summarise(moments, area, radius, result):
    """Sums become the numbers of NAMES, lengths in radii."""
    count = moments[0]
    result[0] = count * area / (np.pi * radius * radius)
    if count < 1:
        return
    m = moments / count
    result[1] = m[1]
    result[2] = np.sqrt(max(m[2] - m[1] * m[1], 0.0))
    result[3] = m[3]
    height = m[4] / radius
    variance = max(m[5] / radius**2 - height * height, 0.0)
    result[4] = height
    result[5] = np.sqrt(variance)
    result[6] = np.cbrt(m[6] / radius**3 - 3 * height * m[5] / radius**2 + 2 * height**3)
    result[7] = m[7] / radius
    scale = 1 / radius**2
    low, middle, high = eigenvalues(
        (m[11] - m[8] * m[8]) * scale,
        (m[12] - m[8] * m[9]) * scale,
        (m[13] - m[8] * m[10]) * scale,
        (m[14] - m[9] * m[9]) * scale,
        (m[15] - m[9] * m[10]) * scale,
        (m[16] - m[10] * m[10]) * scale,
    )
    result[8], result[9], result[10] = np.sqrt(low), np.sqrt(middle), np.sqrt(high)
    low, middle, high = eigenvalues(m[17], m[18], m[19], m[20], m[21], m[22])
    result[11], result[12], result[13] = np.sqrt(low), np.sqrt(middle), np.sqrt(high)
    result[14] = np.sqrt(m[8] * m[8] + m[9] * m[9] + m[10] * m[10]) / radius
