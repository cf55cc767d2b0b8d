"""A fragment made ready for matching, and several that were joined: one body, and what is left of the breaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64

from diffassemble.core import Mesh
from diffassemble.fragments.descriptors import LEVELS, MATE_SIGNS, Layers, relief, smooth_breaks
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.spatial import Voxels, nearest_within, voxelise
from diffassemble.fragments.surface import Sample, sample, sample_near

# ----------------------------------------------------------------------------------------------------------------------
# What is moved against each other: the breaks of two fragments, or of two clusters of fragments already joined.


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


# ----------------------------------------------------------------------------------------------------------------------
# A fragment made ready for matching: its body, and its break at each level, each made when first asked for.


_BROKEN = 0.4
# Fragments with fewer points than this at level 0 are looked at as a whole.
_SMALL = 700
_BALANCED = 0.75
# Finer levels look where the coarser one has at least these suspicions.
_SUSPECTED = np.array([0.25, 0.65], np.float32)


class Fragment:
    """One piece; `breaks(level)` looks closer where level 0 sees a break. All that is drawn comes from one seed."""

    def __init__(self, mesh: Mesh, spacing: float, models: FractureModels, seed: int) -> None:
        self.mesh, self.spacing, self.models = mesh, spacing, models
        self.generator = torch.Generator().manual_seed(seed)
        self.layers = Layers.of(mesh, spacing, self.generator)
        self.found: list[Bool[np.ndarray, "p"]] = []
        self.suspects: list[Bool[np.ndarray, "p"]] = []
        self.made: dict[int, Break] = {}
        self.sampled: dict[float, Sample] = {}

    @property
    def area(self) -> float:
        """Of the whole surface."""
        return len(self.layers.levels[0]) * self.layers.levels[0].area

    def broken(self, level: int) -> Bool[np.ndarray, "p"]:
        """Which points of a level are of the break."""
        while len(self.found) <= level:
            self._find(len(self.found))
        return self.found[level]

    def breaks(self, level: int) -> Break:
        """The break at a level, with descriptors."""
        if level not in self.made:
            broken = self.broken(level)
            face = relief(self.layers.levels[level], broken, self.spacing / 2**level)
            seen = self.models.descriptors(level, face.features)
            sought = self.models.descriptors(level, face.features * MATE_SIGNS)
            self.made[level] = Break(face.points, face.normals, face.smooth, face.rim, face.original, seen, sought)
        return self.made[level]

    def near_break(self, spacing: float) -> Sample:
        """The surface where level 0 suspects a break, at any spacing; all of it if the fragment is small."""
        if spacing not in self.sampled:
            self.broken(0)
            whole = self.layers.levels[0]
            if len(whole) < _SMALL:
                self.sampled[spacing] = sample(self.mesh, spacing, self.generator)
            else:
                near = whole.points[self.suspects[0]]
                self.sampled[spacing] = sample_near(self.mesh, spacing, near, 2 * self.spacing, self.generator)
        return self.sampled[spacing]

    def _find(self, level: int) -> None:
        assert level < LEVELS
        if level:
            near = self.layers.levels[level - 1].points[self.suspects[level - 1]]
            self.layers = self.layers.refined(self.mesh, near, self.generator)
        here = self.layers.levels[level]
        if not len(here):
            self.suspects.append(np.zeros(0, bool))
            self.found.append(np.zeros(0, bool))
            return
        chance = self.models.segmentation(level, self.layers.features(level))
        chance = smooth_breaks(here, self.spacing / 2**level, chance)
        self.found.append((chance[:, 0] > _BROKEN) | (chance[:, 1] > _BALANCED))
        self.suspects.append(np.any(chance > _SUSPECTED, axis=1))


# ----------------------------------------------------------------------------------------------------------------------
# Fragments that were joined: one body without the seams, and what is left of the breaks.


Pose = Float64[np.ndarray, "12"]
STAY = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])


def composed(outer: Pose, inner: Pose) -> Pose:
    """First the inner motion, then the outer."""
    rotation = outer[:9].reshape(3, 3)
    turned = rotation @ inner[:9].reshape(3, 3)
    return np.concatenate([turned.ravel(), rotation @ inner[9:] + outer[9:]])


class Cluster:
    """Some fragments in one frame; sides are made when first asked for."""

    def __init__(self, fragments: Sequence[Fragment], poses: Mapping[int, Pose]) -> None:
        self.fragments, self.poses = fragments, dict(poses)
        self.members = tuple(sorted(self.poses))
        self.area = sum(fragments[i].area for i in self.members)
        self._sides: dict[int, Side] = {}
        self._body: Body | None = None

    def with_other(self, other: Cluster, pose: Pose) -> Cluster:
        """Both, in the frame of the other, in which this one stands at the pose."""
        moved = {piece: composed(pose, own) for piece, own in self.poses.items()}
        return Cluster(self.fragments, {**other.poses, **moved})

    @property
    def points(self) -> int:
        """How many points all breaks of the members have at level 0."""
        return sum(int(self.fragments[i].broken(0).sum()) for i in self.members)

    @property
    def body(self) -> Body:
        """The surface of the whole cluster at level 0."""
        if self._body is None:
            spacing = self.fragments[0].spacing
            points, normals = [], []
            for piece in self.members:
                rotation = self.poses[piece][:9].reshape(3, 3).T.astype(np.float32)
                whole = self.fragments[piece].layers.levels[0]
                points.append(whole.points @ rotation + self.poses[piece][9:].astype(np.float32))
                normals.append(whole.normals @ rotation)
            kept = np.concatenate(free_points(points, normals, 1.3 * spacing, -0.3))
            if not kept.any():
                kept[:] = True
            every, facing = np.concatenate(points)[kept], np.concatenate(normals)[kept]
            self._body = make_body(np.ascontiguousarray(every), np.ascontiguousarray(facing), spacing)
        return self._body

    def broken(self, level: int) -> Break:
        """What is left of the breaks at a level: points that no other member covers."""
        spacing = self.fragments[0].spacing / 2**level
        parts = [self.fragments[piece].breaks(level).moved(self.poses[piece]) for piece in self.members]
        free = free_points([p.points for p in parts], [p.smooth for p in parts], 2.2 * spacing, -0.2)
        return joined([part.part(kept) for part, kept in zip(parts, free, strict=True)])

    def side(self, level: int) -> Side | None:
        """Break and body, ready to be matched; none where hardly any break is left."""
        if level not in self._sides:
            face = self.broken(level)
            if len(face.points) < 20:
                return None
            self._sides[level] = make_side(face, self.body, self.fragments[0].spacing / 2**level)
        return self._sides[level]


def free_points(
    points: Sequence[np.ndarray], normals: Sequence[np.ndarray], reach: float, facing: float
) -> list[Bool[np.ndarray, "p"]]:
    """Which points of each member have no point of another member near that faces them."""
    free = [np.ones(len(part), bool) for part in points]
    lows = [part.min(0) - reach if len(part) else np.full(3, np.inf) for part in points]
    highs = [part.max(0) + reach if len(part) else np.full(3, -np.inf) for part in points]
    for a in range(len(points)):
        for b in range(len(points)):
            if a == b or (lows[a] > highs[b]).any() or (lows[b] > highs[a]).any():
                continue
            near = nearest_within(points[a], points[b], reach)
            found = near >= 0
            opposed = (normals[a][found] * normals[b][near[found]]).sum(1) < facing
            free[a][np.flatnonzero(found)[opposed]] = False
    return free
