"""How may two breaks fit: propose very many poses, keep the best, refine them, and drop those that are alike."""

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
from diffassemble.fragments.proposals import company, largest, propose, settled, unlike

Numbers = Int64[np.ndarray, "_"]
Scores = Float64[np.ndarray, "_"]
# Points around a key that must mostly touch, those whose likeness counts, and those that a pose is refined by.
_AROUND, _PATCH, _NEAR = 14, 64, 350
_COMPANY = 25.0
_POOL = 1200
_TABLE = 1 << 16
_SHARPNESS = 10.0


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


GLANCE = Effort(keys=250, candidates=10, draws=10_000, proposals=24, settled=12, refined=6, kept=4)
QUICK = Effort()


class Candidates(NamedTuple):
    """Poses of the first side in the second's frame, best first, and how many guesses led to each."""

    poses: PoseRows
    votes: Numbers


def search(first: FractureSide, second: FractureSide, spacing: float, effort: Effort, seed: int) -> Candidates:
    """The few best poses of the first side, which should be the one with the smaller fracture surface."""
    nothing = Candidates(np.zeros((0, 12)), np.zeros(0, np.int64))
    if len(first.points) < 20 or len(second.points) < 20:
        return nothing
    poses, scores, chosen = guesses(first, second, spacing, effort, np.random.Generator(np.random.PCG64(seed)))
    if not len(poses):
        return nothing
    best = distinct(poses, scores, first.points, 10.0, 4 * spacing, effort.settled)[0]
    reach = min(_NEAR, len(first.points))
    near = np.sort(cKDTree(first.points).query(first.points[chosen[best]], reach)[1].reshape(len(best), reach), 1)
    some = np.arange(0, len(first.points), 3 * max(1, len(first.points) // 600))

    def settle(poses: PoseRows, parts: Int64[np.ndarray, "c p"], radius: float, rounds: int) -> tuple[PoseRows, Scores]:
        pairs = first.surface, first.probe, first.body, second.surface, second.voxels, second.probe, second.body
        return settled(poses, parts, *pairs, some, float(spacing), radius, rounds)

    rough, values = settle(poses[best], np.ascontiguousarray(near[:, ::3]), 2.6, 6)
    order = np.argsort(-values, kind="stable")[: effort.refined]
    sharp, values = settle(rough[order], near[order], 1.6, 4)
    kept, votes = distinct(sharp, values, first.points, 4.0, 1.5 * spacing, effort.kept)
    return Candidates(sharp[kept], votes)


def guesses(
    first: FractureSide, second: FractureSide, spacing: float, effort: Effort, chance: np.random.Generator
) -> tuple[PoseRows, Scores, Numbers]:
    """Poses, hardly any of them alike, with their scores and the point of the first break that each came from."""
    keys = chance.permutation(len(first.points))[: effort.keys]
    candidates, table = correspondences(first.surface, second.surface, keys, effort.candidates, chance)
    shortest = min(5 * spacing, 0.25 * float(np.linalg.norm(np.ptp(first.points, axis=0))))
    sides = first.surface, first.probe, second.surface, second.voxels, second.body
    others = company(first.points[keys], shortest, _COMPANY * spacing, _AROUND, int(chance.integers(1 << 62)))
    around, patches = (surroundings(first.points, keys, count) for count in (_AROUND, _PATCH))
    poses, scores, chosen = propose(
        *sides, keys, candidates, table, others, around, patches, float(spacing),
        effort.draws, effort.proposals, shortest, int(chance.integers(1 << 62)),
    )  # fmt: skip
    return poses, scores, keys[chosen]


def correspondences(
    first: FractureSurface, second: FractureSurface, keys: Numbers, count: int, chance: np.random.Generator
) -> tuple[Int64[np.ndarray, "k m"], Numbers]:
    """The most similar points of the second surface for each key, and a table to draw correspondences from."""
    # Few enough that true counterparts are among the best, and dense enough that one lies near each place.
    pool = chance.permutation(len(second.points))[:_POOL]
    here = np.concatenate([first.counterparts[keys], first.descriptors[keys]], 1)
    there = np.concatenate([second.descriptors[pool], second.counterparts[pool]], 1)
    best, value = largest(here @ there.T, min(count, len(pool)))
    weight = np.exp(_SHARPNESS * (value - value.max(1, keepdims=True) * 0.5 - value.max() * 0.5)).ravel()
    ends = np.cumsum(weight)
    table = np.searchsorted(ends, (np.arange(_TABLE) + chance.random()) * (ends[-1] / _TABLE))
    return pool[best], np.minimum(table, len(ends) - 1)


def surroundings(points: Points, keys: Numbers, count: int) -> Int64[np.ndarray, "k a"]:
    """Points of the surface around each key: every other for few, every fourth for many, unless there are too few."""
    step = 2 if count < _PATCH else 4
    while step > 1 and len(points) < 3 * count * step:
        step //= 2
    thinned = np.arange(0, len(points), step)
    count = min(count, len(thinned))
    _, near = cKDTree(points[thinned]).query(points[keys], count)
    return thinned[np.asarray(near).reshape(len(keys), count)]


def rating(pose: Pose, first: FractureSide, second: FractureSide, spacing: float) -> float:
    """Points of the first break that lie closely on the second, less points that lie inside."""
    step = max(1, len(first.points) // 800)
    own, smooth = np.ascontiguousarray(first.points[::step]), np.ascontiguousarray(first.smooth[::step])
    tight = count_touching(pose, own, smooth, *second.target, 1.5 * spacing, 0.6 * spacing, -0.6)
    inside = second.body.holds(pose, first.probe) + first.body.holds(inverse(pose), second.probe)
    return float(tight * step - 2.0 * len(own) * step / max(1, len(first.probe)) * inside)


def distinct(
    poses: PoseRows, scores: Scores, points: Points, degrees: float, distance: float, most: int
) -> tuple[Numbers, Numbers]:
    """Numbers of the best poses that are not alike, and how many poses each stands for."""
    places = poses[:, :9].reshape(-1, 3, 3) @ points.mean(0) + poses[:, 9:]
    order = np.argsort(-scores, kind="stable")
    return unlike(poses, places, order, 1 + 2 * math.cos(math.radians(degrees)), float(distance), most)
