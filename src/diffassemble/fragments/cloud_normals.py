"""Normals of clouds of points that have none: of the plane through each point's surroundings, on the outer side.

First neighbours make their normals agree, along a tree. Where that went over an edge or through a thin wall, the way
out says which side is the outer one: cubes that hold points are walls, what is reached from far away is outside, and
from the outer side it is nearer. At last each plane is laid again through those neighbours alone that face the same
way, so that edges stay sharp. On 30,000 points a fragment (20 fragments of training objects) 1.5 % of the normals then
point inwards instead of 5.5 %, and those more than 30 degrees off are half as many as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int64
from scipy import ndimage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.spatial import cKDTree

from diffassemble.fragments.spatial import kernel


@dataclass(frozen=True)
class NormalsConfig:
    """How normals are estimated."""

    neighbours: int = 16
    """points that a plane is laid through"""
    links: int = 8
    """neighbours along which sides spread"""
    cube: float = 1.8
    """width of the cubes that are walls, in distances between points"""
    most_cubes: int = 200
    """along the longest side"""
    steps: int = 24
    """half cubes that the way out is followed"""
    shorter: int = 3
    """steps by which the way out must be shorter on one side, to count"""
    rounds: int = 20
    """times that neighbours' votes are added"""
    against: float = -0.3
    """votes below this turn a normal round"""
    like: int = 6
    """power of the cosine with which neighbours that face another way lose their weight"""
    wide: float = 0.7
    """distance at which weights fall to 1/e, as a share of the farthest neighbour's"""
    again: int = 2
    """times that planes are laid again through neighbours that face the same way"""
    at_once: int = 20_000
    """points that are computed together, for memory"""


NORMALS = NormalsConfig()


def outward_normals(points: Float32[np.ndarray, "p 3"], config: NormalsConfig = NORMALS) -> Float32[np.ndarray, "p 3"]:
    """Unit normals that agree with those of their neighbours and point away from the inside."""
    if len(points) < 4:
        return np.tile(np.array([[0, 0, 1]], np.float32), (len(points), 1))
    far, near = cKDTree(points).query(points, min(config.neighbours, len(points)))
    parts = np.split(np.arange(len(points)), range(config.at_once, len(points), config.at_once))
    plain = np.concatenate([_planes(points, near[rows], np.ones((len(rows), near.shape[1]))) for rows in parts])
    normals = _agreeing(points, near[:, : config.links + 1], plain)
    gap = float(np.median(far[:, min(4, far.shape[1] - 1)]))
    votes = _spread(points, normals, near, _ways_out(points, normals, gap, config), parts, config.rounds)
    normals = np.where(votes[:, None] < config.against, -normals, normals)
    for _ in range(config.again):
        sharp = []
        for rows in parts:
            alike = np.clip((normals[near[rows]] * normals[rows, None]).sum(-1), 0, 1)
            weight = alike**config.like * np.exp(-((far[rows] / (config.wide * far[rows, -1:] + 1e-30)) ** 2))
            plane = _planes(points, near[rows], weight)
            sharp.append(np.where((plane * normals[rows]).sum(1, keepdims=True) < 0, -plane, plane))
        normals = np.concatenate(sharp)
    return normals.astype(np.float32)


def _planes(
    points: Float32[np.ndarray, "p 3"], near: Int64[np.ndarray, "q k"], weight: Float[np.ndarray, "q k"]
) -> Float[np.ndarray, "q 3"]:
    """Normals, of either side, of the planes through some weighted points each."""
    places = points[near].astype(np.float64)
    middle = (weight[..., None] * places).sum(1) / np.maximum(weight.sum(1), 1e-30)[:, None]
    centred = places - middle[:, None]
    return np.linalg.eigh((weight[..., None] * centred).transpose(0, 2, 1) @ centred)[1][:, :, 0]


def _agreeing(
    points: Float32[np.ndarray, "p 3"], near: Int64[np.ndarray, "p k"], plain: Float[np.ndarray, "p 3"]
) -> Float[np.ndarray, "p 3"]:
    """Normals on one side, which spreads along a tree that prefers neighbours in one plane; each tree encloses a
    positive volume."""
    normals = plain.copy()
    first = np.repeat(np.arange(len(points)), near.shape[1] - 1)
    second = near[:, 1:].reshape(-1)
    across = points[second] - points[first]
    across /= np.linalg.norm(across, axis=1, keepdims=True) + 1e-12
    off_plane = np.abs((across * normals[first]).sum(1)) + np.abs((across * normals[second]).sum(1))
    unlike = 1 - np.abs((normals[first] * normals[second]).sum(1)) + off_plane + 1e-4
    links = coo_matrix((unlike, (first, second)), (len(points), len(points)))
    tree = minimum_spanning_tree(links.maximum(links.T))
    outward = points - points.mean(0)
    left = np.ones(len(points), bool)
    for seed in np.argsort(-(outward**2).sum(1), kind="stable"):
        if not left[seed]:
            continue
        order, before = breadth_first_order(tree, seed, directed=False)
        _spread_side(normals, order, before)
        if (normals[order] * outward[order]).sum() < 0:
            normals[order] *= -1
        left[order] = False
    return normals


@kernel
def _spread_side(normals, order, before):
    """Turn normals such that each agrees with the one before it."""
    for k in range(1, len(order)):
        point, last = order[k], before[order[k]]
        like = normals[point, 0] * normals[last, 0] + normals[point, 1] * normals[last, 1]
        if like + normals[point, 2] * normals[last, 2] < 0:
            for axis in range(3):
                normals[point, axis] = -normals[point, axis]


def _ways_out(
    points: Float32[np.ndarray, "p 3"], normals: Float[np.ndarray, "p 3"], gap: float, config: NormalsConfig
) -> Float[np.ndarray, "p"]:
    """1 where the way out is shorter along the normal, −1 where it is shorter the other way, else 0."""
    low, margin = points.min(0), 4
    side = max(config.cube * gap, float(np.ptp(points, axis=0).max()) / config.most_cubes, 1e-30)
    cubes = np.floor((points - low) / side).astype(np.int64) + margin
    walls = np.zeros(cubes.max(0) + margin + 1, bool)
    walls[tuple(cubes.T)] = True
    # Holes between points are closed for the flood, which then comes back to the walls.
    parts = ndimage.label(~ndimage.binary_dilation(walls))[0]
    outside = ndimage.binary_dilation(parts == parts[0, 0, 0]) & ~walls
    steps = []
    for way in (normals, -normals):
        first = np.full(len(points), config.steps)
        for step in range(config.steps, 0, -1):
            at = np.floor((points + way * (0.5 * step * side) - low) / side).astype(np.int64) + margin
            beyond = ((at < 0) | (at >= walls.shape)).any(1)
            at = np.clip(at, 0, np.array(walls.shape) - 1)
            first[beyond | outside[tuple(at.T)]] = step
        steps.append(first)
    shorter = steps[1] - steps[0]
    return np.where(np.abs(shorter) >= config.shorter, np.sign(shorter), 0).astype(np.float64)


def _spread(
    points: Float32[np.ndarray, "p 3"],
    normals: Float[np.ndarray, "p 3"],
    near: Int64[np.ndarray, "p k"],
    votes: Float[np.ndarray, "p"],
    parts: Sequence[Int64[np.ndarray, "_"]],
    rounds: int,
) -> Float[np.ndarray, "p"]:
    """Votes added over neighbours in one plane, whichever of its sides their normals are on."""
    weight = np.empty(near.shape)
    for rows in parts:
        like, way = (normals[near[rows]] * normals[rows, None]).sum(-1), points[near[rows]] - points[rows, None]
        # What stands beside the plane may be the other side of a wall.
        off = np.abs((way * normals[rows, None]).sum(-1)) / np.maximum(np.linalg.norm(way, axis=-1), 1e-30)
        weight[rows] = np.sign(like) * like**4 * np.maximum(0, 1 - 2 * off)
    total = np.maximum(np.abs(weight).sum(1), 1e-30)
    added = votes
    for _ in range(rounds):
        added = 0.5 * votes + (weight * added[near]).sum(1) / total
    return added
