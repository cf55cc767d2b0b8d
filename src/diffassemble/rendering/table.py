"""Fragments laid out on a table in rows, the large ones first, each lying flat."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.puzzle import FragmentPieces

# The table is seen from above at an angle, so that depth counts for less than width.
_WIDTH_TO_DEPTH = 0.95
_GAP = 0.12


def laid_out(pieces: FragmentPieces, height: float = 0.0) -> Poses:
    """Poses of fragments that lie on a table at `height`, about the origin, none over another.

    x runs along the rows, the first row is the farthest (lowest z). A fragment is turned as little as makes it lie on
    its flat side.
    """
    turns = lying_flat(pieces.points)
    turned = [points.astype(np.float64) @ turn.T for points, turn in zip(_corners(pieces), turns, strict=True)]
    low = np.stack([points.min(0) for points in turned])
    high = np.stack([points.max(0) for points in turned])
    sizes = (high - low)[:, [0, 2]] + _GAP * float(np.sqrt(np.prod((high - low)[:, [0, 2]], 1)).mean() + 1e-3)
    middles = _shelves(sizes)
    shift = np.stack([middles[:, 0], np.full(len(sizes), height), middles[:, 1]], -1)
    base = np.stack([(low + high)[:, 0] / 2, low[:, 1], (low + high)[:, 2] / 2], -1)
    return Poses(torch.from_numpy(turns), torch.from_numpy((shift - base).astype(np.float32)))


def lying_flat(points: Float[Tensor, "n p 3"]) -> Float32[np.ndarray, "n 3 3"]:
    """The least turns that make the direction in which each fragment is thinnest upright."""
    clouds = points.detach().cpu().double().numpy()
    centred = clouds - clouds.mean(1, keepdims=True)
    thin = np.linalg.eigh(np.einsum("npi,npj->nij", centred, centred))[1][..., 0]
    thin = np.where(thin[:, 1:2] < 0, -thin, thin)
    # The turn that takes `thin` to `up` is I + [v]ₓ + [v]ₓ² / (1 + thin · up) with v = thin × up.
    v = np.cross(thin, [0.0, 1.0, 0.0])
    zero = np.zeros(len(v))
    cross = np.stack([zero, -v[:, 2], v[:, 1], v[:, 2], zero, -v[:, 0], -v[:, 1], v[:, 0], zero], -1).reshape(-1, 3, 3)
    return (np.eye(3) + cross + cross @ cross / (1 + thin[:, 1])[:, None, None]).astype(np.float32)


def _corners(pieces: FragmentPieces) -> list[Float32[np.ndarray, "v 3"]]:
    """All that has to have room: the vertices of each fragment, as far as they are numbers, or else its points."""
    found = []
    for mesh, points in zip(pieces.meshes, pieces.points, strict=True):
        vertices = mesh.vertices.detach().cpu().float().numpy()
        vertices = vertices[np.isfinite(vertices).all(-1)]
        found.append(vertices if len(vertices) else points.detach().cpu().float().numpy())
    return found


def _shelves(sizes: np.ndarray) -> np.ndarray:
    """Middles of rectangles (n, 2) that stand in centred rows, at the row length that fills a table best."""
    total = float(np.prod(sizes, 1).sum())
    longest = float(sizes[:, 0].max())
    lengths = np.maximum(longest, np.sqrt(total * _WIDTH_TO_DEPTH) * np.linspace(0.8, 2.0, 25))
    layouts = [_rows(sizes, float(length)) for length in lengths]
    return min(layouts, key=lambda layout: max(layout[1], _WIDTH_TO_DEPTH * layout[2]))[0]


def _rows(sizes: np.ndarray, length: float) -> tuple[np.ndarray, float, float]:
    """Middles of rectangles in rows no longer than `length`, and the width and depth of it all."""
    rows: list[list[int]] = [[]]
    for index in np.argsort(-sizes[:, 1], kind="stable").tolist():
        if rows[-1] and sizes[rows[-1], 0].sum() + sizes[index, 0] > length + 1e-9:
            rows.append([])
        rows[-1].append(index)
    middles, depth, widest = np.zeros_like(sizes), 0.0, 0.0
    for row in rows:
        ends, deepest = sizes[row, 0].cumsum(), float(sizes[row, 1].max())
        middles[row, 0] = ends - sizes[row, 0] / 2 - ends[-1] / 2
        middles[row, 1] = depth + deepest / 2
        depth, widest = depth + deepest, max(widest, float(ends[-1]))
    middles[:, 1] -= depth / 2
    return middles, widest, depth
