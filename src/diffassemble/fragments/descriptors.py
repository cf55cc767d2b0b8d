"""What the surface around a point looks like, which part of it is fracture surface, and what tells its points apart.

`NAMES` lists the numbers that describe surroundings, seen from the point's normal; they stay when a fragment is
moved. Two points that lay on each other see the negative of each other's relief: `SIGNS` flips what is height-like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64
from scipy.spatial import cKDTree

from diffassemble.core import Mesh
from diffassemble.fragments.contact import Points, Pose, Touch, rotations, transformed
from diffassemble.fragments.spatial import bucket, kernel, nearest_within, sort_points
from diffassemble.fragments.surface import (
    SAMPLING,
    Sample,
    SamplingConfig,
    cloud_gap,
    is_cloud,
    sample,
    smoothed,
    smoothed_normals,
)

NAMES = (
    *("area", "likeness", "likeness_deviation", "opposed", "height", "height_deviation", "height_skew", "bulge"),
    *("position_small", "position_middle", "position_large", "normal_small", "normal_middle", "normal_large", "offset"),
)
SIGNS = np.array([-1.0 if name in ("height", "height_skew", "bulge") else 1.0 for name in NAMES], np.float32)
LEVELS = 3


@dataclass(frozen=True)
class DescriptorConfig:
    """How the surroundings of points are described; the networks were trained with these numbers. Lengths in spacings
    of the level."""

    nearest: float = 2.5
    """smallest radius of surroundings, and that of smoothed normals"""
    margin: float = 1.6
    """how far around the break a finer level reaches, in spacings of the coarser one"""
    small: int = 700
    """fragments with fewer points than this at level 0 are looked at as a whole"""
    smoothing: float = 2.2
    """radius of the means of probabilities of the break"""
    radii: tuple[float, float, float] = (4.0, 8.0, 16.0)
    """radii of the surroundings within the break"""
    rim: float = 6.0
    """greatest distance to the rim that is known"""
    clear: float = 1.5
    """colours beside a rim are those of surface at least so far from the break, in spacings of level 0"""
    reach: float = 4.0
    """at most so far from the rim"""
    patch: float = 2.0
    """and means over this radius"""
    same_side: float = 0.5
    """the surface's normal there has at least this cosine with that at the rim"""


DESCRIPTORS = DescriptorConfig()
BREAK = Touch(1.2, 0.35, -0.3)
"""when a point of a fragment that stands assembled is of a break"""
FACE_FEATURES = len(NAMES) * len(DESCRIPTORS.radii) + 4
"""How many numbers describe a point of a break for matching."""
COUNTERPART_SIGNS = np.concatenate([np.tile(SIGNS, len(DESCRIPTORS.radii)), np.ones(4, np.float32)])
"""What a point's features are multiplied with to become those that its counterpart should have."""


def neighbourhood(points: Points, normals: Points, support: Sample, radius: float) -> Float32[np.ndarray, "q f"]:
    """The numbers of `NAMES` for each point, from those points of the support within the radius; lengths in radii."""
    sums = _moments(points, normals, support.points, support.normals, np.float32(radius)).T
    count, n = sums[0].copy(), normals.T.astype(np.float64)
    m = sums / np.maximum(count, 1)
    opposed, cubed, bulge = m[1], m[2] / radius**3, m[3] / radius
    place, facing, spread, turned = m[4:7] / radius, m[7:10], m[10:16] / radius**2, m[16:22]
    height, like = (place * n).sum(0), (facing * n).sum(0)
    # Squares along the normal; of six products of three numbers those of different ones count twice.
    pairs = np.array([n[i] * n[j] * (2 - (i == j)) for i in range(3) for j in range(i, 3)])
    squared, like_squared = (spread * pairs).sum(0), (turned * pairs).sum(0)
    skew = np.cbrt(cubed - 3 * height * squared + 2 * height**3)
    deviations = [np.sqrt(np.maximum(square, 0.0)) for square in (like_squared - like**2, squared - height**2)]
    shape = eigenvalues(spread - [place[i] * place[j] for i in range(3) for j in range(i, 3)])
    first = [
        count * support.area / (np.pi * radius**2),
        like,
        deviations[0],
        opposed,
        height,
        deviations[1],
        skew,
        bulge,
    ]
    table = np.stack([*first, *np.sqrt(shape), *np.sqrt(eigenvalues(turned)), np.linalg.norm(place, axis=0)], 1)
    return np.where(count[:, None] > 0, table, 0).astype(np.float32)


def eigenvalues(matrices: Float64[np.ndarray, "6 q"]) -> Float64[np.ndarray, "3 q"]:
    """Eigenvalues of symmetric 3×3 matrices (xx, xy, xz, yy, yz, zz), not below 0, smallest first, in closed form."""
    xx, xy, xz, yy, yz, zz = matrices
    mean = (xx + yy + zz) / 3
    a, b, c = xx - mean, yy - mean, zz - mean
    spread = np.sqrt(np.maximum((a * a + b * b + c * c + 2 * (xy * xy + xz * xz + yz * yz)) / 6, 1e-20))
    determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    angle = np.arccos(np.clip(determinant / (2 * spread**3), -1, 1)) / 3
    large, small = (mean + 2 * spread * np.cos(angle + turn) for turn in (0, 2 * np.pi / 3))
    return np.maximum([small, 3 * mean - large - small, large], 0.0)


@kernel
def _moments(points, normals, others, other_normals, radius):
    """Sums over the neighbours at offset u with normal a of each point with normal n: 1, a·n < −½, (u·n)³, u·a, u, a,
    u uᵀ and a aᵀ."""
    start, order, cubes = sort_points(others, radius)
    mask = len(start) - 2
    packed = np.empty((len(others), 6), np.float32)
    for k in range(len(others)):
        for axis in range(3):
            packed[k, axis], packed[k, 3 + axis] = others[order[k], axis], other_normals[order[k], axis]
    moments, m = np.empty((len(points), 22)), np.empty(22)
    for q in range(len(points)):
        x, y, z = points[q, 0], points[q, 1], points[q, 2]
        nx, ny, nz = normals[q, 0], normals[q, 1], normals[q, 2]
        cx, cy, cz = int(np.floor(x / radius)), int(np.floor(y / radius)), int(np.floor(z / radius))
        for k in range(22):
            m[k] = 0
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    b = bucket(cx + dx, cy + dy, cz + dz, mask)
                    for k in range(start[b], start[b + 1]):
                        u = packed[k, 0] - x, packed[k, 1] - y, packed[k, 2] - z
                        if u[0] * u[0] + u[1] * u[1] + u[2] * u[2] > radius * radius:
                            continue
                        j = order[k]
                        if cubes[j, 0] != cx + dx or cubes[j, 1] != cy + dy or cubes[j, 2] != cz + dz:
                            continue
                        a, place = (packed[k, 3], packed[k, 4], packed[k, 5]), 10
                        m[0] += 1
                        m[1] += a[0] * nx + a[1] * ny + a[2] * nz < -0.5
                        m[2] += (u[0] * nx + u[1] * ny + u[2] * nz) ** 3
                        for i in range(3):
                            m[3] += u[i] * a[i]
                            m[4 + i] += u[i]
                            m[7 + i] += a[i]
                            for j in range(i, 3):
                                m[place] += u[i] * u[j]
                                m[place + 6] += a[i] * a[j]
                                place += 1
        for k in range(22):
            moments[q, k] = m[k]
    return moments


def surface_features(level: int) -> int:
    """How many numbers describe the surroundings of a point at a level."""
    return len(NAMES) * (4 + level)


def finest_level(mesh: Mesh, spacing: float) -> int:
    """The finest level that the data show: a cloud of points has nothing between its points."""
    if not is_cloud(mesh):
        return LEVELS - 1
    return int(np.clip(np.log2(spacing / max(cloud_gap(mesh), 1e-12)) + 0.3, 0, LEVELS - 1))


@dataclass(frozen=True)
class SurfacePyramid:
    """`levels[L]` has spacing s / 2^L; all of the surface at level 0, what is near the break at finer ones.

    `coarse` are level 0 thinned to spacings 2 s and 4 s.
    """

    spacing: float
    levels: tuple[Sample, ...]
    coarse: tuple[Sample, Sample]
    config: DescriptorConfig = DESCRIPTORS
    sampling: SamplingConfig = SAMPLING

    @staticmethod
    def of(
        mesh: Mesh,
        spacing: float,
        generator: torch.Generator,
        config: DescriptorConfig = DESCRIPTORS,
        sampling: SamplingConfig = SAMPLING,
    ) -> SurfacePyramid:
        """The whole surface at level 0."""
        whole = sample(mesh, spacing, generator, config=sampling)
        coarse = whole.thinned(2 * spacing, sampling), whole.thinned(4 * spacing, sampling)
        return SurfacePyramid(spacing, (whole,), coarse, config, sampling)

    def refined(self, mesh: Mesh, near: Points, generator: torch.Generator) -> SurfacePyramid:
        """With one more, finer level around given points of the break; all of a small fragment."""
        fine = self.spacing / 2 ** len(self.levels)
        around = None if len(self.levels[0]) < self.config.small else near
        finer = sample(mesh, fine, generator, around, 2 * self.config.margin * fine, self.sampling)
        return replace(self, levels=(*self.levels, finer))

    def features(self, level: int, chosen: Int64[np.ndarray, "k"] | slice = slice(None)) -> Float32[np.ndarray, "k f"]:
        """Surroundings of all or some points, at radii from 2.5 spacings of the level, doubling, to 20 of level 0."""
        here = self.levels[level]
        supports = [here, here, *reversed(self.levels[:level]), *self.coarse]
        radii = [self.config.nearest * self.spacing / 2**level * 2**number for number in range(len(supports))]
        pairs = zip(supports, radii, strict=True)
        return np.concatenate([neighbourhood(here.points[chosen], here.normals[chosen], *pair) for pair in pairs], 1)


def smooth_probabilities(
    here: Sample, spacing: float, probability: Float32[np.ndarray, "p c"], config: DescriptorConfig = DESCRIPTORS
) -> Float32[np.ndarray, "p c"]:
    """Probabilities averaged twice over close neighbours that face the same way."""
    once = smoothed(here.points, here.normals, probability, np.float32(config.smoothing * spacing))
    return smoothed(here.points, here.normals, once, np.float32(config.smoothing * spacing))


def true_breaks(standing: Sequence[Sample], spacing: float, touch: Touch = BREAK) -> list[Bool[np.ndarray, "p"]]:
    """Which points of fragments in their assembled places touch another fragment that faces them."""
    labels = [np.zeros(len(piece), bool) for piece in standing]
    for other in standing:
        tree = cKDTree(other.points) if len(other) else None
        for piece, touches in zip(standing, labels, strict=True):
            if tree is None or other is piece:
                continue
            far, near = tree.query(piece.points, 1, distance_upper_bound=touch.reach * spacing)
            close = np.isfinite(far)
            at = near[close]
            apart = ((piece.points[close] - other.points[at]) * other.normals[at]).sum(1)
            facing = (piece.normals[close] * other.normals[at]).sum(1)
            touches[close] |= (np.abs(apart) < touch.plane * spacing) & (facing < touch.facing)
    return labels


class FractureSurface(NamedTuple):
    """Points where a fragment broke, at one level; a row a point.

    `smooth` are normals without roughness, `rim` is the distance to the rim in spacings, at most 6, `original` the
    normal of the original surface there, `edge` the way to it, both zero where the rim is farther. `descriptors` are
    what a point looks like, `counterparts` what its point on the other side should look like. `colours` are those of
    the original surface at the rim, sRGB in [0, 1]; NaN where the rim is farther, or has no colours.
    """

    points: Points
    normals: Points
    smooth: Points
    rim: Float32[np.ndarray, "p"]
    original: Points
    edge: Points
    descriptors: Float32[np.ndarray, "p d"]
    counterparts: Float32[np.ndarray, "p d"]
    colours: Points

    def moved(self, pose: Pose) -> FractureSurface:
        """The same elsewhere."""
        turn = rotations(pose).T.astype(np.float32)
        directions = {name: getattr(self, name) @ turn for name in ("normals", "smooth", "original", "edge")}
        return self._replace(points=transformed(pose, self.points), **directions)

    def part(self, kept: Bool[np.ndarray, "p"] | Int64[np.ndarray, "k"] | slice) -> FractureSurface:
        """Some of the points."""
        return FractureSurface(*(np.ascontiguousarray(column[kept]) for column in self))


def fracture_surface(
    here: Sample, broken: Bool[np.ndarray, "p"], spacing: float, config: DescriptorConfig = DESCRIPTORS
) -> tuple[FractureSurface, Float32[np.ndarray, "b f"]]:
    """The broken points without the rest of the surface, and what each is described by; descriptors are still empty."""
    points, normals = here.points[broken], here.normals[broken]
    smooth = smoothed_normals(points, normals, config.nearest * spacing)
    # The rim, seen from the break: where the nearest point of the original surface is.
    rim, original, way = np.full(len(points), config.rim, np.float32), np.zeros_like(points), np.zeros_like(points)
    outer = here.part(~broken)
    if len(outer) and len(points):
        near = nearest_within(points, outer.points, np.float32(config.rim * spacing))
        found, at = near >= 0, near[near >= 0]
        way[found] = outer.points[at] - points[found]
        rim[found] = np.minimum(np.linalg.norm(way[found], axis=1) / np.float32(spacing), np.float32(config.rim))
        original[found] = smoothed_normals(outer.points, outer.normals, config.nearest * spacing)[at]
    face = Sample(points, smooth, here.area)
    supports = (face, face.thinned(1.6 * spacing), face.thinned(3.2 * spacing))
    pairs = zip(supports, config.radii, strict=True)
    columns = [neighbourhood(points, smooth, support, radius * spacing) for support, radius in pairs]
    at_rim, angle = (rim < config.rim).astype(np.float32), (smooth * original).sum(1)
    edge = np.stack([rim / config.rim, at_rim, angle * at_rim, (rim < 2).astype(np.float32)], 1)
    empty, unknown = np.zeros((len(points), 0), np.float32), np.full_like(points, np.nan)
    surface = FractureSurface(points, normals, smooth, rim, original, way, empty, empty, unknown)
    return surface, np.concatenate([*columns, edge], 1)


def rim_colours(
    surface: FractureSurface, whole: Sample, colours: Points, spacing: float, config: DescriptorConfig = DESCRIPTORS
) -> Points:
    """Colours of the original surface at the rim beside each point of a break; NaN where there are none.

    `whole` are points of the whole surface and `spacing` is theirs. Where the break ends is not known to a point, and
    its own colour must not count: the original surface is sampled a little away from it.
    """
    result = np.full_like(surface.points, np.nan)
    clear = nearest_within(whole.points, surface.points, np.float32(config.clear * spacing)) < 0
    points, normals = whole.points[clear], whole.normals[clear]
    if len(points):
        seen = smoothed(points, normals, colours[clear], np.float32(config.patch * spacing))
        near = nearest_within(surface.points, points, np.float32(config.reach * spacing))
        found = np.flatnonzero(near >= 0)
        found = found[(surface.original[found] * normals[near[found]]).sum(1) > config.same_side]
        result[found] = seen[near[found]]
    return result
