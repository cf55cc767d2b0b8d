"""Poses at which two breaks may fit: very many are proposed, the best refined, and of those that are alike one kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy.spatial import cKDTree

from diffassemble.fragments.clusters import FractureSide
from diffassemble.fragments.contact import Points, Pose, PoseRows, count_touching, inverse
from diffassemble.fragments.descriptors import FractureSurface
from diffassemble.fragments.proposals import PROPOSAL, ProposalLimits, company, largest, propose, settled, unlike

Numbers = Int64[np.ndarray, "_"]
Scores = Float64[np.ndarray, "_"]


@dataclass(frozen=True)
class Effort:
    """How hard to look: points of the first break, candidates of each, pairs drawn, poses kept, settled, refined and
    verified.

    The verification learnt from what `QUICK` finds; more of all found no more.
    """

    keys: int = 400
    candidates: int = 12
    draws: int = 30_000
    proposals: int = 120
    settled: int = 80
    refined: int = 20
    kept: int = 12


@dataclass(frozen=True)
class PairSearchConfig:
    """How poses are proposed and refined, whatever the effort. Lengths in spacings of the level."""

    limits: ProposalLimits = PROPOSAL
    fewest: int = 20
    """breaks with fewer points are not searched"""
    around: int = 14
    """points around a key that must mostly touch"""
    patch: int = 64
    """points around a key whose likeness counts"""
    near: int = 350
    """points around a key by which a pose is refined at first"""
    some: int = 600
    """about a third of so many points of the whole break speak for a pose as well"""
    company: float = 25.0
    """greatest distance of the second key of a pair from the first"""
    tries: int = 8
    """keys drawn for each that is wanted as second"""
    shortest: tuple[float, float] = (5.0, 0.25)
    """least distance of two keys, in spacings, but no more than this share of the break's extent"""
    pool: int = 1200
    """points of the second break that are compared: few enough that true counterparts are among the best, and dense
    enough that one lies near each place"""
    table: int = 1 << 16
    """length of the table that correspondences are drawn from"""
    sharpness: float = 10.0
    """correspondences are drawn with weight exp(sharpness · likeness)"""
    alike: tuple[float, float] = (10.0, 4.0)
    """proposals that differ by fewer degrees and spacings are one"""
    refined_alike: tuple[float, float] = (4.0, 1.5)
    """the same after refinement"""
    settling: tuple[float, int] = (2.6, 6)
    """first radius of the first refinement, and its rounds"""
    refining: tuple[float, int] = (1.6, 4)
    """the same for the second one"""
    rated: int = 800
    """points by which a pose is rated, about"""
    penalty: float = 2.0
    """what a buried share of the probes costs in a rating, over the same share of the break that touches"""


GLANCE = Effort(keys=250, candidates=10, draws=10_000, proposals=24, settled=12, refined=6, kept=4)
QUICK = Effort()


PAIR_SEARCH = PairSearchConfig()


class Hypotheses(NamedTuple):
    """Poses of the first side in the second's frame, best first, and how many proposals led to each."""

    poses: PoseRows
    votes: Numbers


def search(
    first: FractureSide,
    second: FractureSide,
    spacing: float,
    effort: Effort,
    seed: int,
    config: PairSearchConfig = PAIR_SEARCH,
) -> Hypotheses:
    """The few best poses of the first side, which should be the one with the smaller fracture surface."""
    nothing = Hypotheses(np.zeros((0, 12)), np.zeros(0, np.int64))
    if min(len(first.points), len(second.points)) < config.fewest:
        return nothing
    chance = np.random.Generator(np.random.PCG64(seed))
    poses, scores, chosen = proposed(first, second, spacing, effort, chance, config)
    if not len(poses):
        return nothing
    best = distinct(poses, scores, first.points, *config.alike, spacing, effort.settled)[0]
    reach = min(config.near, len(first.points))
    near = np.sort(cKDTree(first.points).query(first.points[chosen[best]], reach)[1].reshape(len(best), reach), 1)
    some = np.arange(0, len(first.points), 3 * max(1, len(first.points) // config.some))

    def settle(poses: PoseRows, parts: Int64[np.ndarray, "c p"], radius: float, rounds: int) -> tuple[PoseRows, Scores]:
        pairs = first.surface, first.probe, first.body, second.surface, second.voxels, second.probe, second.body
        return settled(poses, parts, *pairs, some, float(spacing), radius, rounds, config.limits)

    rough, values = settle(poses[best], np.ascontiguousarray(near[:, ::3]), *config.settling)
    order = np.argsort(-values, kind="stable")[: effort.refined]
    sharp, values = settle(rough[order], near[order], *config.refining)
    kept, votes = distinct(sharp, values, first.points, *config.refined_alike, spacing, effort.kept)
    return Hypotheses(sharp[kept], votes)


def proposed(
    first: FractureSide,
    second: FractureSide,
    spacing: float,
    effort: Effort,
    chance: np.random.Generator,
    config: PairSearchConfig = PAIR_SEARCH,
) -> tuple[PoseRows, Scores, Numbers]:
    """Proposed poses, hardly any of them alike, their scores, and the point of the first break that each came from."""
    keys = chance.permutation(len(first.points))[: effort.keys]
    candidates, table = correspondences(first.surface, second.surface, keys, effort.candidates, chance, config)
    length, share = config.shortest
    shortest = min(length * spacing, share * float(np.linalg.norm(np.ptp(first.points, axis=0))))
    sides = first.surface, first.probe, second.surface, second.voxels, second.body
    others = company(
        first.points[keys],
        shortest,
        config.company * spacing,
        config.around,
        config.tries,
        int(chance.integers(1 << 62)),
    )
    around = surroundings(first.points, keys, config.around, 2)
    patches = surroundings(first.points, keys, config.patch, 4)
    poses, scores, chosen = propose(
        *sides, keys, candidates, table, others, around, patches, float(spacing),
        effort.draws, effort.proposals, shortest, int(chance.integers(1 << 62)), config.limits,
    )  # fmt: skip
    return poses, scores, keys[chosen]


def correspondences(
    first: FractureSurface,
    second: FractureSurface,
    keys: Numbers,
    count: int,
    chance: np.random.Generator,
    config: PairSearchConfig,
) -> tuple[Int64[np.ndarray, "k m"], Numbers]:
    """The most similar points of the second surface for each key, and a table to draw correspondences from."""
    pool = chance.permutation(len(second.points))[: config.pool]
    here = np.concatenate([first.counterparts[keys], first.descriptors[keys]], 1)
    there = np.concatenate([second.descriptors[pool], second.counterparts[pool]], 1)
    best, value = largest(here @ there.T, min(count, len(pool)))
    weight = np.exp(config.sharpness * (value - value.max(1, keepdims=True) * 0.5 - value.max() * 0.5)).ravel()
    ends = np.cumsum(weight)
    table = np.searchsorted(ends, (np.arange(config.table) + chance.random()) * (ends[-1] / config.table))
    return pool[best], np.minimum(table, len(ends) - 1)


def surroundings(points: Points, keys: Numbers, count: int, step: int) -> Int64[np.ndarray, "k a"]:
    """So many points of the surface around each key: every `step`-th, unless that leaves too few."""
    while step > 1 and len(points) < 3 * count * step:
        step //= 2
    thinned = np.arange(0, len(points), step)
    count = min(count, len(thinned))
    _, near = cKDTree(points[thinned]).query(points[keys], count)
    return thinned[np.asarray(near).reshape(len(keys), count)]


def rating(
    pose: Pose, first: FractureSide, second: FractureSide, spacing: float, config: PairSearchConfig = PAIR_SEARCH
) -> float:
    """Points of the first break that lie closely on the second, less points that lie inside."""
    step = max(1, len(first.points) // config.rated)
    own, smooth = np.ascontiguousarray(first.points[::step]), np.ascontiguousarray(first.smooth[::step])
    reach, plane, facing = config.limits.settled
    tight = count_touching(pose, own, smooth, *second.target, reach * spacing, plane * spacing, facing)
    inside = second.body.holds(pose, first.probe) + first.body.holds(inverse(pose), second.probe)
    return float(tight * step - config.penalty * len(own) * step / max(1, len(first.probe)) * inside)


def distinct(
    poses: PoseRows, scores: Scores, points: Points, degrees: float, distance: float, spacing: float, most: int
) -> tuple[Numbers, Numbers]:
    """Numbers of the best poses that are not alike, and how many poses each stands for; the distance is in spacings."""
    places = poses[:, :9].reshape(-1, 3, 3) @ points.mean(0) + poses[:, 9:]
    order = np.argsort(-scores, kind="stable")
    return unlike(poses, places, order, 1 + 2 * math.cos(math.radians(degrees)), float(distance * spacing), most)
