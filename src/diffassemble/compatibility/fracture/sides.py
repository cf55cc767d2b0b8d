"""What is moved against each other: the breaks of two fragments, or of two clusters of fragments already joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64

from diffassemble.compatibility.fracture.voxels import Voxels, voxelise

_PROBES = 160


class Break(NamedTuple):
    """Points of a break at one level: normals (as sampled, and smooth), distance to the rim in spacings, the original
    surface's normal there, and descriptors: what a point looks like, and what its mate should look like."""

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    smooth: Float32[np.ndarray, "p 3"]
    rim: Float32[np.ndarray, "p"]
    original: Float32[np.ndarray, "p 3"]
    seen: Float32[np.ndarray, "p d"]
    sought: Float32[np.ndarray, "p d"]

    def moved(self, pose: Float64[np.ndarray, "12"]) -> Break:
        """The same break elsewhere."""
        rotation = pose[:9].reshape(3, 3).T.astype(np.float32)
        turned = [part @ rotation for part in (self.points, self.normals, self.smooth, self.original)]
        points = turned[0] + pose[9:].astype(np.float32)
        return self._replace(points=points, normals=turned[1], smooth=turned[2], original=turned[3])

    def part(self, kept: Bool[np.ndarray, "p"]) -> Break:
        """Some of the points."""
        return Break(*(np.ascontiguousarray(column[kept]) for column in self))


class Body(NamedTuple):
    """A whole surface at level 0, which nothing may enter."""

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    spacing: float
    voxels: Voxels


class Side(NamedTuple):
    """A break and its body, ready to be looked up; `probe` are some points of the body, spread evenly."""

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    smooth: Float32[np.ndarray, "p 3"]
    rim: Float32[np.ndarray, "p"]
    original: Float32[np.ndarray, "p 3"]
    seen: Float32[np.ndarray, "p d"]
    sought: Float32[np.ndarray, "p d"]
    voxels: Voxels
    body: Body
    probe: Float32[np.ndarray, "k 3"]


def make_body(points: np.ndarray, normals: np.ndarray, spacing: float) -> Body:
    """A body out of points of a surface."""
    return Body(points, normals, float(spacing), voxelise(points, spacing))


def make_side(face: Break, body: Body, spacing: float) -> Side:
    """A side out of a break of the given spacing and its body."""
    step = max(1, len(body.points) // _PROBES)
    probe = np.ascontiguousarray(body.points[::step])
    return Side(*face, voxelise(face.points, spacing, closed=False), body, probe)


def joined(breaks: Sequence[Break]) -> Break:
    """One break out of several."""
    return Break(*(np.concatenate(columns) for columns in zip(*breaks, strict=True)))
