"""Poses at which two breaks may fit: very many are proposed, the best refined, and of those that are alike one kept.

A correspondence of two points at rims makes a pose, as do two correspondences anywhere: an axis of one break is brought
onto one of the other, and the turn about it follows from the normals, which oppose each other where breaks touch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Complex128, Float, Float64, Int64
from scipy.spatial import cKDTree

from diffassemble.fragments.clusters import FractureSide
from diffassemble.fragments.contact import (
    PROPOSED,
    SETTLED,
    Contact,
    Points,
    PoseRows,
    Touch,
    buried_share,
    inverse,
    packed,
    refine,
    rotations,
)

Numbers = Int64[np.ndarray, "_"]
Scores = Float64[np.ndarray, "_"]
Rows = Int64[np.ndarray, "_ _"]
Vectors = Float[np.ndarray, "_ 3"]
Frames = Float64[np.ndarray, "_ 3 3"]
Complex = Complex128[np.ndarray, "_"]


@dataclass(frozen=True)
class Effort:
    """How hard to search: points of the first break, candidates of each, pairs drawn, poses settled, refined and
    verified.

    The verification learnt from what `QUICK` finds; more of all found no more.
    """

    keys: int = 400
    candidates: int = 12
    draws: int = 30_000
    settled: int = 80
    refined: int = 20
    kept: int = 12


@dataclass(frozen=True)
class PairSearchConfig:
    """How poses are proposed and refined, whatever the effort. Lengths in spacings of the level."""

    touch: Touch = PROPOSED
    """when a point touches at a proposed pose"""
    settled: Touch = SETTLED
    """the same after refinement"""
    rim: float = 3.0
    """nearer to the rim than this, break and original surface together make a pose"""
    both_rims: float = 2.5
    """where both points are nearer than this, the original surfaces' normals must agree"""
    length: float = 1.5
    """greatest difference of the lengths of two corresponding pairs"""
    slope: float = 0.3
    """greatest sum of the cosines that the two opposed normals have with their pairs"""
    between: float = 0.35
    """greatest difference of cosines: between the two normals of each pair, and of original normals with pairs"""
    edge: float = 0.4
    """greatest sum of the two cosines between break and original surface at a rim"""
    flat: float = 0.95
    """beyond this cosine a rim determines no direction"""
    near_rim: float = 0.6
    """share of the points around a rim correspondence that must touch"""
    near_pair: float = 0.5
    """the same around two correspondences"""
    buried: float = 50.0
    """what a buried probe of all costs, in touching points"""
    deep: float = 1.5
    """depth, in spacings of the body, from which on a point is buried"""
    fewest: int = 20
    """breaks with fewer points are not searched"""
    around: int = 14
    """points around a key that must mostly touch"""
    patch: int = 64
    """points around a key whose likeness counts"""
    near: int = 350
    """points around a key by which a pose is refined at first"""
    some: int = 600
    """a pose is also judged by about a third of so many points of the whole break"""
    farthest: float = 25.0
    """greatest distance of the second key of a pair from the first"""
    shortest: tuple[float, float] = (5.0, 0.25)
    """least distance of two keys, in spacings, but no more than this share of the break's extent"""
    pool: int = 1200
    """points of the second break that are compared: few enough that true counterparts are among the best, and dense
    enough that one is near each place"""
    sharpness: float = 10.0
    """correspondences are drawn with weight exp(sharpness · likeness)"""
    alike: tuple[float, float] = (10.0, 4.0)
    """proposals that differ by fewer degrees and spacings are one"""
    refined_alike: tuple[float, float] = (4.0, 1.5)
    """the same after refinement"""
    settling: tuple[float, float, int] = (2.6, 1.3, 6)
    """first and last radius of the first refinement, and its rounds"""
    refining: tuple[float, float, int] = (1.6, 1.3, 4)
    """the same for the second one"""
    rated: int = 800
    """points by which a pose is rated, about"""
    penalty: float = 2.0
    """what a buried share of the probes costs in a rating, over the same share of the break that touches"""


GLANCE = Effort(keys=250, candidates=10, draws=10_000, settled=12, refined=6, kept=4)
QUICK = Effort()
PAIR_SEARCH = PairSearchConfig()


class Sides(NamedTuple):
    """Two sides that are compared, the first of which is moved, and the spacing of their points."""

    own: FractureSide
    other: FractureSide
    spacing: float

    @property
    def swapped(self) -> Sides:
        """The same with the second moved."""
        return Sides(self.other, self.own, self.spacing)

    def contact(self, poses: Float64[np.ndarray, "*c 12"], rows: Rows | None = None) -> Contact:
        """How points of the first break, or rows of them, meet the second."""
        return Contact.of(poses, self.own.points, self.own.smooth, self.other.target, self.spacing, rows)

    def buried(self, poses: Float64[np.ndarray, "*c 12"], depth: float = 1.0, step: int = 1) -> Scores:
        """Share of every `step`-th of the first side's probes that is inside the second body."""
        body, probe = self.other.body, np.ascontiguousarray(self.own.probe[::step])
        return buried_share(poses, probe, body.target, body.spacing, depth)

    def refined(self, poses: PoseRows, radii: tuple[float, float, int], rows: Rows) -> PoseRows:
        """Poses refined by rows of the points: first and last radius in spacings, and rounds."""
        limits, own = (radii[0] * self.spacing, radii[1] * self.spacing), self.own
        return refine(poses, own.points, own.smooth, self.other.target, limits, radii[2], rows)

    def likeness(self, poses: PoseRows, rows: Rows, touch: Touch) -> Scores:
        """Over its points that touch, the sum of how much each looks as its counterpart should (0 … 1, squared)."""
        contact = self.contact(poses, rows)
        pose, place = np.nonzero(contact.touching(touch))
        points, there = np.broadcast_to(rows, contact.near.shape)[pose, place], contact.near[pose, place]
        alike = _dot(self.own.surface.counterparts[points], self.other.surface.descriptors[there])
        return np.bincount(pose, np.maximum(alike, 0.0) ** 2, len(poses))


def search(sides: Sides, effort: Effort, seed: int, config: PairSearchConfig = PAIR_SEARCH) -> tuple[PoseRows, Numbers]:
    """The few best poses of the first side in the second's frame, best first, and how many refined ones led to each.

    The first should be the side with the smaller fracture surface.
    """
    points, spacing = sides.own.points, sides.spacing
    if min(len(points), len(sides.other.points)) < config.fewest:
        return np.zeros((0, 12)), np.zeros(0, np.int64)
    poses, scores, chosen = proposed(sides, effort, np.random.default_rng(seed), config)
    best = distinct(poses, scores, points, *config.alike, spacing, effort.settled)[0]
    if not len(best):
        return poses[best], best
    parts = nearest_points(points, points[chosen[best]], config.near)
    some = np.arange(0, len(points), 3 * max(1, len(points) // config.some))[None]

    def settle(poses: PoseRows, parts: Rows, radii: tuple[float, float, int]) -> tuple[PoseRows, Scores]:
        """Poses refined by their parts of the points, and how much what then touches looks as it should."""
        poses = sides.refined(poses, radii, parts)
        worth = -sides.buried(poses) - sides.swapped.buried(inverse(poses))
        for rows in (some, parts):
            worth += sides.likeness(poses, rows, config.settled) / rows.shape[1]
        return poses, worth

    rough, worth = settle(poses[best], parts[:, ::3], config.settling)
    order = np.argsort(-worth, kind="stable")[: effort.refined]
    sharp, worth = settle(rough[order], parts[order], config.refining)
    kept, votes = distinct(sharp, worth, points, *config.refined_alike, spacing, effort.kept)
    return sharp[kept], votes


def proposed(
    sides: Sides, effort: Effort, chance: np.random.Generator, config: PairSearchConfig = PAIR_SEARCH
) -> tuple[PoseRows, Scores, Numbers]:
    """Poses at which the surroundings of a key touch, their scores, and the key of each, a point of the first break.

    The score is the likeness of touching points among those around the key, which reach farther, less buried points: so
    small contacts count as much as large ones.
    """
    own, spacing = sides.own, sides.spacing
    keys = chance.permutation(len(own.points))[: effort.keys]
    candidates, value = correspondences(sides, keys, effort.candidates, chance, config)
    width = candidates.shape[1]
    key = np.repeat(np.arange(len(keys)), width)
    poses, fits = rim_poses(sides, keys[key], candidates.ravel(), config)
    one = two = key[fits]
    least = np.full(len(poses), config.near_rim)
    # Pairs of correspondences, likely ones often, whose keys are neither near to each other nor far.
    length, share = config.shortest
    shortest = min(length * spacing, share * float(np.linalg.norm(np.ptp(own.points, axis=0))))
    partners = partners_of(own.points[keys], shortest, config.farthest * spacing, config.around, chance)
    weight = np.cumsum(np.exp(config.sharpness * (value - value.max(1, keepdims=True) / 2 - value.max() / 2)))
    drawn = np.minimum(np.searchsorted(weight, chance.random((2, effort.draws)) * weight[-1]), len(weight) - 1)
    a, rank = drawn[0] // width, drawn[1] % width
    b = partners[a, chance.integers(partners.shape[1], size=len(a))]
    here, there = (keys[a], keys[b]), (candidates.ravel()[drawn[0]], candidates[b, rank])
    pairs, fits = pair_poses(sides, here, there, shortest, config)
    poses, least = np.concatenate([poses, pairs]), np.concatenate([least, np.full(len(pairs), config.near_pair)])
    one, two = np.concatenate([one, a[fits]]), np.concatenate([two, b[fits]])
    # What touches around the keys, and then in patches.
    around = nearest_points(own.points, own.points[keys], config.around, 2)
    near = sides.contact(poses, np.concatenate([around[one], around[two]], 1)).touching(config.touch)
    kept = near.mean(1) >= least
    poses, one = poses[kept], one[kept]
    patches = nearest_points(own.points, own.points[keys], config.patch, 4)
    scores = sides.likeness(poses, patches[one], config.touch)
    return poses, scores - config.buried * sides.buried(poses, config.deep, 4), keys[one]


def correspondences(
    sides: Sides, keys: Numbers, count: int, chance: np.random.Generator, config: PairSearchConfig
) -> tuple[Rows, Float64[np.ndarray, "k m"]]:
    """The most similar points of the second surface for each key, and how similar they are."""
    first, second = sides.own.surface, sides.other.surface
    pool = chance.permutation(len(second.points))[: config.pool]
    here = np.concatenate([first.counterparts[keys], first.descriptors[keys]], 1)
    there = np.concatenate([second.descriptors[pool], second.counterparts[pool]], 1)
    value, best = torch.from_numpy(here @ there.T).topk(min(count, len(pool)))
    return pool[best.numpy()], value.double().numpy()


def partners_of(points: Points, shortest: float, farthest: float, count: int, chance: np.random.Generator) -> Rows:
    """For each point the numbers of some others that are neither near nor far, or its own where there are too few."""
    far = np.linalg.norm(points[:, None] - points, axis=2)
    drawn = np.where((far > shortest) & (far < farthest), chance.random(far.shape), 2.0)
    chosen = np.argpartition(drawn, min(count, len(points)) - 1, 1)[:, :count]
    return np.where(np.take_along_axis(drawn, chosen, 1) < 2, chosen, np.arange(len(points))[:, None])


def nearest_points(points: Points, places: Points, count: int, step: int = 1) -> Rows:
    """So many points of a surface around each place: every `step`-th, unless that leaves too few."""
    while step > 1 and len(points) < 3 * count * step:
        step //= 2
    thinned = np.arange(0, len(points), step)
    near = cKDTree(points[thinned]).query(places, min(count, len(thinned)))[1]
    return thinned[np.sort(near.reshape(len(places), -1), 1)]


# Poses from correspondences


def frames(axis: Vectors, toward: Vectors | None = None) -> Frames:
    """Right-handed frames: an axis, the way across it towards some direction, or any way, and the product of both."""
    axis = axis.astype(np.float64)
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    toward = np.eye(3)[np.abs(axis).argmin(1)] if toward is None else toward
    across = toward - _dot(toward, axis)[:, None] * axis
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return np.stack([axis, across, np.cross(axis, across)], 2)


def across(frame: Frames, directions: Vectors) -> Complex:
    """What directions have across the axes of frames, as complex numbers."""
    return _dot(directions, frame[..., 1]) + 1j * _dot(directions, frame[..., 2])


def bringing(
    frame: Frames, other: Frames, spin: Complex128[np.ndarray, "_"], place: Vectors, target: Vectors
) -> PoseRows:
    """Poses that bring frames onto others, turned about their axes by the angles of `spin`, and places onto targets."""
    c, s = (part[:, None] / np.maximum(np.abs(spin), 1e-9)[:, None] for part in (spin.real, spin.imag))
    turned = [other[..., 0], c * other[..., 1] + s * other[..., 2], c * other[..., 2] - s * other[..., 1]]
    turn = np.stack(turned, 2) @ np.swapaxes(frame, 1, 2)
    return packed(turn, target - (turn @ place[..., None])[..., 0])


def rim_poses(sides: Sides, a: Numbers, c: Numbers, config: PairSearchConfig) -> tuple[PoseRows, Numbers]:
    """Poses that bring points at rims onto such points, and which of the correspondences (a, c) these are.

    Breaks face each other and the original surfaces go on into each other; left out is where the two surfaces do not
    meet at the same angle, or are nearly parallel.
    """
    own, other = sides.own.surface, sides.other.surface
    here, there = _dot(own.smooth[a], own.original[a]), _dot(other.smooth[c], other.original[c])
    fits = (own.rim[a] < config.rim) & (other.rim[c] < config.rim) & (np.abs(here + there) <= config.edge)
    fits = np.flatnonzero(fits & (np.abs(here) <= config.flat) & (np.abs(there) <= config.flat))
    a, c = a[fits], c[fits]
    frame, onto = frames(own.smooth[a], own.original[a]), frames(-other.smooth[c], other.original[c])
    return bringing(frame, onto, np.ones(len(a), complex), own.points[a], other.points[c]), fits


def pair_poses(
    sides: Sides,
    here: tuple[Numbers, Numbers],
    there: tuple[Numbers, Numbers],
    shortest: float,
    config: PairSearchConfig,
) -> tuple[PoseRows, Numbers]:
    """Poses that bring pairs of points here onto pairs there, and which of the pairs these are.

    Turned such that normals oppose each other; left out is what differs in its length or in the angles of its normals.
    """
    (a, b), (c, d), own, other = here, there, sides.own.surface, sides.other.surface
    u, v = (own.points[b] - own.points[a]).astype(float), (other.points[d] - other.points[c]).astype(float)
    length, width = np.linalg.norm(u, axis=1), np.linalg.norm(v, axis=1)
    long = (length >= shortest) & (width >= shortest) & (a != b)
    fits = np.flatnonzero(long & (np.abs(length - width) <= config.length * sides.spacing))
    a, b, c, d = a[fits], b[fits], c[fits], d[fits]
    u, v = u[fits] / length[fits, None], v[fits] / width[fits, None]
    bends = _dot(own.smooth[a], own.smooth[b]) - _dot(other.smooth[c], other.smooth[d])
    alike, rims = np.abs(bends) <= config.between, []
    for i, j in ((a, c), (b, d)):
        rims.append((own.rim[i] < config.both_rims) & (other.rim[j] < config.both_rims))
        alike &= np.abs(_dot(own.smooth[i], u) + _dot(other.smooth[j], v)) <= config.slope
        alike &= (np.abs(_dot(own.original[i], u) - _dot(other.original[j], v)) <= config.between) | ~rims[-1]
    a, b, c, d, fits = (numbers[alike] for numbers in (a, b, c, d, fits))
    frame, onto, spin = frames(u[alike]), frames(v[alike]), np.zeros(len(fits), complex)
    for i, j, rim in ((a, c, rims[0][alike]), (b, d, rims[1][alike])):
        spin -= across(onto, other.smooth[j]) * across(frame, own.smooth[i]).conj()
        spin += across(onto, other.original[j]) * across(frame, own.original[i]).conj() * rim
    middle, target = (own.points[a] + own.points[b]) / 2, (other.points[c] + other.points[d]) / 2
    return bringing(frame, onto, spin, middle, target), fits


def _dot(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return np.einsum("nd,nd->n", one, two)


# Ratings


def rating(poses: PoseRows, sides: Sides, config: PairSearchConfig = PAIR_SEARCH) -> Scores:
    """Points of the first break that touch the second closely, less points that are inside."""
    step = max(1, len(sides.own.points) // config.rated)
    tight = sides.contact(poses, np.arange(0, len(sides.own.points), step)[None]).touching(config.settled)
    held = len(sides.other.probe) / max(1, len(sides.own.probe)) * sides.swapped.buried(inverse(poses))
    return step * (tight.sum(1) - config.penalty * tight.shape[1] * (sides.buried(poses) + held))


def distinct(
    poses: PoseRows, scores: Scores, points: Points, degrees: float, distance: float, spacing: float, most: int
) -> tuple[Numbers, Numbers]:
    """Numbers of the best poses that are not alike, and how many poses each stands for; the distance is in spacings."""
    order = np.argsort(-scores, kind="stable")
    turns, trace = poses[order, :9], 1 + 2 * math.cos(math.radians(degrees))
    places = (rotations(poses) @ points.mean(0) + poses[:, 9:])[order]
    kept, votes = list[int](), list[int]()
    while len(order) and len(kept) < most:
        alike = (turns @ turns[0] > trace) & (np.linalg.norm(places - places[0], axis=1) < distance * spacing)
        alike[0] = True
        kept.append(int(order[0]))
        votes.append(int(alike.sum()))
        order, turns, places = order[~alike], turns[~alike], places[~alike]
    return np.array(kept, np.int64), np.array(votes, np.int64)
