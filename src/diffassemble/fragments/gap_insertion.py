"""Small pieces are found a place by what surrounds them: they are tried in every gap of an assembly.

A gap is surface beside and within the seams that no other member covers (`find_gaps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64
from scipy.spatial import cKDTree

from diffassemble.fragments.clusters import BodySurface, Cluster, FractureSide, Fragment
from diffassemble.fragments.contact import Contact, Pose, Touch, count_buried, inverse, moved, refine, transformed
from diffassemble.fragments.descriptors import FractureSurface
from diffassemble.fragments.pair_search import distinct
from diffassemble.fragments.proposals import PROPOSAL, ProposalLimits, propose_everywhere
from diffassemble.fragments.spatial import bucket, kernel, sort_points, thin, voxelise, within_box
from diffassemble.fragments.surface import Sample, sample, sample_near, smoothed_normals
from diffassemble.fragments.verification import Match

INSERTED = -1
"""the level of matches that were found this way: they have no level of their own"""
COVERED, AGAINST_WALLS = Touch(1.3, 0.3, -0.5), Touch(1.5, 0.45, -0.7)


@dataclass(frozen=True)
class GapInsertionConfig:
    """How small pieces are tried in the gaps of an assembly. Lengths in spacings of the sample, if nothing is said.

    Log odds of an insertion = bias + touching · t + buried · b + lead · min(l, largest_lead), with t the share of the
    piece that touches, b twice the share within walls, l the lead of t − b over the best rival place; set by hand on a
    few training objects.
    """

    small: float = 0.006
    """pieces of at most this share of the whole surface are inserted, divided by `oversampling` for very many pieces"""
    gap: float = 1 / 3
    """spacing at which gaps are sampled, in spacings of level 0"""
    passes: int = 3
    """times that pieces are tried: again, where another piece took the gap"""
    crowded: float = 0.3
    """centres of two inserted pieces are at least this share of both extents apart"""
    cover: Touch = COVERED
    """when a point beside a break is covered by another member"""
    pit: float = 0.03
    """mean height of the surroundings, in radii, above which a place counts as a pit"""
    radius: float = 0.35
    """radius of these surroundings, as a share of the piece's extent"""
    points: int = 500
    """points that a piece is sampled with"""
    finest: float = 16.0
    """but no finer than by this factor, from level 0"""
    most: int = 200_000
    """and than lets all places have about so many points"""
    fewest: int = 20
    """pieces with fewer points than this, and gaps with fewer than a quarter of it, are not tried"""
    keys: int = 5
    """points of the piece that are put on places"""
    trial: int = 60
    """points of the piece that are looked up at each pose"""
    places: int = 2000
    turns: int = 20
    """turns about the normal at each place"""
    spread: tuple[float, ...] = (1.6, 2.2, 3.0, 4.0)
    """distances of places, the first that gives few enough of them"""
    near: float = 0.8
    """places lie within so many spacings of the gap's sample of a point of the gap"""
    share: float = 0.35
    """least share of the trial that must touch"""
    cost: float = 3.0
    """touching points that every third buried probe costs"""
    proposals: int = 40
    alike: tuple[float, float] = (12.0, 3.0)
    """proposals that differ by fewer degrees and spacings are one"""
    kept_alike: tuple[float, float] = (8.0, 2.0)
    """the same for the answers"""
    kept: int = 4
    finer: float = 2.5
    """factor by which the sample is finer on which a piece settles last"""
    touch: Touch = AGAINST_WALLS
    """when a point of the inserted piece touches a wall"""
    deep: float = 0.7
    """depth below a wall from which on a point is within"""
    penalty: float = 2.0
    """weight of the share within against the share that touches"""
    elsewhere: float = 0.5
    """rivals stand this share of the piece's extent away, or more"""
    bias: float = -6.0
    touching: float = 7.0
    buried: float = -5.0
    lead: float = 18.0
    largest_lead: float = 0.3
    least_rival: float = 0.35
    """somewhere any piece touches this much"""
    ceiling: float = 0.88
    """greatest probability of an insertion: gaps may be alike"""
    limits: ProposalLimits = PROPOSAL


GAP_INSERTION = GapInsertionConfig()


@dataclass(frozen=True)
class Gaps:
    """Points beside the breaks of a cluster in its frame, which member each belongs to, and which nobody covers."""

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    owner: Int64[np.ndarray, "p"]
    bare: Bool[np.ndarray, "p"]
    spacing: float

    def inviting(self, radius: float, config: GapInsertionConfig) -> Bool[np.ndarray, "p"]:
        """Bare points where something of the radius may be missing: in a pit, or before the wall of another member."""
        points, normals, owner = self.points[self.bare], self.normals[self.bare], self.owner[self.bare]
        reach = np.float32(max(radius, 2 * self.spacing))
        pit, faced = _surroundings(points, normals, owner, reach, config.cover.facing)
        chosen = self.bare.copy()
        chosen[self.bare] = (pit > config.pit) | faced
        return chosen


def find_gaps(cluster: Cluster, spacing: float, config: GapInsertionConfig = GAP_INSERTION) -> Gaps:
    """Sample the surroundings of all breaks at a spacing, and see what is covered tightly."""
    points, normals, owner = [], [], []
    for piece in cluster.members:
        near = cluster.fragments[piece].near_break(spacing)
        here, facing = moved(cluster.poses[piece], near.points, near.normals)
        points.append(here)
        normals.append(facing)
        owner.append(np.full(len(near), piece, np.int64))
    every, facing, whose = (np.concatenate(parts) for parts in (points, normals, owner))
    apart = _distance_to_cover(every, facing, whose, np.float32(config.cover.reach * spacing), config.cover.facing)
    return Gaps(every, facing, whose, apart > config.cover.plane * spacing, spacing)


@kernel
def _distance_to_cover(points, normals, owner, reach, facing):
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
                        if a * normals[q, 0] + b2 * normals[q, 1] + c * normals[q, 2] < facing:
                            best = far
                            result[q] = abs(u * a + v * b2 + w * c)
    return result


@kernel
def _surroundings(points, normals, owner, radius, facing):
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
                        if like > facing:
                            total += height
                            count += 1
                        elif owner[j] != owner[q] and height > 0 and 2 * height * height > far:
                            faced[q] = True
        pit[q] = total / max(1, count) / radius
    return pit, faced


def insert_into_gaps(
    piece: Fragment, whole: Cluster, gaps: Gaps, seed: int, config: GapInsertionConfig = GAP_INSERTION
) -> list[Match]:
    """The most probable places of a piece in the gaps of an assembly."""
    extent = float(np.linalg.norm(np.ptp(piece.mesh.vertices.numpy(), axis=0)))
    inviting = gaps.inviting(config.radius * extent, config)
    finest = max(piece.spacing / config.finest, gaps.spacing * float(np.sqrt(inviting.sum() / config.most)))
    spacing = max(float(np.sqrt(piece.area / config.points)), finest)
    generator = torch.Generator().manual_seed(seed)
    own = plain_side(sample(piece.mesh, spacing, generator), spacing)
    if len(own.points) < config.fewest or inviting.sum() < config.fewest / 4:
        return []
    other = walls(whole, gaps.points[inviting], spacing, config.elsewhere * extent, generator)
    if other is None:
        return []
    places = places_at(other, gaps.points[inviting], spacing, gaps.spacing, generator, config)
    tried = np.random.Generator(np.random.PCG64(seed)).permutation(len(own.points))
    poses, scores, _ = propose_everywhere(
        own.surface, own.probe, other.surface, other.voxels, other.body,
        tried[: config.keys], tried[: config.trial], places, float(spacing), config.turns, config.proposals,
        config.share, config.cost, config.limits,
    )  # fmt: skip
    if not len(poses):
        return []
    best = distinct(poses, scores, own.points, *config.alike, spacing, config.proposals)[0]
    sharp = np.stack([_settled(pose, own, other, spacing, ((2.6, 1.3), (1.3, 1.0)), 6) for pose in poses[best]])
    found = insertions(sharp, own, other, spacing, config.elsewhere * extent, config)
    fine = spacing / config.finer
    return [replace(match, pose=settled_finely(match.pose, piece, whole, fine, generator, config)) for match in found]


def _settled(
    pose: Pose,
    own: FractureSide,
    other: FractureSide,
    spacing: float,
    radii: Sequence[tuple[float, float]],
    rounds: int,
) -> Pose:
    """The pose after ICP within radii that fall step by step, in spacings."""
    for first, last in radii:
        pose = refine(pose, own.points, own.smooth, other.target, first * spacing, last * spacing, rounds)
    return pose


def settled_finely(
    pose: Pose, piece: Fragment, whole: Cluster, fine: float, generator: torch.Generator, config: GapInsertionConfig
) -> Pose:
    """The pose refined once more on a finer sample of the piece and of the walls around it: chips slide along seams."""
    own = plain_side(sample(piece.mesh, fine, generator), fine)
    near = np.ascontiguousarray(transformed(pose, own.points[::4]))
    other = walls(whole, near, fine, 2 * config.finer * fine, generator)
    return pose if other is None else _settled(pose, own, other, fine, ((1.5 * config.finer, 2.0), (2.0, 1.0)), 10)


def plain_side(surface: Sample, spacing: float) -> FractureSide:
    """All of a surface as if it were fracture surface, without descriptors or rims."""
    smooth = smoothed_normals(surface.points, surface.normals, 2.0 * spacing)
    count = len(surface)
    empty, far = np.zeros((count, 3), np.float32), np.full(count, 6.0, np.float32)
    plain = FractureSurface(surface.points, surface.normals, smooth, far, *(empty,) * 4, np.full_like(empty, np.nan))
    voxels = voxelise(surface.points, spacing, closed=False)
    body = BodySurface(surface.points, smooth, float(spacing), voxels, np.ones(len(surface.points), bool))
    return FractureSide(plain, voxels, body, np.ascontiguousarray(surface.points[:: max(1, count // 160)]))


def walls(
    whole: Cluster, near: Float32[np.ndarray, "k 3"], spacing: float, radius: float, generator: torch.Generator
) -> FractureSide | None:
    """The surface of an assembly within the radius of given points, sampled finely."""
    parts = []
    for piece in whole.members:
        mesh, local = whole.fragments[piece].mesh, transformed(inverse(whole.poses[piece]), near)
        local = np.ascontiguousarray(local[within_box(local, mesh.vertices.numpy(), radius)])
        found = sample_near(mesh, spacing, local, radius, generator)
        parts.append(moved(whole.poses[piece], found.points, found.normals))
    points = np.ascontiguousarray(np.concatenate([part[0] for part in parts]))
    normals = np.ascontiguousarray(np.concatenate([part[1] for part in parts]))
    return plain_side(Sample(points, normals, spacing**2), spacing) if len(points) else None


def places_at(
    other: FractureSide,
    near: np.ndarray,
    spacing: float,
    reach: float,
    generator: torch.Generator,
    config: GapInsertionConfig,
) -> np.ndarray:
    """Numbers of some points of the walls next to given points, spread evenly."""
    close = np.flatnonzero(cKDTree(near).query(other.points, 1, distance_upper_bound=config.near * reach)[0] < np.inf)
    order = close[torch.randperm(len(close), generator=generator).numpy()]
    for gap in config.spread:
        chosen = order[thin(np.ascontiguousarray(other.points[order]), gap * spacing)]
        if len(chosen) <= config.places:
            break
    return chosen[: config.places]


def touching(
    pose: Pose, own: FractureSide, other: FractureSide, spacing: float, config: GapInsertionConfig
) -> tuple[float, np.ndarray]:
    """Share of the piece's surface that lies on walls, less what lies within them, and which points it is."""
    tight = Contact.of(pose, own.points, own.smooth, other.target, spacing).touching(config.touch)
    depth = config.deep * spacing
    inside = count_buried(pose, own.probe, 1, other.voxels, other.points, other.smooth, depth) / len(own.probe)
    return float(tight.mean()) - config.penalty * inside, tight


def insertions(
    poses: Float64[np.ndarray, "c 12"],
    own: FractureSide,
    other: FractureSide,
    spacing: float,
    elsewhere: float,
    config: GapInsertionConfig,
) -> list[Match]:
    """The best poses that are not alike, as matches; rivals for another place are at least `elsewhere` away."""
    found = [touching(pose, own, other, spacing, config) for pose in poses]
    worth = np.array([value for value, _ in found])
    places = poses[:, :9].reshape(-1, 3, 3) @ own.points.mean(0) + poses[:, 9:]
    matches = []
    for i in distinct(poses, worth, own.points, *config.kept_alike, spacing, config.kept)[0]:
        rivals = worth[np.linalg.norm(places - places[i], axis=1) > elsewhere]
        lead = worth[i] - max(config.least_rival, rivals.max() if len(rivals) else 0.0)
        numbers = np.array([found[i][1].mean(), found[i][1].mean() - worth[i], lead], np.float32)
        matches.append(Match(poses[i], insertion_probability(numbers, config), INSERTED, 1, numbers))
    return sorted(matches, key=lambda match: -match.probability)


def insertion_probability(numbers: Float32[np.ndarray, "v"], config: GapInsertionConfig = GAP_INSERTION) -> float:
    """Probability of an insertion by the share that touches, that within others, and the lead over rivals."""
    tight, buried, lead = (float(value) for value in numbers)
    odds = config.bias + config.touching * tight + config.buried * buried
    odds += config.lead * min(lead, config.largest_lead)
    return float(config.ceiling / (1 + np.exp(-odds)))
