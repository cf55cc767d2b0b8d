"""Small pieces are found a place by what surrounds them: they are tried in every gap of an assembly.

A gap is surface beside and within the seams that no other member covers (`find_gaps`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64

from diffassemble.fragments.clusters import BodySurface, Cluster, FractureSide, Fragment
from diffassemble.fragments.contact import Pose, count_buried, inverse, meet, moved, refine, transformed
from diffassemble.fragments.descriptors import FractureSurface
from diffassemble.fragments.matches import Match
from diffassemble.fragments.pair_search import distinct
from diffassemble.fragments.proposals import propose_everywhere
from diffassemble.fragments.spatial import bucket, kernel, sort_points, thin, voxelise, within_box
from diffassemble.fragments.surface import Sample, sample, sample_near, smoothed_normals

# In spacings of the sample: how near a covering surface must be, and how far from its plane.
_COVER, _PLANE = 1.3, 0.3
_FACING = -0.5
# Mean height of the surroundings, in radii, above which a place counts as a pit.
_PIT = 0.03
# A piece is sampled with so many points, but no finer than a part of the spacing of level 0, and than lets all places
# have about so many points.
_POINTS, _FINEST, _MOST = 500, 16, 200_000
_KEPT = 4
# Log odds that an insertion is true: at nothing, for the share that touches, for twice the share within, for the lead
# over the best rival elsewhere, which counts up to a limit; somewhere anything touches so much. Set by hand on a few
# training objects. Gaps may be alike, so none is surer than the ceiling.
_WEIGHTS, _LARGEST_LEAD, _LEAST_RIVAL = (-6.0, 7.0, -5.0, 18.0), 0.3, 0.35
_CEILING = 0.88
_KEYS, _TRIED, _PLACES, _TURNS = 5, 60, 2000, 20
# How much finer the sample is on which a piece settles at last.
_FINER = 2.5
INSERTED = -1
"""The level of matches that were found this way: they have no level of their own."""


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
        here, facing = moved(cluster.poses[piece], near.points, near.normals)
        points.append(here)
        normals.append(facing)
        owner.append(np.full(len(near), piece, np.int64))
    every, facing, whose = (np.concatenate(parts) for parts in (points, normals, owner))
    apart = _distance_to_cover(every, facing, whose, np.float32(_COVER * spacing))
    return Gaps(every, facing, whose, apart > _PLANE * spacing, spacing)


@kernel
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


@kernel
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


def insert_into_gaps(piece: Fragment, whole: Cluster, gaps: Gaps, seed: int) -> list[Match]:
    """The best places of a piece in the gaps of an assembly, the best first."""
    extent = float(np.linalg.norm(np.ptp(piece.mesh.vertices.numpy(), axis=0)))
    inviting = gaps.inviting(0.35 * extent)
    finest = max(piece.spacing / _FINEST, gaps.spacing * float(np.sqrt(inviting.sum() / _MOST)))
    spacing = max(float(np.sqrt(piece.area / _POINTS)), finest)
    generator = torch.Generator().manual_seed(seed)
    own = plain_side(sample(piece.mesh, spacing, generator), spacing)
    if len(own.points) < 20 or inviting.sum() < 5:
        return []
    other = walls(whole, gaps.points[inviting], spacing, 0.5 * extent, generator)
    if other is None:
        return []
    places = places_at(other, gaps.points[inviting], spacing, gaps.spacing, generator)
    chance = np.random.Generator(np.random.PCG64(seed))
    tried = chance.permutation(len(own.points))
    poses, scores, _ = propose_everywhere(
        own.surface, own.probe, other.surface, other.voxels, other.body,
        tried[:_KEYS], tried[:_TRIED], places, float(spacing), _TURNS, 40, 0.35,
    )  # fmt: skip
    if not len(poses):
        return []
    best = distinct(poses, scores, own.points, 12.0, 3 * spacing, 40)[0]
    sharp = poses[best]
    for i, pose in enumerate(sharp):
        for first, last in ((2.6, 1.3), (1.3, 1.0)):
            pose = refine(pose, own.points, own.smooth, other.target, first * spacing, last * spacing, 6)
        sharp[i] = pose
    found = insertions(sharp, own, other, spacing, 0.5 * extent)
    return [replace(match, pose=settled_finely(match.pose, piece, whole, spacing, generator)) for match in found]


def settled_finely(pose: Pose, piece: Fragment, whole: Cluster, spacing: float, generator: torch.Generator) -> Pose:
    """The pose refined once more on a finer sample of the piece and of the walls around it: chips slide along seams."""
    fine = spacing / _FINER
    own = plain_side(sample(piece.mesh, fine, generator), fine)
    near = np.ascontiguousarray(transformed(pose, own.points[::4]))
    other = walls(whole, near, fine, 2 * spacing, generator)
    if other is None:
        return pose
    for first, last in ((1.5 * _FINER, 2.0), (2.0, 1.0)):
        pose = refine(pose, own.points, own.smooth, other.target, first * fine, last * fine, 10)
    return pose


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
    other: FractureSide, near: np.ndarray, spacing: float, reach: float, generator: torch.Generator
) -> np.ndarray:
    """Numbers of some points of the walls next to given points, spread evenly."""
    from scipy.spatial import cKDTree

    close = np.flatnonzero(cKDTree(near).query(other.points, 1, distance_upper_bound=0.8 * reach)[0] < np.inf)
    order = close[torch.randperm(len(close), generator=generator).numpy()]
    for gap in (1.6, 2.2, 3.0, 4.0):
        chosen = order[thin(np.ascontiguousarray(other.points[order]), gap * spacing)]
        if len(chosen) <= _PLACES:
            break
    return chosen[:_PLACES]


def touching(pose: Pose, own: FractureSide, other: FractureSide, spacing: float) -> tuple[float, np.ndarray]:
    """Share of the piece's surface that lies on walls, less what lies within them, and which points it is."""
    near, numbers = meet(pose, own.points, own.smooth, *other.target)
    tight = (near >= 0) & (numbers[:, 0] < 1.5 * spacing) & (np.abs(numbers[:, 1]) < 0.45 * spacing)
    tight &= numbers[:, 2] < -0.7
    inside = count_buried(pose, own.probe, 1, other.voxels, other.points, other.smooth, 0.7 * spacing) / len(own.probe)
    return float(tight.mean()) - 2 * inside, tight


def insertions(
    poses: Float64[np.ndarray, "c 12"], own: FractureSide, other: FractureSide, spacing: float, elsewhere: float
) -> list[Match]:
    """The best poses that are not alike, as matches; `elsewhere` is how far off rivals for another place stand."""
    found = [touching(pose, own, other, spacing) for pose in poses]
    worth = np.array([value for value, _ in found])
    middle = own.points.mean(0)
    places = poses[:, :9].reshape(-1, 3, 3) @ middle + poses[:, 9:]
    matches = []
    for i in distinct(poses, worth, own.points, 8.0, 2 * spacing, _KEPT)[0]:
        rivals = worth[np.linalg.norm(places - places[i], axis=1) > elsewhere]
        lead = worth[i] - max(_LEAST_RIVAL, rivals.max() if len(rivals) else 0.0)
        numbers = np.array([found[i][1].mean(), found[i][1].mean() - worth[i], lead], np.float32)
        matches.append(Match(poses[i], insertion_probability(numbers), INSERTED, 1, numbers))
    return sorted(matches, key=lambda match: -match.probability)


def insertion_probability(numbers: Float32[np.ndarray, "v"]) -> float:
    """Probability of an insertion by the share that touches, that within others, and the lead over rivals."""
    tight, buried, lead = (float(value) for value in numbers)
    odds = _WEIGHTS[0] + _WEIGHTS[1] * tight + _WEIGHTS[2] * buried + _WEIGHTS[3] * min(lead, _LARGEST_LEAD)
    return float(_CEILING / (1 + np.exp(-odds)))
