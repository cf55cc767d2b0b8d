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
from jaxtyping import Bool, Float32, Int64
from scipy.spatial import cKDTree

from diffassemble.core import Mesh
from diffassemble.fragments.contact import Pose, Touch
from diffassemble.fragments.spatial import bucket, inner, kernel, nearest_within, sort_points
from diffassemble.fragments.surface import (
    SAMPLING,
    Sample,
    SamplingConfig,
    cloud_gap,
    is_cloud,
    sample,
    sample_near,
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


def neighbourhood(
    points: Float32[np.ndarray, "q 3"], normals: Float32[np.ndarray, "q 3"], support: Sample, radius: float
) -> Float32[np.ndarray, "q f"]:
    """The numbers of `NAMES` for each point, from those points of the support that lie within the radius of it."""
    return _measure(points, normals, support.points, support.normals, np.float32(support.area), np.float32(radius))


@inner
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


@kernel
def _measure(points, normals, others, other_normals, area, radius):
    start, order, cubes = sort_points(others, radius)
    mask = len(start) - 2
    packed = np.empty((len(others), 6), np.float32)
    for k in range(len(others)):
        for axis in range(3):
            packed[k, axis], packed[k, 3 + axis] = others[order[k], axis], other_normals[order[k], axis]
    result, moments = np.zeros((len(points), 15), np.float32), np.empty(23)
    for q in range(len(points)):
        x, y, z = points[q, 0], points[q, 1], points[q, 2]
        nx, ny, nz = normals[q, 0], normals[q, 1], normals[q, 2]
        cx, cy, cz = int(np.floor(x / radius)), int(np.floor(y / radius)), int(np.floor(z / radius))
        for k in range(23):
            moments[k] = 0
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    b = bucket(cx + dx, cy + dy, cz + dz, mask)
                    for k in range(start[b], start[b + 1]):
                        u, v, w = packed[k, 0] - x, packed[k, 1] - y, packed[k, 2] - z
                        if u * u + v * v + w * w > radius * radius:
                            continue
                        j = order[k]
                        if cubes[j, 0] == cx + dx and cubes[j, 1] == cy + dy and cubes[j, 2] == cz + dz:
                            _add(moments, u, v, w, packed[k, 3], packed[k, 4], packed[k, 5], nx, ny, nz)
        _summarise(moments, area, radius, result[q])
    return result


@inner
def _add(moments, u, v, w, a, b, c, nx, ny, nz):
    """Add one neighbour to the sums."""
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


@inner
def _summarise(m, area, radius, result):
    """Sums become the numbers of NAMES, lengths in radii."""
    count = m[0]
    result[0] = count * area / (np.pi * radius * radius)
    if count < 1:
        return
    for k in range(1, 23):
        m[k] /= count
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
    """`levels[L]` has spacing s / 2^L; all of the surface at level 0, what lies near the break at finer ones.

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
        whole = sample(mesh, spacing, generator, sampling)
        coarse = whole.thinned(2 * spacing, sampling), whole.thinned(4 * spacing, sampling)
        return SurfacePyramid(spacing, (whole,), coarse, config, sampling)

    def refined(self, mesh: Mesh, near: Float32[np.ndarray, "k 3"], generator: torch.Generator) -> SurfacePyramid:
        """With one more, finer level around given points of the break; all of a small fragment."""
        fine = self.spacing / 2 ** len(self.levels)
        finer = self.sampled(mesh, fine, near, 2 * self.config.margin * fine, generator)
        return replace(self, levels=(*self.levels, finer))

    def sampled(
        self, mesh: Mesh, spacing: float, near: Float32[np.ndarray, "k 3"], radius: float, generator: torch.Generator
    ) -> Sample:
        """The surface within the radius of given points at any spacing; all of it if the fragment is small."""
        if len(self.levels[0]) < self.config.small:
            return sample(mesh, spacing, generator, self.sampling)
        return sample_near(mesh, spacing, near, radius, generator, self.sampling)

    def features(self, level: int, chosen: Int64[np.ndarray, "k"] | slice = slice(None)) -> Float32[np.ndarray, "k f"]:
        """Surroundings of all or some points, at radii from 2.5 spacings of the level, doubling, to 20 of level 0."""
        here = self.levels[level]
        points, normals = here.points[chosen], here.normals[chosen]
        supports = [here, here, *reversed(self.levels[:level]), *self.coarse]
        radius = self.config.nearest * self.spacing / 2**level
        columns = [neighbourhood(points, normals, one, radius * 2**number) for number, one in enumerate(supports)]
        return np.concatenate(columns, 1)


def smooth_probabilities(
    here: Sample, spacing: float, probability: Float32[np.ndarray, "p c"], config: DescriptorConfig = DESCRIPTORS
) -> Float32[np.ndarray, "p c"]:
    """Probabilities averaged twice over close neighbours that face the same way."""
    for _ in range(2):
        probability = smoothed(here.points, here.normals, probability, np.float32(config.smoothing * spacing))
    return probability


def true_breaks(standing: Sequence[Sample], spacing: float, touch: Touch = BREAK) -> list[Bool[np.ndarray, "p"]]:
    """Which points of fragments that stand assembled lie on another fragment that faces them."""
    trees = [cKDTree(piece.points) if len(piece) else None for piece in standing]
    labels = []
    for piece in standing:
        touches = np.zeros(len(piece), bool)
        for other, tree in zip(standing, trees, strict=True):
            if tree is None or other is piece:
                continue
            far, near = tree.query(piece.points, 1, distance_upper_bound=touch.reach * spacing)
            close = np.isfinite(far)
            at = near[close]
            apart = ((piece.points[close] - other.points[at]) * other.normals[at]).sum(1)
            facing = (piece.normals[close] * other.normals[at]).sum(1)
            touches[close] |= (np.abs(apart) < touch.plane * spacing) & (facing < touch.facing)
        labels.append(touches)
    return labels


class FractureSurface(NamedTuple):
    """Points where a fragment broke, at one level; a row a point.

    `smooth` are normals without roughness, `rim` is the distance to the rim in spacings, at most 6, `original` the
    normal of the original surface there, `edge` the way to it, both zero where the rim is farther. `descriptors` tell
    what a point looks like, `counterparts` what the point that it lay on looks like. `colours` are those of the
    original surface at the rim, sRGB in [0, 1]; NaN where the rim is farther, or has no colours.
    """

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    smooth: Float32[np.ndarray, "p 3"]
    rim: Float32[np.ndarray, "p"]
    original: Float32[np.ndarray, "p 3"]
    edge: Float32[np.ndarray, "p 3"]
    descriptors: Float32[np.ndarray, "p d"]
    counterparts: Float32[np.ndarray, "p d"]
    colours: Float32[np.ndarray, "p 3"]

    def moved(self, pose: Pose) -> FractureSurface:
        """The same elsewhere."""
        rotation = pose[:9].reshape(3, 3).T.astype(np.float32)
        points = self.points @ rotation + pose[9:].astype(np.float32)
        directions = ("normals", "smooth", "original", "edge")
        return self._replace(points=points, **{name: getattr(self, name) @ rotation for name in directions})

    def part(self, kept: Bool[np.ndarray, "p"] | Int64[np.ndarray, "k"] | slice) -> FractureSurface:
        """Some of the points."""
        return FractureSurface(*(np.ascontiguousarray(column[kept]) for column in self))


def fracture_surface(
    here: Sample, broken: Bool[np.ndarray, "p"], spacing: float, config: DescriptorConfig = DESCRIPTORS
) -> tuple[FractureSurface, Float32[np.ndarray, "b f"]]:
    """The broken points without the rest of the surface, and what each is described by; descriptors are still empty."""
    points, normals = here.points[broken], here.normals[broken]
    smooth = smoothed_normals(points, normals, config.nearest * spacing)
    rim, original, way = _rim(here, broken, spacing, config)
    face = Sample(points, smooth, here.area)
    supports = (face, face.thinned(1.6 * spacing), face.thinned(3.2 * spacing))
    columns = [
        neighbourhood(points, smooth, support, radius * spacing)
        for support, radius in zip(supports, config.radii, strict=True)
    ]
    at_rim = (rim < config.rim).astype(np.float32)
    angle = (smooth * original).sum(1)
    edge = np.stack([rim / config.rim, at_rim, angle * at_rim, (rim < 2).astype(np.float32)], 1)
    empty = np.zeros((len(points), 0), np.float32)
    unknown = np.full_like(points, np.nan)
    surface = FractureSurface(points, normals, smooth, rim, original, way, empty, empty, unknown)
    return surface, np.concatenate([*columns, edge], 1)


def _rim(
    here: Sample, broken: np.ndarray, spacing: float, config: DescriptorConfig
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distance of the broken points to the rim in spacings, the original surface's normal there, and the way to it."""
    points = here.points[broken]
    rim = np.full(len(points), config.rim, np.float32)
    original, way = np.zeros((len(points), 3), np.float32), np.zeros((len(points), 3), np.float32)
    if broken.all() or not len(points):
        return rim, original, way
    outer = here.points[~broken]
    smooth = smoothed_normals(outer, here.normals[~broken], config.nearest * spacing)
    near = nearest_within(points, outer, np.float32(config.rim * spacing))
    found = near >= 0
    way[found] = outer[near[found]] - points[found]
    rim[found] = np.linalg.norm(way[found], axis=1) / spacing
    original[found] = smooth[near[found]]
    return np.minimum(rim, np.float32(config.rim)), original, way


def rim_colours(
    surface: FractureSurface,
    whole: Sample,
    colours: Float32[np.ndarray, "q 3"],
    spacing: float,
    config: DescriptorConfig = DESCRIPTORS,
) -> Float32[np.ndarray, "p 3"]:
    """Colours of the original surface at the rim beside each point of a break; NaN where there are none.

    `whole` are points of the whole surface and `spacing` is theirs. Where the break ends is not known to a point, and
    its own colour must not count: the original surface is looked at a little away from it.
    """
    result = np.full((len(surface.points), 3), np.nan, np.float32)
    clear = nearest_within(whole.points, surface.points, np.float32(config.clear * spacing)) < 0
    points, normals = (np.ascontiguousarray(column[clear]) for column in (whole.points, whole.normals))
    if not len(points):
        return result
    seen = smoothed(points, normals, np.ascontiguousarray(colours[clear]), np.float32(config.patch * spacing))
    near = nearest_within(surface.points, points, np.float32(config.reach * spacing))
    found = np.flatnonzero(near >= 0)
    found = found[(surface.original[found] * normals[near[found]]).sum(1) > config.same_side]
    result[found] = seen[near[found]]
    return result
