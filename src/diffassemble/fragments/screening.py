"""Screening before the search: fragments in another unit of length, and fragments that were given twice.

Another unit changes all lengths alike: how large a fragment is, how thick its wall, and how far apart the corners or
points are that a scanner or modeller put down. A large body beside chips differs in the first alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.core import Mesh, Puzzle
from diffassemble.core.surfaces import distinct_rows, sample_surface, surface_area, triangle_normals


@dataclass(frozen=True)
class ScaleConfig:
    """When fragments are of another unit. Of 110 training objects (756 fragments) none was set aside; 95 to 97 % were
    with a fragment made ten times as large or small, 98 to 100 % with one made 25.4 times so."""

    reported: float = 25.0
    """groups whose sizes differ by this factor are reported; infinity switches the check of sizes off. A chip of a
    thousandth of the surface is a thirtieth of the whole in size, but hardly of the next fragment"""
    unplaced: float = 100.0
    """from this factor on they are not placed"""
    grain: float = 3.0
    """nor where their corners are this many times as far apart as those of any other; infinity switches that off"""
    larger: float = 1.3
    """and they are so many times as large"""
    thicker: float = 2.0
    """and their walls so many times as thick"""
    as_many: float = 1.3
    """meshes whose counts of triangles differ by less were brought to them: their grain follows their size, and
    thickness counts instead"""
    thin: float = 0.12
    """but only of fragments with walls of less than this share of their size"""
    units: tuple[float, ...] = (2.54, 10.0, 25.4, 100.0, 304.8, 1000.0)
    """factors between millimetres, centimetres, inches, feet and metres"""
    near: float = 1.5
    """a measured factor is one of these if it is nearer than this factor"""
    probes: int = 200
    """points at which the thickness is measured"""
    drawn: int = 1500
    """against so many points of the surface"""
    facing: float = -0.5
    """greatest cosine between the normals of opposite points of a wall"""
    aside: float = 0.3
    """greatest distance from the straight way in, as a share of the depth"""
    gaps: float = 1.2
    """or in distances between points"""


@dataclass(frozen=True)
class CopiesConfig:
    """When two fragments are one and the same."""

    same: float = 2e-5
    """corners coincide within this share of the fragment's radius: what single precision keeps of a moved copy"""
    rounds: int = 4
    probes: int = 400
    """points of a surface that are compared with its mirror images"""
    dense: int = 20_000
    """against so many"""
    except_for: float = 0.02
    """a fragment is regular if all but this share of the points come near"""
    near: float = 1.5
    """within so many spacings"""
    round: float = 0.01
    """or if two of its widths differ by less than this share, so that its axes are arbitrary"""
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
    kept: dict[tuple[int, int], list[int]] = {}
    ordered = sorted(range(len(puzzle)), key=lambda piece: (not held[piece], puzzle.names[piece]))
    for piece in ordered if config.copies is not None else ():
        mesh = meshes[piece]
        alike = kept.setdefault((len(mesh.vertices), len(mesh.faces)), [])
        same = next((other for other in alike if are_copies(meshes[other], mesh, config.copies or COPIES)), None)
        if same is None or held[piece]:
            alike.append(piece)
        else:
            aside[piece] = f"the same fragment as {puzzle.names[same]}"
    return {piece: reason for piece, reason in aside.items() if not held[piece]}


# Units of length


@dataclass(frozen=True)
class Misfit:
    """Fragments that are all together `factor` times as large as the others; below 1 they are smaller."""

    members: tuple[int, ...]
    factor: float
    unplaced: bool = False
    """whether this is beyond what chips and bodies of one object explain"""

    @property
    def text(self) -> str:
        """How they differ, in words."""
        large = float(f"{max(self.factor, 1 / self.factor):.2g}")
        return f"about {'' if self.factor > 1 else '1/'}{large:.0f} times as large as the others: another unit?"


@dataclass(frozen=True)
class Lengths:
    """Of every fragment: root of the area, how far its points reach, thickness of its wall (NaN where it is not known),
    distance of neighbouring corners, and how many triangles, or points of a cloud, it has."""

    sizes: Float64[Tensor, "n"]
    radii: Float64[Tensor, "n"]
    thickness: Float64[Tensor, "n"]
    grain: Float64[Tensor, "n"]
    counts: Int64[Tensor, "n"]


def misfit(lengths: Lengths, config: ScaleConfig = SCALE) -> Misfit | None:
    """The fewer fragments, or of equally many the smaller ones, if lengths fall into two groups far apart."""
    if len(lengths.sizes) < 2 or not bool((lengths.sizes > 0).all() & (lengths.radii > 0).all()):
        return None
    return _by_grain(lengths, config) or _by_size(lengths, config)


def _by_grain(lengths: Lengths, config: ScaleConfig) -> Misfit | None:
    """Those whose corners are farther apart, or whose walls are thicker, than any other's, and which are larger."""
    alike = bool(lengths.counts.max() < config.as_many * lengths.counts.min())
    key = lengths.thickness if alike else lengths.grain
    if not bool((key > 0).all()) or (alike and float((key / lengths.sizes).median()) > config.thin):
        return None
    order = key.argsort(descending=True, stable=True)
    gaps = key[order][:-1] / key[order][1:]
    large = int(gaps.argmax()) + 1
    times = [_times(one, order, large) for one in (lengths.sizes, lengths.thickness, lengths.grain)]
    if gaps[large - 1] < config.grain or times[0] < config.larger or times[1] < config.thicker:
        return None
    return _fewer(order, large, _unit_step(times[1] if alike else times[2], config), 0.0)


def _unit_step(times: float, config: ScaleConfig) -> float:
    """The factor between two units in use that is nearest, or the number itself where none is near."""
    step = min(config.units, key=lambda unit: abs(math.log(times / unit)))
    return step if abs(math.log(times / step)) < math.log(config.near) else times


def _by_size(lengths: Lengths, config: ScaleConfig) -> Misfit | None:
    """Those of other sizes beyond doubt: roots of areas and radii, since a long thin body has little surface."""
    sizes = torch.stack([lengths.sizes, lengths.radii])
    order = lengths.radii.argsort(descending=True, stable=True)
    ordered = sizes[:, order]
    gaps = (ordered.cummin(1).values[:, :-1] / ordered.flip(1).cummax(1).values.flip(1)[:, 1:]).amin(0)
    large = int(gaps.argmax()) + 1
    if gaps[large - 1] < config.reported:
        return None
    factor = (_times(lengths.sizes, order, large) * _times(lengths.radii, order, large)) ** 0.5
    return _fewer(order, large, factor, config.unplaced)


def _times(lengths: Float64[Tensor, "n"], order: Int64[Tensor, "n"], large: int) -> float:
    """How many times as large the first in an order are as the others."""
    return float(lengths[order[:large]].median() / lengths[order[large:]].median())


def _fewer(order: Int64[Tensor, "n"], large: int, factor: float, least: float) -> Misfit:
    """The smaller of two groups; it is unplaced if the factor between them is at least this."""
    unplaced = factor >= least
    if large < len(order) - large:
        return Misfit(tuple(sorted(order[:large].tolist())), factor, unplaced)
    return Misfit(tuple(sorted(order[large:].tolist())), 1 / factor, unplaced)


def misfit_of(points: Float[Tensor, "n p 3"], meshes: Sequence[Mesh], config: ScaleConfig = SCALE) -> Misfit | None:
    """The same for fragments, given as points around their means and as meshes, all in one unit, whichever it is."""
    spread = points.double().var(1).sum(-1).tolist()
    rows = [_measured(mesh, guess, config) for mesh, guess in zip(meshes, spread, strict=True)]
    areas, thickness, grain, counts = (torch.tensor(column, dtype=torch.double) for column in zip(*rows, strict=True))
    lengths = Lengths(areas.sqrt(), points.double().norm(dim=-1).amax(1), thickness, grain, counts.long())
    return misfit(lengths, config)


def _measured(mesh: Mesh, spread: float, config: ScaleConfig) -> tuple[float, float, float, int]:
    """Area or a guess at it, thickness, grain and count of one fragment."""
    area = surface_area(mesh.vertices, mesh.faces)
    if area > 0:
        return area, wall_thickness(mesh, area, config), (area / len(mesh.faces)) ** 0.5, len(mesh.faces)
    corners = mesh.vertices.double()
    cloud = (corners - corners.mean(0)).numpy()
    near = cKDTree(cloud).query(cloud[:: max(1, len(cloud) // config.probes)], min(7, len(cloud)))[0]
    return spread, float("nan"), float(torch.from_numpy(near).reshape(len(near), -1)[:, -1].median()), len(cloud)


def wall_thickness(mesh: Mesh, area: float, config: ScaleConfig = SCALE) -> float:
    """How deep the other side typically lies below the surface; NaN where it has none, as a scan of one side."""
    generator = torch.Generator().manual_seed(0)
    points, normals = sample_surface(mesh.vertices.double(), mesh.faces, config.drawn, generator)
    way = points[None] - points[: config.probes, None]
    depth = -(way * normals[: config.probes, None]).sum(-1)
    aside = (way.square().sum(-1) - depth.square()).clamp(min=0).sqrt()
    opposite = (normals[: config.probes] @ normals.T < config.facing) & (depth > 0)
    opposite &= aside < torch.clamp(config.aside * depth, min=config.gaps * (area / config.drawn) ** 0.5)
    nearest = depth.where(opposite, torch.inf).amin(1)
    known = nearest[nearest.isfinite()]
    return float(known.median()) if len(known) > config.probes / 4 else float("nan")


# Copies


def are_copies(first: Mesh, second: Mesh, config: CopiesConfig = COPIES) -> bool:
    """Whether two fragments are one and the same.

    Equal parts of a regular object, sawn apart, are equal as well. So nothing is claimed where a fragment is its own
    mirror image, or where a saw may have cut it and the other lies elsewhere.
    """
    exactly = torch.equal(first.vertices, second.vertices)
    return (
        congruent(first, second, config) and not is_regular(first, config) and (exactly or not has_plane(first, config))
    )


def congruent(first: Mesh, second: Mesh, config: CopiesConfig = COPIES) -> bool:
    """Whether a turn and a shift bring all corners, and with them all triangles, onto those of the other."""
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
    order = np.empty(len(far), np.int64)
    order[np.argsort(far, kind="stable")] = np.argsort(other, kind="stable")
    tree = cKDTree(there)
    for partner in (np.arange(len(here)), order):
        for _ in range(config.rounds):
            distance, nearest = tree.query(here @ _turn(here, there[partner]).T)
            if distance.max() <= limit:
                return len(np.unique(nearest)) == len(nearest) and _same_triangles(first, second, nearest)
            partner = nearest
    return False


def _turn(here: Float64[np.ndarray, "v 3"], there: Float64[np.ndarray, "v 3"]) -> Float64[np.ndarray, "3 3"]:
    """The rotation that brings centred points onto others best."""
    left, _, right = np.linalg.svd(there.T @ here)
    mirror = np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    return left @ mirror @ right


def _same_triangles(first: Mesh, second: Mesh, partner: Int64[np.ndarray, "v"]) -> bool:
    own, other = (np.sort(faces, 1) for faces in (partner[first.faces.numpy()], second.faces.numpy()))
    return np.array_equal(own[np.lexsort(own.T)], other[np.lexsort(other.T)])


def is_regular(mesh: Mesh, config: CopiesConfig = COPIES) -> bool:
    """Whether a fragment looks the same mirrored along, or turned about, some of its axes, or has no axes of its own.

    Breaks never do; what is sawn out of a vessel or a block does.
    """
    points, generator = mesh.vertices.double(), torch.Generator().manual_seed(0)
    if len(mesh.faces):
        corners = points[mesh.faces]
        area = triangle_normals(points, mesh.faces).norm(dim=-1) / 2
        middle = (area[:, None] * corners.mean(1)).sum(0) / area.sum()
        corners, area = corners - middle, area[:, None, None]
        whole = corners.sum(1)[:, :, None]
        spread = (area * (corners.mT @ corners + whole @ whole.mT)).sum(0) / (12 * area.sum())
        dense = sample_surface(points, mesh.faces, config.dense, generator)[0] - middle
        spacing = float((area.sum() / config.dense).sqrt())
    else:
        dense = points - points.mean(0)
        spread = dense.T @ dense / len(dense)
        spacing = float(np.median(cKDTree(dense.numpy()).query(dense.numpy(), 2)[0][:, 1]))
    widths, axes = torch.linalg.eigh(spread)
    if bool((widths[1:].sqrt() - widths[:-1].sqrt() < config.round * widths[-1].sqrt()).any()):
        return True
    own = dense @ axes
    tree, step = cKDTree(own.numpy()), max(1, len(own) // config.probes)
    for number in range(1, 8):
        signs = np.array([-1.0 if number >> axis & 1 else 1.0 for axis in range(3)])
        distance = tree.query(own[::step].numpy() * signs)[0]
        if (distance > config.near * spacing).mean() < config.except_for:
            return True
    return False


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
