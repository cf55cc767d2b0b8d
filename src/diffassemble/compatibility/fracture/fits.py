"""Two clusters matched: a few fits, each with the probability that it is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from diffassemble.compatibility.fracture.clusters import Cluster, Pose
from diffassemble.compatibility.fracture.contact import undone
from diffassemble.compatibility.fracture.icp import refine
from diffassemble.compatibility.fracture.judges import Judges
from diffassemble.compatibility.fracture.layers import LEVELS
from diffassemble.compatibility.fracture.pair_search import Effort, rating, search
from diffassemble.compatibility.fracture.sides import Side
from diffassemble.compatibility.fracture.verify import fit_numbers

# Breaks with fewer points than this at levels 0 and 1 are looked at one level finer.
_FEW = (300, 80)
# Breaks with more points than this are not looked at any finer.
_MANY = 5000
_KEPT = 4


@dataclass(frozen=True)
class Fit:
    """If the second cluster stays, the first stands at the pose."""

    pose: Pose
    probability: float
    level: int
    votes: int
    numbers: Float32[np.ndarray, "v"]

    def turned_round(self) -> Fit:
        """The same fit with first and second exchanged."""
        return Fit(undone(self.pose), self.probability, self.level, self.votes, self.numbers)


def level_for(first: Cluster, second: Cluster) -> int:
    """The coarsest level at which both breaks have points enough."""
    for level in range(LEVELS - 1):
        sides = first.side(level), second.side(level)
        if all(side is not None and len(side.points) >= _FEW[level] for side in sides):
            return level
    return LEVELS - 1 if can_refine(first, second, LEVELS - 1) else LEVELS - 2


def can_refine(first: Cluster, second: Cluster, level: int) -> bool:
    """Whether a level exists at which neither break has too many points to handle, judging by the coarser one."""
    sides = first.side(level - 1), second.side(level - 1)
    return level < LEVELS and all(side is None or len(side.points) < _MANY for side in sides)


def match(first: Cluster, second: Cluster, level: int, effort: Effort, judges: Judges, seed: int) -> list[Fit]:
    """Search for fits of two clusters at one level, the most probable first."""
    own, other = first.side(level), second.side(level)
    if own is None or other is None:
        return []
    if len(own.points) > len(other.points):
        return [fit.turned_round() for fit in match(second, first, level, effort, judges, seed)]
    spacing = first.fragments[0].spacing / 2**level
    found = search(own, other, spacing, effort, seed)
    return judge(found.poses, found.votes, own, other, spacing, level, judges)[:_KEPT]


def review(first: Cluster, second: Cluster, fits: Sequence[Fit], judges: Judges) -> list[Fit]:
    """Fits that were found for members of two clusters, refined and judged anew for the clusters."""
    result: list[Fit] = []
    for level in sorted({fit.level for fit in fits}):
        own, other = first.side(level), second.side(level)
        if own is None or other is None:
            continue
        spacing = first.fragments[0].spacing / 2**level
        here = [fit for fit in fits if fit.level == level]
        swapped = len(own.points) > len(other.points)
        if swapped:
            own, other, here = other, own, [fit.turned_round() for fit in here]
        poses = np.stack([sharpened(fit.pose, own, other, spacing) for fit in here])
        votes = np.array([fit.votes for fit in here])
        judged = judge(poses, votes, own, other, spacing, level, judges)
        result += [fit.turned_round() for fit in judged] if swapped else judged
    return sorted(result, key=lambda fit: -fit.probability)


def sharpened(pose: Pose, own: Side, other: Side, spacing: float) -> Pose:
    """A pose refined on all of the break."""
    step = max(1, len(own.points) // 1500)
    return refine(
        pose, own.points[::step], own.smooth[::step], other.voxels, other.points, other.smooth,
        1.6 * spacing, 1.0 * spacing, 5,
    )  # fmt: skip


def judge(
    poses: np.ndarray, votes: np.ndarray, own: Side, other: Side, spacing: float, level: int, judges: Judges
) -> list[Fit]:
    """Poses of one side against another with the probabilities that they are true."""
    if not len(poses):
        return []
    worth = np.array([rating(pose, own, other, spacing) for pose in poses])
    numbers = []
    for i, pose in enumerate(poses):
        others = np.delete(worth, i)
        margin = worth[i] / max(10.0, others.max()) if len(others) else 5.0
        numbers.append(fit_numbers(pose, own, other, spacing, level, int(votes[i]), float(margin)))
    table = np.stack(numbers)
    chance = judges.fits(table)
    fits = [Fit(poses[i], float(chance[i]), level, int(votes[i]), table[i]) for i in range(len(poses))]
    return sorted(fits, key=lambda fit: -fit.probability)
