"""How may two breaks fit: propose very many poses, keep the best, refine them, and drop those that are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy.spatial import cKDTree

from diffassemble.fragments.clusters import FractureSide
from diffassemble.fragments.contact import Points, Pose, PoseRows, count_touching, inverse, refine
from diffassemble.fragments.descriptors import FractureSurface
from diffassemble.fragments.proposals import likeness, propose, propose_everywhere

Numbers = Int64[np.ndarray, "_"]
_AROUND = 14
_COMPANY = 25.0
_POOL = 1200
_TABLE = 1 << 16
_SHARPNESS = 10.0
# Only breaks with fewer points than this are tried everywhere.
_SMALL = 1500


@dataclass(frozen=True)
class Effort:
    """How hard to look: points of the first break, candidates of each, pairs drawn, poses kept and refined.

    With `everywhere`, so many points of a small break are tried on up to 1500 places of the second, at all turns.
    """

    keys: int = 400
    candidates: int = 28
    draws: int = 600_000
    proposals: int = 600
    refined: int = 32
    kept: int = 8
    everywhere: int = 0


class Candidates(NamedTuple):
    """Poses of the first side in the second's frame, best first, and how many guesses led to each."""

    poses: PoseRows
    votes: Numbers


def search(first: FractureSide, second: FractureSide, spacing: float, effort: Effort, seed: int) -> Candidates:
    """The few best poses of the first side, which should be the one with the smaller fracture surface."""
    nothing = Candidates(np.zeros((0, 12)), np.zeros(0, np.int64))
    if len(first.points) < 20 or len(second.points) < 20:
        return nothing
    chance = np.random.Generator(np.random.PCG64(seed))
    keys = chance.permutation(len(first.points))[: effort.keys]
    candidates, table = correspondences(first.surface, second.surface, keys, effort.candidates, chance)
    trial = chance.permutation(len(first.points))[:250]
    extent = float(np.linalg.norm(np.ptp(first.points, axis=0)))
    shortest = min(5 * spacing, 0.25 * extent)
    sides = first.surface, first.probe, second.surface, second.voxels, second.body
    others, around = company(first.points[keys], shortest, spacing, chance), surroundings(first.points, keys)
    poses, scores = propose(
        *sides, keys, candidates, table, others, around, trial, float(spacing),
        effort.draws, effort.proposals, shortest, int(chance.integers(1 << 62)),
    )  # fmt: skip
    if effort.everywhere and len(first.points) < _SMALL:
        tried = chance.permutation(len(first.points))
        places = chance.permutation(len(second.points))[:1500]
        keys, trial_here = tried[: effort.everywhere], tried[:60]
        more, values = propose_everywhere(*sides, keys, trial_here, places, float(spacing), 20, 200, 0.45)
        poses, scores = np.concatenate([poses, more]), np.concatenate([scores, values * (0.3 * len(trial) / 60)])
    if not len(poses):
        return nothing
    best = distinct(poses, scores, first.points, 10.0, 4 * spacing, effort.refined)[0]
    parts = (chance.permutation(len(first.points))[:350] for _ in best)
    sharp = np.stack(
        [
            refine(poses[i], first.points[some], first.smooth[some], second.target, 2.6 * spacing, 1.3 * spacing, 8)
            for i, some in zip(best, parts, strict=True)
        ]
    )
    some = np.arange(0, len(first.points), max(1, len(first.points) // 600))
    values = np.array([tight_likeness(pose, first, second, some, spacing) for pose in sharp])
    kept, votes = distinct(sharp, values, first.points, 4.0, 1.5 * spacing, effort.kept)
    return Candidates(sharp[kept], votes)


def correspondences(
    first: FractureSurface, second: FractureSurface, keys: Numbers, count: int, chance: np.random.Generator
) -> tuple[Int64[np.ndarray, "k m"], Numbers]:
    """The most similar points of the second surface for each key, and a table to draw correspondences from."""
    # Few enough that true counterparts are among the best, and dense enough that one lies near each place.
    pool = chance.permutation(len(second.points))[:_POOL]
    likeness = first.counterparts[keys] @ second.descriptors[pool].T
    likeness = likeness + first.descriptors[keys] @ second.counterparts[pool].T
    count = min(count, len(pool))
    best = np.argpartition(-likeness, count - 1, axis=1)[:, :count]
    value = np.take_along_axis(likeness, best, 1)
    weight = np.exp(_SHARPNESS * (value - value.max(1, keepdims=True) * 0.5 - value.max() * 0.5)).ravel()
    ends = np.cumsum(weight)
    table = np.searchsorted(ends, (np.arange(_TABLE) + chance.random()) * (ends[-1] / _TABLE))
    return pool[best], np.minimum(table, len(ends) - 1)


def company(points: Points, shortest: float, spacing: float, chance: np.random.Generator) -> Int64[np.ndarray, "k c"]:
    """For each key some others, by their numbers among the keys, that are neither near nor far; or itself."""
    far = np.linalg.norm(points[:, None] - points, axis=-1)
    fit = (far > shortest) & (far < _COMPANY * spacing)
    order = np.argsort(np.where(fit, chance.random(far.shape), 2), axis=1)[:, :_AROUND]
    return np.where(np.take_along_axis(fit, order, 1), order, np.arange(len(points))[:, None])


def surroundings(points: Points, keys: Numbers) -> Int64[np.ndarray, "k a"]:
    """Points of the surface around each key, about two spacings apart."""
    thinned = np.arange(len(points))[:: 2 if len(points) > 60 else 1]
    count = min(_AROUND, len(thinned))
    _, near = cKDTree(points[thinned]).query(points[keys], count)
    return thinned[np.asarray(near).reshape(len(keys), count)]


def tight_likeness(pose: Pose, first: FractureSide, second: FractureSide, some: Numbers, spacing: float) -> float:
    """How much the points that lie closely on the second surface look as they should, less what lies inside."""
    sunk = second.body.holds(pose, first.probe) / len(first.probe)
    held = first.body.holds(inverse(pose), second.probe) / len(second.probe)
    found = likeness(pose, first.surface, second.surface, second.voxels, some, 1.5, 0.6, -0.6, spacing)
    return found / len(some) - sunk - held


def rating(pose: Pose, first: FractureSide, second: FractureSide, spacing: float) -> float:
    """Points of the first break that lie closely on the second, less points that lie inside."""
    step = max(1, len(first.points) // 800)
    own, smooth = np.ascontiguousarray(first.points[::step]), np.ascontiguousarray(first.smooth[::step])
    tight = count_touching(pose, own, smooth, *second.target, 1.5 * spacing, 0.6 * spacing, -0.6)
    inside = second.body.holds(pose, first.probe) + first.body.holds(inverse(pose), second.probe)
    return float(tight * step - 2.0 * len(own) * step / max(1, len(first.probe)) * inside)


def distinct(
    poses: PoseRows, scores: Float64[np.ndarray, "c"], points: Points, degrees: float, distance: float, most: int
) -> tuple[Numbers, Numbers]:
    """Numbers of the best poses that are not alike, and how many poses each stands for."""
    middle = points.mean(0)
    places = poses[:, :9].reshape(-1, 3, 3) @ middle + poses[:, 9:]
    least = 1 + 2 * np.cos(np.radians(degrees))
    kept: list[int] = []
    votes: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if kept:
            trace = (poses[kept, :9] * poses[i, :9]).sum(1)
            near = (trace > least) & (np.linalg.norm(places[kept] - places[i], axis=1) < distance)
            if near.any():
                votes[int(np.argmax(near))] += 1
                continue
        if len(kept) < most:
            kept.append(int(i))
            votes.append(1)
    return np.array(kept, np.int64), np.array(votes, np.int64)
