"""Normals of a cloud of points: planes through neighbours, and one consistent side of them as outside."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32

_NEIGHBOURS = 16
_LINKS = 8


def outward_normals(points: Float32[np.ndarray, "p 3"]) -> Float32[np.ndarray, "p 3"]:
    """Unit normals that agree with those of their neighbours and point away from the inside.

    The side spreads along a spanning tree that prefers neighbours in one plane, so that it does not jump through thin
    walls; then each part is turned such that it encloses a positive volume.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
    from scipy.spatial import cKDTree

    if len(points) < 4:
        return np.tile(np.array([[0, 0, 1]], np.float32), (len(points), 1))
    _, near = cKDTree(points).query(points, min(_NEIGHBOURS, len(points)))
    centred = points[near] - points[near].mean(1, keepdims=True)
    _, axes = np.linalg.eigh(np.einsum("pki,pkj->pij", centred, centred).astype(np.float64))
    normals = axes[:, :, 0]
    first = np.repeat(np.arange(len(points)), min(_LINKS, near.shape[1] - 1))
    second = near[:, 1 : _LINKS + 1].reshape(-1)
    across = points[second] - points[first]
    across /= np.linalg.norm(across, axis=1, keepdims=True) + 1e-12
    off_plane = np.abs((across * normals[first]).sum(1)) + np.abs((across * normals[second]).sum(1))
    unlike = 1 - np.abs((normals[first] * normals[second]).sum(1)) + off_plane + 1e-4
    links = coo_matrix((unlike, (first, second)), (len(points), len(points)))
    tree = minimum_spanning_tree(links.maximum(links.T))
    return _spread(points, normals, tree, breadth_first_order).astype(np.float32)


def _spread(points: np.ndarray, normals: np.ndarray, tree: object, breadth_first_order: object) -> np.ndarray:
    """Turn normals around so that they agree along the tree, part by part."""
    normals = normals.copy()
    outward = points - points.mean(0)
    left = np.ones(len(points), bool)
    for seed in np.argsort(-(outward**2).sum(1), kind="stable"):
        if not left[seed]:
            continue
        order, before = breadth_first_order(tree, seed, directed=False)  # type: ignore[operator]
        for point in order[1:]:
            if normals[point] @ normals[before[point]] < 0:
                normals[point] *= -1
        if (normals[order] * outward[order]).sum() < 0:
            normals[order] *= -1
        left[order] = False
    return normals
