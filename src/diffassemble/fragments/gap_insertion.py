"""Small pieces are placed by what surrounds them: they are tried at every turn in every gap of an assembly.

A gap is surface beside and within the seams that no other member covers (`find_gaps`). Chips have too little break to
be matched by its shape, but fill a gap on several sides at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64
from scipy.spatial import cKDTree

from diffassemble.fragments.clusters import BodySurface, Cluster, FractureSide, Fragment
from diffassemble.fragments.contact import (
    IDENTITY,
    PROPOSED,
    Points,
    Pose,
    PoseRows,
    Touch,
    compose,
    inverse,
    moved,
    rotations,
    transformed,
)
from diffassemble.fragments.descriptors import FractureSurface
from diffassemble.fragments.pair_search import Numbers, Scores, Sides, bringing, distinct, frames
from diffassemble.fragments.spatial import bucket, kernel, sort_points, thin, voxelise
from diffassemble.fragments.surface import Sample, sample, smoothed_normals
from diffassemble.fragments.verification import INSERTED, Match

COVERED, AGAINST_WALLS = Touch(1.3, 0.3, -0.5), Touch(1.5, 0.45, -0.7)


@dataclass(frozen=True)
class GapInsertionConfig:
    """How small pieces are tried in the gaps of an assembly. Lengths in spacings of the piece's sample, if not stated.

    Log odds of an insertion = bias + touching · t + buried · b + lead · min(l, largest_lead), with t the share of the
    piece that touches, b twice the share within walls, l the lead of t − b over the best rival place; set by hand on a
    few training objects.
    """

    gap: float = 1 / 3
    """spacing at which gaps are sampled, in spacings of level 0"""
    passes: int = 3
    """times that pieces are tried: again, where another piece filled the gap"""
    cover: Touch = COVERED
    """when a point beside a break is covered by another member, in spacings of the gaps"""
    neighbours: int = 16
    """points that are examined for that"""
    pit: float = 0.03
    """mean height of the surroundings, in radii, above which a place counts as a pit"""
    radius: float = 0.35
    """radius of these surroundings, as a share of the piece's extent"""
    points: int = 500
    """points that a piece is sampled with"""
    finest: float = 16.0
    """but no finer than by this factor, from level 0"""
    most: int = 200_000
    """and no finer than makes the surface of all gaps about so many points"""
    fewest: int = 20
    """pieces with fewer points than this, and gaps with fewer than a quarter of it, are not tried"""
    keys: int = 5
    """points of the piece that are put on places"""
    first: int = 10
    """points of the piece that are compared at each pose"""
    trial: int = 60
    """the same where enough of the first ones touch"""
    places: int = 2000
    turns: int = 20
    """turns about the normal at each place"""
    spread: tuple[float, ...] = (1.6, 2.2, 3.0, 4.0)
    """distances of places, the first that gives few enough of them"""
    near: float = 0.8
    """places are within so many spacings of the gaps' sample of a point of a gap"""
    share: float = 0.35
    """least share of the trial that must touch"""
    cost: float = 3.0
    """touching points that every third buried probe costs"""
    deep_trial: float = 1.5
    """depth below a wall from which on a probe is buried"""
    proposals: int = 40
    alike: tuple[float, float] = (12.0, 3.0)
    """proposals that differ by fewer degrees and spacings are one"""
    kept_alike: tuple[float, float] = (8.0, 2.0)
    """the same for the answers"""
    kept: int = 4
    settling: tuple[tuple[float, float, int], ...] = ((2.6, 1.3, 6), (1.3, 1.0, 6))
    """first and last radius of each refinement, and its rounds"""
    touch: Touch = AGAINST_WALLS
    """when a point of the inserted piece touches a wall"""
    deep: float = 0.7
    """depth below a wall from which on a point is within"""
    penalty: float = 2.0
    """weight of the share within against the share that touches"""
    elsewhere: float = 0.5
    """rivals are this share of the piece's extent away, or more"""
    bias: float = -6.0
    touching: float = 7.0
    buried: float = -5.0
    lead: float = 18.0
    largest_lead: float = 0.3
    least_rival: float = 0.35
    """somewhere any piece touches this much"""
    ceiling: float = 0.88
    """greatest probability of an insertion: gaps may be alike"""


GAP_INSERTION = GapInsertionConfig()


@dataclass(frozen=True)
class Gaps:
    """Points beside the breaks of a cluster in its frame, which member each belongs to, and which no other covers."""

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    owner: Int64[np.ndarray, "p"]
    bare: Bool[np.ndarray, "p"]
    spacing: float

    def inviting(self, radius: float, config: GapInsertionConfig = GAP_INSERTION) -> Bool[np.ndarray, "p"]:
        """Bare points where something of the radius may be missing: in a pit, or before the wall of another member."""
        bare = tuple(np.ascontiguousarray(column[self.bare]) for column in (self.points, self.normals, self.owner))
        reach = np.float32(max(radius, 2 * self.spacing))
        pit, faced = _surroundings(*bare, reach, config.cover.facing)
        chosen = self.bare.copy()
        chosen[self.bare] = (pit > config.pit) | faced
        return chosen


def find_gaps(cluster: Cluster, config: GapInsertionConfig = GAP_INSERTION) -> Gaps:
    """Sample the surroundings of all breaks, and find what is covered tightly."""
    spacing = config.gap * cluster.fragments[0].spacing
    near = {piece: cluster.fragments[piece].near_break(spacing) for piece in cluster.members}
    parts = [moved(cluster.poses[piece], part.points, part.normals) for piece, part in near.items()]
    points, normals = (np.ascontiguousarray(np.concatenate(column)) for column in zip(*parts, strict=True))
    owner = np.repeat(list(near), [len(part) for part in near.values()])
    bare = np.ones(len(points), bool)
    if len(points) >= config.neighbours:
        reach = config.cover.reach * spacing
        far, at = cKDTree(points).query(points, config.neighbours, distance_upper_bound=reach)
        at = np.where(np.isfinite(far), at, 0)
        facing = np.isfinite(far) & (owner[at] != owner[:, None])
        facing &= np.einsum("pkd,pd->pk", normals[at], normals) < config.cover.facing
        nearest = at[np.arange(len(points)), facing.argmax(1)]
        height = np.abs(((points - points[nearest]) * normals[nearest]).sum(1))
        bare = ~facing.any(1) | (height > config.cover.plane * spacing)
    return Gaps(points, normals, owner, bare, spacing)


@kernel
def _surroundings(points, normals, owner, radius, facing):
    """Mean height of each point's surroundings above its plane, in radii, and whether another member is before it.

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
    """The most probable places of a piece in the gaps of an assembly, the most probable first."""
    # 1. Samples of the piece and of the walls around the gaps, at the piece's own scale.
    extent = float(np.linalg.norm(np.ptp(piece.mesh.vertices.numpy(), axis=0)))
    inviting = gaps.points[gaps.inviting(config.radius * extent, config)]
    finest = max(piece.spacing / config.finest, gaps.spacing * float(np.sqrt(len(inviting) / config.most)))
    spacing = max(float(np.sqrt(piece.area / config.points)), finest)
    generator, chance = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    own = plain_side(sample(piece.mesh, spacing, generator), spacing)
    if len(own.points) < config.fewest or len(inviting) < config.fewest / 4:
        return []
    other = walls(whole, inviting, spacing, config.elsewhere * extent, generator)
    if other is None:
        return []
    # 2. Every turn at every place; of what touches, the best poses refined.
    sides = Sides(own, other, spacing)
    places = _places(other, inviting, spacing, config.near * gaps.spacing, chance, config)
    poses, scores = _tried(sides, places, chance, config)
    best = distinct(poses, scores, own.points, *config.alike, spacing, config.proposals)[0]
    if not len(best):
        return []
    rows, sharp = np.arange(len(own.points))[None], poses[best]
    for radii in config.settling:
        sharp = sides.refined(sharp, radii, rows)
    # 3. Their probabilities.
    return insertions(sharp, sides, config.elsewhere * extent, config)


def plain_side(surface: Sample, spacing: float) -> FractureSide:
    """All of a surface as if it were fracture surface, without descriptors or rims."""
    smooth = smoothed_normals(surface.points, surface.normals, 2.0 * spacing)
    count = len(surface)
    empty, far = np.zeros((count, 3), np.float32), np.full(count, 6.0, np.float32)
    plain = FractureSurface(surface.points, surface.normals, smooth, far, *(empty,) * 4, np.full_like(empty, np.nan))
    voxels = voxelise(surface.points, spacing, closed=False)
    body = BodySurface(surface.points, smooth, float(spacing), voxels, np.ones(count, bool))
    return FractureSide(plain, voxels, body, np.ascontiguousarray(surface.points[:: max(1, count // 160)]))


def walls(
    whole: Cluster, near: Points, spacing: float, radius: float, generator: torch.Generator
) -> FractureSide | None:
    """The surface of an assembly within the radius of given points, sampled finely; none where there is no surface."""
    parts = []
    for piece in whole.members:
        local = np.ascontiguousarray(transformed(inverse(whole.poses[piece]), near))
        found = sample(whole.fragments[piece].mesh, spacing, generator, local, radius)
        parts.append(moved(whole.poses[piece], found.points, found.normals))
    points, normals = (np.ascontiguousarray(np.concatenate(column)) for column in zip(*parts, strict=True))
    return plain_side(Sample(points, normals, spacing**2), spacing) if len(points) else None


def _places(
    other: FractureSide,
    near: Points,
    spacing: float,
    reach: float,
    chance: np.random.Generator,
    config: GapInsertionConfig,
) -> Numbers:
    """Numbers of some points of the walls within reach of given points, spread evenly."""
    far = cKDTree(near).query(other.points, distance_upper_bound=reach)[0]
    order = chance.permutation(np.flatnonzero(np.isfinite(far)))
    for gap in config.spread:
        chosen = order[thin(np.ascontiguousarray(other.points[order]), gap * spacing)]
        if len(chosen) <= config.places:
            break
    return chosen[: config.places]


def _tried(
    sides: Sides, places: Numbers, chance: np.random.Generator, config: GapInsertionConfig
) -> tuple[PoseRows, Scores]:
    """Poses with a key of the piece on a place, at all turns, at which enough touches, and their scores.

    The score is the number of touching points of the trial less the cost of buried probes.
    """
    own, other, found, scores = sides.own, sides.other, [], []
    tried = chance.permutation(len(own.points))[None]
    there = np.repeat(places, config.turns)
    spin = np.tile(np.exp(2j * np.pi * np.arange(config.turns) / config.turns), len(places))
    onto = frames(-other.smooth[there])
    for key in tried[0, : config.keys]:
        here = np.full(len(there), key)
        poses = bringing(frames(own.smooth[here]), onto, spin, own.points[here], other.points[there])
        for count in (config.first, config.trial):
            touching = sides.contact(poses, tried[:, :count]).touching(PROPOSED)
            kept = touching.mean(1) >= config.share
            poses, touching = poses[kept], touching[kept]
        found.append(poses)
        buried = sides.buried(poses, config.deep_trial, 3) * len(own.probe[::3])
        scores.append(touching.sum(1) - config.cost * buried)
    return np.concatenate(found), np.concatenate(scores)


def insertions(
    poses: PoseRows, sides: Sides, elsewhere: float, config: GapInsertionConfig = GAP_INSERTION
) -> list[Match]:
    """The best poses that are not alike, as matches; rivals for another place are at least `elsewhere` away.

    Features of such a match: the share of the piece that touches, twice the share within walls, the lead over rivals.
    """
    own, spacing = sides.own.points, sides.spacing
    tight = sides.contact(poses).touching(config.touch).mean(1)
    within = config.penalty * sides.buried(poses, config.deep)
    worth, places = tight - within, rotations(poses) @ own.mean(0) + poses[:, 9:]
    matches = []
    for i in distinct(poses, worth, own, *config.kept_alike, spacing, config.kept)[0]:
        rivals = worth[np.linalg.norm(places - places[i], axis=1) > elsewhere]
        lead = worth[i] - rivals.max(initial=config.least_rival)
        odds = config.bias + config.touching * tight[i] + config.buried * within[i]
        odds += config.lead * min(lead, config.largest_lead)
        numbers = np.array([tight[i], within[i], lead], np.float32)
        matches.append(Match(poses[i], float(config.ceiling / (1 + np.exp(-odds))), INSERTED, 1, numbers))
    return sorted(matches, key=lambda match: -match.probability)


def crowded(piece: Cluster, whole: Cluster, pose: Pose, limit: float, apart: float) -> bool:
    """Whether a piece would take the place of a member of less than an area: their centres are nearer than `apart` of
    both extents."""
    middle, width = _extent(piece, piece.members[0], pose)
    others = [_extent(whole, other, IDENTITY) for other in whole.members if whole.fragments[other].area < limit]
    return any(np.linalg.norm(middle - other) < apart * (width + wide) for other, wide in others)


def _extent(cluster: Cluster, piece: int, pose: Pose) -> tuple[Float64[np.ndarray, "3"], float]:
    """The centre of a member of a cluster at a pose, and the diagonal of its box."""
    corners = cluster.fragments[piece].mesh.vertices.numpy()
    placed = compose(pose, cluster.poses[piece])
    middle = rotations(placed) @ ((corners.min(0) + corners.max(0)) / 2) + placed[9:]
    return middle, float(np.linalg.norm(np.ptp(corners, axis=0)))
