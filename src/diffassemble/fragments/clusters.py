"""A fragment made ready for matching, and several that were joined.

A fragment finds its fracture surface level by level, each made when first asked for. A cluster is some fragments in one
frame: one body without the seams between them, and what no other member covers of their fracture surfaces.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32

from diffassemble.core import Mesh
from diffassemble.fragments.contact import Contact, Pose, Target, compose, moved
from diffassemble.fragments.descriptors import (
    COUNTERPART_SIGNS,
    DESCRIPTORS,
    DescriptorConfig,
    FractureSurface,
    SurfacePyramid,
    finest_level,
    fracture_surface,
    rim_colours,
    smooth_probabilities,
)
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.spatial import Voxels, nearest_across, voxelise
from diffassemble.fragments.surface import SAMPLING, Sample, SamplingConfig, sample

_BODY = -1
"""the body's place among what is known of levels: it is all of level 0"""
Pair = tuple[float, float]


@dataclass(frozen=True)
class FragmentConfig:
    """How a fragment's break is found, and what of clusters counts as covered.

    Thresholds are pairs, for the two outputs of the segmentation: natural prior, and balanced in each piece. A point is
    of the break if either is exceeded.
    """

    sampling: SamplingConfig = SAMPLING
    descriptors: DescriptorConfig = DESCRIPTORS
    broken: Pair = (0.4, 0.75)
    """probabilities from which on a point is of the break"""
    suspected: Pair = (0.25, 0.65)
    """probabilities from which on finer levels look at the surroundings of a point"""
    doubtful: Pair = (0.12, 0.3)
    """probabilities from which on a point may be of the break"""
    probes: int = 400
    """points of the body that are looked up to see whether it enters another"""
    fewest: int = 20
    """breaks with fewer points are not matched"""
    covered: Pair = (2.2, -0.2)
    """a point of the break is covered by one of another member within so many spacings, below this cosine of normals"""
    covered_body: Pair = (1.3, -0.3)
    """the same for points of the body"""
    near_break: float = 2.0
    """surroundings of the break, in spacings of level 0, in which small pieces are inserted"""


FRAGMENT = FragmentConfig()


class BodySurface(NamedTuple):
    """A whole surface at level 0, which nothing may enter; `broken` marks the points of breaks."""

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    spacing: float
    voxels: Voxels
    broken: Bool[np.ndarray, "p"]

    @property
    def target(self) -> Target:
        """What another surface is brought to."""
        return self.voxels, self.points, self.normals

    def holds(self, pose: Pose, points: Float32[np.ndarray, "k 3"], step: int = 1) -> int:
        """How many of every `step`-th of the points, moved, are inside, deeper than the spacing."""
        probe = np.ascontiguousarray(points[::step])
        return int(Contact.of(pose, probe, probe, self.target, self.spacing).buried(1.0).sum())


class FractureSide(NamedTuple):
    """A fracture surface and its body, ready to be looked up; `probe` are some points of the body, spread evenly."""

    surface: FractureSurface
    voxels: Voxels
    body: BodySurface
    probe: Float32[np.ndarray, "k 3"]

    @property
    def points(self) -> Float32[np.ndarray, "p 3"]:
        return self.surface.points

    @property
    def smooth(self) -> Float32[np.ndarray, "p 3"]:
        return self.surface.smooth

    @property
    def target(self) -> Target:
        """What another surface is brought to."""
        return self.voxels, self.surface.points, self.surface.smooth


class Fragment:
    """One piece; `fracture(level)` looks closer where level 0 sees a break. All that is drawn comes from one seed."""

    def __init__(
        self, mesh: Mesh, spacing: float, models: FractureModels, seed: int, config: FragmentConfig = FRAGMENT
    ) -> None:
        self.mesh, self.spacing, self.models, self.seed, self.config = mesh, spacing, models, seed, config
        self.generator = torch.Generator().manual_seed(seed)
        self.pyramid = SurfacePyramid.of(mesh, spacing, self.generator, config.descriptors, config.sampling)
        self.chances: list[Float32[np.ndarray, "p 2"]] = []
        self.found: list[Bool[np.ndarray, "p"]] = []
        self.suspects: list[Bool[np.ndarray, "p"]] = []
        self.made: dict[int, FractureSurface] = {}
        self.sampled: dict[float, Sample] = {}

    @cached_property
    def finest(self) -> int:
        """The finest level that the data show."""
        return finest_level(self.mesh, self.spacing)

    @property
    def area(self) -> float:
        """Of the whole surface; rounded, so that equal fragments rank alike in every unit of length."""
        return float(f"{len(self.pyramid.levels[0]) * self.pyramid.levels[0].area:.5g}")

    def broken(self, level: int) -> Bool[np.ndarray, "p"]:
        """Which points of a level are of the break; finer levels sample where the coarser ones suspect one."""
        for finer in range(len(self.found), level + 1):
            if finer:
                near = self.pyramid.levels[finer - 1].points[self.suspects[finer - 1]]
                self.pyramid = self.pyramid.refined(self.mesh, near, self.generator)
            here = self.pyramid.levels[finer]
            if finer == len(self.chances) and len(here):
                raw = self.models.segmentation(finer, self.pyramid.features(finer))
                self.chances.append(smooth_probabilities(here, self.spacing / 2**finer, raw, self.config.descriptors))
            elif finer == len(self.chances):
                self.chances.append(np.zeros((0, 2), np.float32))
            chance = self.chances[finer]
            self.found.append(np.any(chance > np.array(self.config.broken, np.float32), axis=1))
            self.suspects.append(np.any(chance > np.array(self.config.suspected, np.float32), axis=1))
        return self.found[level]

    def fracture(self, level: int) -> FractureSurface:
        """The break at a level, with descriptors."""
        if level not in self.made:
            broken = self.broken(level)
            spacing, described = self.spacing / 2**level, self.config.descriptors
            surface, features = fracture_surface(self.pyramid.levels[level], broken, spacing, described)
            whole = self.pyramid.levels[0]
            if whole.colours is not None:
                surface = surface._replace(colours=rim_colours(surface, whole, whole.colours, self.spacing, described))
            self.made[level] = surface._replace(
                descriptors=self.models.descriptors(level, features),
                counterparts=self.models.descriptors(level, features * COUNTERPART_SIGNS),
            )
        return self.made[level]

    @cached_property
    def doubtful(self) -> Fragment:
        """The same piece, where all that may be of the break counts as such."""
        other = copy.copy(self)
        other.config = replace(self.config, broken=self.config.doubtful, suspected=self.config.doubtful)
        other.chances, other.found, other.suspects, other.made = self.chances[:1], [], [], {}
        other.pyramid = replace(self.pyramid, levels=self.pyramid.levels[:1])
        return other

    def near_break(self, spacing: float) -> Sample:
        """The surface where level 0 suspects a break, at any spacing; all of it if the fragment is small."""
        if spacing not in self.sampled:
            self.broken(0)
            whole, reach = self.pyramid.levels[0], self.config.near_break * self.spacing
            near = None if len(whole) < self.config.descriptors.small else whole.points[self.suspects[0]]
            self.sampled[spacing] = sample(self.mesh, spacing, self.generator, near, reach, self.config.sampling)
        return self.sampled[spacing]


class Cluster:
    """Some fragments in one frame; sides are made when first asked for."""

    def __init__(
        self, fragments: Sequence[Fragment], poses: Mapping[int, Pose], halves: tuple[Cluster, ...] = ()
    ) -> None:
        self.fragments, self.poses, self.halves = fragments, dict(poses), halves
        self.members = tuple(sorted(self.poses))
        self.area = sum(fragments[i].area for i in self.members)
        self.config = fragments[0].config
        self._sides: dict[int, FractureSide] = {}
        self._free: dict[int, dict[int, Bool[np.ndarray, "_"]]] = {}

    @property
    def finest(self) -> int:
        """The finest level that all members show."""
        return min(self.fragments[i].finest for i in self.members)

    @cached_property
    def doubtful(self) -> Cluster:
        """The same cluster of fragments where all that may be of the break counts as such."""
        return Cluster([fragment.doubtful for fragment in self.fragments], self.poses)

    def with_other(self, other: Cluster, pose: Pose) -> Cluster:
        """Both, in the frame of the other, in which this one has the pose."""
        placed = {piece: compose(pose, own) for piece, own in self.poses.items()}
        return Cluster(self.fragments, {**other.poses, **placed}, (self, other))

    def release(self) -> None:
        """Forget what takes much memory and is made again if it is asked for: of a cluster that became part of one."""
        self._sides.clear()
        for name in ("body", "doubtful"):
            self.__dict__.pop(name, None)

    @property
    def points(self) -> int:
        """How many points all breaks of the members have at level 0."""
        return sum(int(self.fragments[i].broken(0).sum()) for i in self.members)

    @cached_property
    def body(self) -> BodySurface:
        """The surface of the whole cluster at level 0."""
        spacing = self.fragments[0].spacing
        wholes = [(self.poses[piece], self.fragments[piece].pyramid.levels[0]) for piece in self.members]
        parts = [moved(pose, whole.points, whole.normals) for pose, whole in wholes]
        points, normals = zip(*parts, strict=True)
        kept = np.concatenate(self._uncovered(_BODY, points, normals, spacing, self.config.covered_body))
        if not kept.any():
            kept[:] = True
        breaks = [self.fragments[piece].broken(0) for piece in self.members]
        every, facing, broken = (np.ascontiguousarray(np.concatenate(c)[kept]) for c in (points, normals, breaks))
        return BodySurface(every, facing, float(spacing), voxelise(every, spacing), broken)

    def fracture(self, level: int) -> FractureSurface:
        """What is left of the breaks at a level: points that no other member covers."""
        spacing = self.fragments[0].spacing / 2**level
        parts = [self.fragments[piece].fracture(level).moved(self.poses[piece]) for piece in self.members]
        surfaces = [p.points for p in parts], [p.smooth for p in parts]
        free = self._uncovered(level, *surfaces, spacing, self.config.covered)
        left = [part.part(kept) for part, kept in zip(parts, free, strict=True)]
        return FractureSurface(*(np.concatenate(columns) for columns in zip(*left, strict=True)))

    def _uncovered(
        self, level: int, points: Sequence[np.ndarray], normals: Sequence[np.ndarray], spacing: float, limits: Pair
    ) -> list[Bool[np.ndarray, "_"]]:
        """Which points of each member have no point of another member near that faces them.

        What the two halves of a cluster know of theirs is kept: members of one half are not compared again.
        """
        if level not in self._free:
            free = [np.ones(len(part), bool) for part in points]
            group = dict(zip(self.members, self.members, strict=True))
            for half in (half for half in self.halves if level in half._free):
                group.update(dict.fromkeys(half.members, half.members[0]))
                for piece, known in half._free[level].items():
                    free[self.members.index(piece)] = known.copy()
            for a, b in permutations(range(len(points)), 2):
                if group[self.members[a]] != group[self.members[b]]:
                    near = nearest_across(points[a], points[b], limits[0] * spacing)
                    met = np.flatnonzero(near >= 0)
                    free[a][met[(normals[a][met] * normals[b][near[met]]).sum(1) < limits[1]]] = False
            self._free[level] = dict(zip(self.members, free, strict=True))
        return [self._free[level][piece] for piece in self.members]

    def side(self, level: int) -> FractureSide | None:
        """Break and body, ready to be matched; none where hardly any break is left."""
        if level not in self._sides:
            face = self.fracture(level)
            if len(face.points) < self.config.fewest:
                return None
            voxels = voxelise(face.points, self.fragments[0].spacing / 2**level, closed=False)
            step = max(1, len(self.body.points) // self.config.probes)
            probe = np.ascontiguousarray(self.body.points[::step])
            self._sides[level] = FractureSide(face, voxels, self.body, probe)
        return self._sides[level]
