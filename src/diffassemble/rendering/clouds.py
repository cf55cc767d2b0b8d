"""Clouds of points as small discs that lie on the surface which the points suggest."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float32, Int64
from scipy.spatial import cKDTree

_NEIGHBOURS = 12
_SIDES = 6
# A few points suggest no surface: they are drawn as beads.
_SURFACE = 16

_BEAD = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], np.float64)
_BEAD_FACES = np.array([[a, b, c] for a in (0, 1) for b in (2, 3) for c in (4, 5)])


def as_discs(
    points: Float32[np.ndarray, "p 3"], limit: int
) -> tuple[Float32[np.ndarray, "v 3"], Int64[np.ndarray, "f 3"]]:
    """Vertices and triangles of discs at (about `limit` of) the points, just large enough to touch each other."""
    chosen = points[:: max(1, math.ceil(len(points) / max(limit, 1)))].astype(np.float64)
    if not len(chosen):
        return points, np.zeros((0, 3), np.int64)
    if len(chosen) < _SURFACE:
        size = 0.06 * max(float(np.ptp(chosen, axis=0).max()), 0.1)
        return _copies(chosen, np.broadcast_to(_BEAD * size, (len(chosen), 6, 3)), _BEAD_FACES)
    distance, neighbours = cKDTree(chosen).query(chosen, _NEIGHBOURS + 1)
    gathered = chosen[neighbours] - chosen[neighbours].mean(1, keepdims=True)
    # Rows of `axes` are directions; points spread most along the last, least along the first.
    axes = np.linalg.eigh(np.einsum("pki,pkj->pij", gathered, gathered))[1].transpose(0, 2, 1)
    radius = 0.8 * float(np.median(distance[:, _NEIGHBOURS // 3]))
    angle = 2 * np.pi * np.arange(_SIDES) / _SIDES
    rim = np.cos(angle)[:, None] * axes[:, None, 1] + np.sin(angle)[:, None] * axes[:, None, 2]
    fan = np.stack([np.zeros(_SIDES - 2, int), np.arange(1, _SIDES - 1), np.arange(2, _SIDES)], -1)
    return _copies(chosen, radius * rim, fan)


def _copies(
    places: np.ndarray, shapes: np.ndarray, faces: np.ndarray
) -> tuple[Float32[np.ndarray, "v 3"], Int64[np.ndarray, "f 3"]]:
    """One shape at each place, all with the same triangles."""
    vertices = (places[:, None] + shapes).reshape(-1, 3).astype(np.float32)
    shift = shapes.shape[1] * np.arange(len(places))
    return vertices, (faces + shift[:, None, None]).reshape(-1, 3)
