"""Screening before the search: fragments in another unit of length, and fragments that were given twice.

Another unit changes all lengths alike: how large a fragment is, and how far apart the corners or points are that a
scanner or modeller put down. A large body beside chips differs in the first alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.core import Mesh, Puzzle
from diffassemble.core.surfaces import distinct_rows, surface_area, triangle_normals

Lengthwise = Float64[np.ndarray, "n"]
Corners = Float64[np.ndarray, "v 3"]
UNITS = (2.54, 10.0, 25.4, 100.0, 304.8, 1000.0)
"""factors between millimetres, centimetres, inches, feet and metres"""


@dataclass(frozen=True)
class ScaleConfig:
    """When fragments are of another unit (docs/decisions/007-fragment-pairs.md)."""

    reported: float = 25.0
    """groups whose sizes differ by this factor are reported; infinity switches the check of sizes off. A chip of a
    thousandth of the surface is a thirtieth of the whole in size, but hardly of the next fragment"""
    unplaced: float = 100.0
    """from this factor on they are not placed"""
    grain: float = 3.0
    """nor where their corners are this many times as far apart as those of any other; infinity switches that off"""
    larger: float = 1.3
    """and they are so many times as large"""
    as_many: float = 1.3
    """but meshes whose counts of triangles differ by less were brought to them, and their grain follows their size"""
    near: float = 1.5
    """a measured factor is one between two units if it is nearer than this factor"""
    probes: int = 200
    """points of a cloud at which the distance of neighbours is measured"""


@dataclass(frozen=True)
class CopiesConfig:
    """When two fragments are one and the same."""

    same: float = 2e-5
    """corners coincide within this share of the fragment's radius: what single precision keeps of a moved copy"""
    grain: float = 2e-3
    """triangles of one plane have normals and distances that agree to this"""
    plane: float = 0.03
    """a plane counts from this share of the surface on"""


@dataclass(frozen=True)
class ScreeningConfig:
    """Which fragments are set aside; none switches a check off."""

    scale: ScaleConfig | None = ScaleConfig()
    copies: CopiesConfig | None = CopiesConfig()


SCALE, COPIES, SCREENING = ScaleConfig(), CopiesConfig(), ScreeningConfig()


def set_aside(puzzle: Puzzle, config: ScreeningConfig = SCREENING) -> dict[int, str]:
    """Which fragments are not to be placed, and why: those of another unit, and all but one of equal ones.

    Locked ones never are. Of equal fragments the first by name stays.
    """
    held = [False] * len(puzzle) if puzzle.locks is None else puzzle.locks.held.tolist()
    meshes, aside = puzzle.fragments.meshes, dict[int, str]()
    if config.scale is not None:
        found = misfit_of(puzzle.fragments.points, meshes, config.scale)
        aside = {} if found is None or not found.unplaced else dict.fromkeys(found.members, found.text)
    kept: list[int] = []
    ordered = sorted(range(len(puzzle)), key=lambda piece: (not held[piece], puzzle.names[piece]))
    for piece in ordered if config.copies is not None else ():
        copies = (one for one in kept if are_copies(meshes[one], meshes[piece], config.copies or COPIES))
        if (same := next(copies, None)) is None or held[piece]:
            kept.append(piece)
        else:
            aside[piece] = f"the same fragment as {puzzle.names[same]}"
    return {piece: reason for piece, reason in aside.items() if not held[piece]}


# Units of length


class Misfit(NamedTuple):
    """Fragments that are all together `factor` times as large as the others; below 1 they are smaller."""

    members: tuple[int, ...]
    factor: float
    unplaced: bool
    """whether this is beyond what chips and bodies of one object explain"""

    @property
    def text(self) -> str:
        """How they differ, in words."""
        large = float(f"{max(self.factor, 1 / self.factor):.2g}")
        return f"about {'' if self.factor > 1 else '1/'}{large:.0f} times as large as the others: another unit?"


class Lengths(NamedTuple):
    """Of every fragment: root of the area, how far its points reach, distance of neighbouring corners, and how many
    triangles, or points of a cloud, it has."""

    sizes: Lengthwise
    radii: Lengthwise
    grain: Lengthwise
    counts: Lengthwise


def misfit(lengths: Lengths, config: ScaleConfig = SCALE) -> Misfit | None:
    """The fewer fragments, or of equally many the smaller ones, if lengths fall into two groups far apart."""
    sizes, radii, grain, counts = lengths
    if len(sizes) < 2 or not (sizes > 0).all() or not (radii > 0).all():
        return None

    def times(one: Lengthwise) -> float:
        return float(np.median(one[large]) / np.median(one[small]))

    if (grain > 0).all() and counts.max() >= config.as_many * counts.min():
        large, small, gap = _groups(grain)
        if gap >= config.grain and times(sizes) >= config.larger:
            factor = min(UNITS, key=lambda unit: abs(math.log(times(grain) / unit)))
            known = abs(math.log(times(grain) / factor)) < math.log(config.near)
            return _fewer(large, small, factor if known else times(grain), True)
    # Roots of areas and radii, since a long thin body has little surface.
    large, small, gap = _groups(radii, sizes)
    if gap < config.reported:
        return None
    factor = math.sqrt(times(sizes) * times(radii))
    return _fewer(large, small, factor, factor >= config.unplaced)


def _groups(*keys: Lengthwise) -> tuple[Int64[np.ndarray, "l"], Int64[np.ndarray, "s"], float]:
    """Two groups where the least gap of all keys is widest in the order of the first, the larger ones first."""
    order = np.argsort(-keys[0], kind="stable")
    ordered = np.stack(keys)[:, order]
    largest_left = np.maximum.accumulate(ordered[:, ::-1], 1)[:, ::-1]
    gaps = (np.minimum.accumulate(ordered, 1)[:, :-1] / largest_left[:, 1:]).min(0)
    end = int(gaps.argmax()) + 1
    return order[:end], order[end:], float(gaps[end - 1])


def _fewer(large: Int64[np.ndarray, "l"], small: Int64[np.ndarray, "s"], factor: float, unplaced: bool) -> Misfit:
    """The smaller of two groups."""
    if len(large) < len(small):
        return Misfit(tuple(sorted(large.tolist())), factor, unplaced)
    return Misfit(tuple(sorted(small.tolist())), 1 / factor, unplaced)


def misfit_of(points: Float[Tensor, "n p 3"], meshes: Sequence[Mesh], config: ScaleConfig = SCALE) -> Misfit | None:
    """The same for fragments, given as points around their means and as meshes, all in one unit, whichever it is."""
    spread = points.double().var(1).sum(-1).tolist()
    rows = [_measured(mesh, guess, config) for mesh, guess in zip(meshes, spread, strict=True)]
    areas, *others = np.array(rows).T
    return misfit(Lengths(np.sqrt(areas), points.double().norm(dim=-1).amax(1).numpy(), *others), config)


def _measured(mesh: Mesh, spread: float, config: ScaleConfig) -> tuple[float, float, int]:
    """Area or a guess at it, grain and count of one fragment."""
    area = surface_area(mesh.vertices, mesh.faces)
    if area > 0:
        return area, (area / len(mesh.faces)) ** 0.5, len(mesh.faces)
    corners = mesh.vertices.double()
    cloud = (corners - corners.mean(0)).numpy()
    near = cKDTree(cloud).query(cloud[:: max(1, len(cloud) // config.probes)], min(7, len(cloud)))[0]
    return spread, float(np.median(near.reshape(len(near), -1)[:, -1])), len(cloud)


# Copies


def are_copies(first: Mesh, second: Mesh, config: CopiesConfig = COPIES) -> bool:
    """Whether two fragments are one and the same: congruent, and not such as sawing a regular object makes equal."""
    return congruent(first, second, config) and not has_plane(first, config)


def congruent(first: Mesh, second: Mesh, config: CopiesConfig = COPIES) -> bool:
    """Whether a turn and a shift bring all corners onto those of the other."""
    if first.vertices.shape != second.vertices.shape or first.faces.shape != second.faces.shape:
        return False
    if torch.equal(first.vertices, second.vertices) and torch.equal(first.faces, second.faces):
        return True
    here, there = (mesh.vertices.double().numpy() for mesh in (first, second))
    here, there = here - here.mean(0), there - there.mean(0)
    far, other = np.linalg.norm(here, axis=1), np.linalg.norm(there, axis=1)
    limit = config.same * max(float(far.max()), 1e-30)
    if np.abs(np.sort(far) - np.sort(other)).max() > limit:
        return False
    tree, axes = cKDTree(there), [np.linalg.eigh(one.T @ one)[1] for one in (here, there)]
    flips = [np.diag([one, two, one * two]) for one in (1.0, -1.0) for two in (1.0, -1.0)]
    hand = np.diag([1.0, 1.0, np.linalg.det(axes[0]) * np.linalg.det(axes[1])])
    for start in (_turn(here, there), *(axes[1] @ flip @ hand @ axes[0].T for flip in flips)):
        nearest = tree.query(here @ start.T)[1]
        if tree.query(here @ _turn(here, there[nearest]).T)[0].max() <= limit:
            return True
    return False


def _turn(here: Corners, there: Corners) -> Float64[np.ndarray, "3 3"]:
    """The rotation that brings centred points onto others best."""
    left, _, right = np.linalg.svd(there.T @ here)
    return left @ np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))]) @ right


def has_plane(mesh: Mesh, config: CopiesConfig = COPIES) -> bool:
    """Whether a plane, such as a saw's, has more of the surface than breaks and curved surfaces can have in one."""
    if not len(mesh.faces):
        return False
    vertices = mesh.vertices.double() - mesh.vertices.double().mean(0)
    normals = triangle_normals(vertices, mesh.faces)
    area = normals.norm(dim=-1)
    normals = normals / area.clamp(min=1e-30)[:, None]
    offset = (normals * vertices[mesh.faces[:, 0]]).sum(1) / vertices.norm(dim=-1).max()
    which = distinct_rows((torch.cat([normals, offset[:, None]], 1) / config.grain).round())[1]
    return bool(which.bincount(area).max() > config.plane * area.sum())
