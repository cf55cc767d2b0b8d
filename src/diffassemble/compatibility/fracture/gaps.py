"""Where an assembly still lacks something: its surface beside and within the seams that no other member covers.

Type checkers are kept away from what numba compiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numba import njit

from diffassemble.compatibility.fracture.buckets import bucket, sort_points
from diffassemble.compatibility.fracture.clusters import Cluster

# In spacings of the sample: how near a covering surface must be, and how far from its plane.
_COVER, _PLANE = 1.3, 0.3
_FACING = -0.5
# Mean height of the surroundings, in radii, above which a place counts as a pit.
_PIT = 0.03


@dataclass(frozen=True)
class Gaps:
    """Points beside the breaks of a cluster in its frame, which member each belongs to, and which nobody covers."""

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    owner: Int64[np.ndarray, "p"]
    bare: Bool[np.ndarray, "p"]
    spacing: float

    def inviting(self, radius: float) -> Bool[np.ndarray, "p"]:
        """Bare points where something of the radius may be missing: in a pit, or before the wall of another member."""
        points, normals, owner = self.points[self.bare], self.normals[self.bare], self.owner[self.bare]
        pit, faced = _surroundings(points, normals, owner, np.float32(max(radius, 2 * self.spacing)))
        chosen = self.bare.copy()
        chosen[self.bare] = (pit > _PIT) | faced
        return chosen


def find_gaps(cluster: Cluster, spacing: float) -> Gaps:
    """Sample the surroundings of all breaks at a spacing, and see what is covered tightly."""
    points, normals, owner = [], [], []
    for piece in cluster.members:
        near = cluster.fragments[piece].near_break(spacing)
        rotation = cluster.poses[piece][:9].reshape(3, 3).T.astype(np.float32)
        points.append(near.points @ rotation + cluster.poses[piece][9:].astype(np.float32))
        normals.append(near.normals @ rotation)
        owner.append(np.full(len(near), piece, np.int64))
    every, facing, whose = np.concatenate(points), np.concatenate(normals), np.concatenate(owner)
    apart = _distance_to_cover(every, facing, whose, np.float32(_COVER * spacing))
    return Gaps(every, facing, whose, apart > _PLANE * spacing, spacing)


@njit(cache=True, nogil=True)
@no_type_check
def _distance_to_cover(points, normals, owner, reach):
    """Distance of each point from the plane of the nearest point of another member that faces it; else infinite."""
    start, order, cubes = sort_points(points, reach)
    mask = len(start) - 2
    result = np.full(len(points), np.inf, np.float32)
    for q in range(len(points)):
        best = reach * reach
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    b = bucket(cubes[q, 0] + dx, cubes[q, 1] + dy, cubes[q, 2] + dz, mask)
                    for k in range(start[b], start[b + 1]):
                        j = order[k]
                        if owner[j] == owner[q]:
                            continue
                        u, v, w = points[j, 0] - points[q, 0], points[j, 1] - points[q, 1], points[j, 2] - points[q, 2]
                        far = u * u + v * v + w * w
                        if far >= best:
                            continue
                        a, b2, c = normals[j, 0], normals[j, 1], normals[j, 2]
                        if a * normals[q, 0] + b2 * normals[q, 1] + c * normals[q, 2] < _FACING:
                            best = far
                            result[q] = abs(u * a + v * b2 + w * c)
    return result


@njit(cache=True, nogil=True)
@no_type_check
def _surroundings(points, normals, owner, radius):
    """Mean height of each point's surroundings above its plane, in radii, and whether another member stands before it.

    What faces the other way is left out of the mean: on thin walls it belongs to the back.
    """
    start, order, cubes = sort_points(points, radius)
    mask = len(start) - 2
    pit, faced = np.zeros(len(points), np.float32), np.zeros(len(points), np.bool_)
    for q in range(len(points)):
        total, count = 0.0, 0
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    x, y, z = cubes[q, 0] + dx, cubes[q, 1] + dy, cubes[q, 2] + dz
                    b = bucket(x, y, z, mask)
                    for k in range(start[b], start[b + 1]):
                        j = order[k]
                        u, v, w = points[j, 0] - points[q, 0], points[j, 1] - points[q, 1], points[j, 2] - points[q, 2]
                        far = u * u + v * v + w * w
                        if far > radius * radius or cubes[j, 0] != x or cubes[j, 1] != y or cubes[j, 2] != z:
                            continue
                        like = normals[j, 0] * normals[q, 0] + normals[j, 1] * normals[q, 1]
                        like += normals[j, 2] * normals[q, 2]
                        height = u * normals[q, 0] + v * normals[q, 1] + w * normals[q, 2]
                        if like > _FACING:
                            total += height
                            count += 1
                        elif owner[j] != owner[q] and height > 0 and 2 * height * height > far:
                            faced[q] = True
        pit[q] = total / max(1, count) / radius
    return pit, faced
