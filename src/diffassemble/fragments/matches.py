"""Which fragments and clusters of them may touch along their breaks, and how they then lie to each other.

Two clusters are matched at a few poses, each with the probability that it is true: `match_features` are the numbers
that tell how two sides meet, of which the verification network makes a probability; where both have colours, these
speak for or against it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from diffassemble.core import FragmentPieces, Matches
from diffassemble.core.seeds import mixed_seed
from diffassemble.fragments.clusters import BodySurface, Cluster, FractureSide, Fragment
from diffassemble.fragments.colours import colour_evidence
from diffassemble.fragments.contact import IDENTITY, Pose, inverse, meet, poses_of, refine, transformed
from diffassemble.fragments.descriptors import FractureSurface
from diffassemble.fragments.freedom import hold
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import QUICK, Candidates, Effort, rating, search
from diffassemble.fragments.surface import facing_outward, spacing_of, with_normals

Job = TypeVar("Job")
Result = TypeVar("Result")
_MOST = 2500
# Breaks with fewer points than this at level 1 are looked at one level finer.
_FEW = 150
# Breaks with more points than this are not looked at any finer.
_MANY = 12_000
_KEPT = 4
_LIKELY = 0.5
# Colours make no match surer than this: what they are worth was fitted on painted solids alone.
_SURE = 0.9
# What touches can slide if its breaks hold it less firmly than this, and with the outer surfaces that run on less than
# this, or these run on at less than this share of the rim; no such match is surer than this.
_FIRM, _PINNED, _AROUND, _SLIDING = 0.08, 0.05, 0.6, 0.6
# How a match that is less likely could slide is not asked: it speaks for nothing.
_ASKED = 0.1
# Matches of a lower probability are left out.
_LEAST = 0.02


def match_features(
    pose: Pose, first: FractureSide, second: FractureSide, spacing: float, level: int, votes: int, margin: float
) -> Float32[np.ndarray, "v"]:
    """How the first side, moved by the pose, meets the second; lengths in spacings, areas in their squares.

    `votes` guesses led to this pose, and `margin` is its rating over that of the best other pose of the same two sides.
    """
    here, there = _meeting(pose, first, second, spacing), _meeting(inverse(pose), second, first, spacing)
    body, other = first.body, second.body
    sunk = other.holds(pose, first.probe) / len(first.probe)
    held = body.holds(inverse(pose), second.probe) / len(second.probe)
    area = min(here["tight"], there["tight"])
    entered = (sunk * len(body.points) + held * len(other.points)) * (body.spacing / spacing) ** 2
    breaks, mixed, intact = _contact(pose, body, other)
    everything = breaks + mixed + intact
    numbers = [
        np.log1p(area),
        np.log1p(max(here["tight"], there["tight"])),
        np.log1p(here["loose"]),
        here["tight"] / max(1.0, here["loose"]),
        here["tight"] / len(first.points),
        there["tight"] / len(second.points),
        here["loose"] / len(first.points),
        there["loose"] / len(second.points),
        here["height"],
        there["height"],
        here["facing"],
        there["facing"],
        np.log1p(entered),
        entered / max(10.0, area),
        here["rim"],
        there["rim"],
        here["original"],
        np.log1p(here["rims"]),
        here["likeness"],
        float(level),
        np.log1p(len(first.points)),
        np.log1p(len(second.points)),
        here["relief"],
        here["stretch"],
        np.log1p(votes),
        np.clip(margin, 0, 5),
        np.log1p(breaks),
        np.log1p(mixed),
        np.log1p(intact),
        breaks / max(5.0, everything),
        here["ledge"],
        here["even"],
        here["hold"],
        here["width"],
    ]
    return np.array(numbers, np.float32)


def _contact(pose: Pose, first: BodySurface, second: BodySurface) -> tuple[int, int, int]:
    """Points of the whole first surface that lie on the second: break on break, break on intact, intact on intact."""
    step = max(1, len(first.points) // _MOST)
    points, normals = first.points[::step], first.normals[::step]
    near, numbers = meet(pose, points, normals, second.voxels, second.points, second.normals)
    far, height, facing = numbers[:, 0] / first.spacing, np.abs(numbers[:, 1]) / first.spacing, numbers[:, 2]
    touching = (near >= 0) & (far < 1.5) & (height < 0.5) & (facing < -0.7)
    count = first.broken[::step][touching].astype(int) + second.broken[near[touching]]
    breaks, mixed, intact = (step * int((count == number).sum()) for number in (2, 1, 0))
    return breaks, mixed, intact


def _meeting(pose: np.ndarray, first: FractureSide, second: FractureSide, spacing: float) -> dict[str, float]:
    """Sums over the points of the first break that touch the second."""
    step = max(1, len(first.points) // _MOST)
    own = slice(None, None, step)
    points, smooth = np.ascontiguousarray(first.points[own]), np.ascontiguousarray(first.smooth[own])
    near, numbers = meet(pose, points, smooth, *second.target)
    far, height, facing = numbers[:, 0] / spacing, np.abs(numbers[:, 1]) / spacing, numbers[:, 2]
    loose = (near >= 0) & (far < 2.2) & (height < 1.2) & (facing < -0.4)
    tight = loose & (far < 1.5) & (height < 0.5) & (facing < -0.7)
    count = max(1, int(loose.sum()))
    candidates = near[tight]
    rim, other_rim = first.surface.rim[own][tight], second.surface.rim[candidates]
    both = (rim < 2.5) & (other_rim < 2.5)
    either = (rim < 2.0) | (other_rim < 2.0)
    turned = first.surface.original[own][tight] @ pose[:9].reshape(3, 3).T.astype(np.float32)
    alike = (turned * second.surface.original[candidates]).sum(1)
    likeness = (first.surface.counterparts[own][tight] * second.surface.descriptors[candidates]).sum(1)
    held = max(1, int(tight.sum()))
    rows = np.flatnonzero(tight)[both] * step
    ledge = _ledges(pose, first.surface, rows, second.surface, candidates[both]) / spacing
    return {
        "tight": float(tight.sum()) * step,
        "loose": float(loose.sum()) * step,
        "height": float(height[loose].sum()) / count,
        "facing": float(facing[loose].sum()) / count,
        "rim": float((np.abs(rim - other_rim)[either] < 1.5).sum()) / max(1, int(either.sum())),
        "rims": float(both.sum()) * step,
        "original": float(alike[both].sum()) / max(1, int(both.sum())),
        "likeness": float(likeness.sum()) / held,
        "ledge": float(np.minimum(ledge, 3).mean()) if len(ledge) else 3.0,
        "even": float((ledge < 0.5).mean()) if len(ledge) else 0.0,
        "width": float(rim.mean()) if len(rim) else 0.0,
        **_spread(points[tight], smooth[tight], spacing),
    }


def _ledges(
    pose: Pose, first: FractureSurface, own: np.ndarray, second: FractureSurface, other: np.ndarray
) -> Float32[np.ndarray, "p"]:
    """How high the step between the original surfaces is beside points of two rims that lie on each other."""
    apart = transformed(pose, first.points[own] + first.edge[own]) - second.points[other] - second.edge[other]
    return np.abs((apart * second.original[other]).sum(1))


def _spread(points: np.ndarray, normals: np.ndarray, spacing: float) -> dict[str, float]:
    """How rough the touching part is, how far it stretches across its length, and how firmly it holds against sliding.

    The last is the root of the least of the six numbers of the normals' information about a motion, turns taken at
    the distance that the touching part has from its middle: 0 where one motion changes nothing.
    """
    if len(points) < 6:
        return {"relief": 0.0, "stretch": 0.0, "hold": 0.0}
    centred = points - points.mean(0)
    widths = np.sqrt(np.maximum(np.linalg.eigvalsh(centred.T @ centred / len(points)), 0)) / spacing
    turned = np.sqrt(np.maximum(np.linalg.eigvalsh(normals.T @ normals / len(points)), 0))
    size = max(float(np.sqrt((centred**2).sum(1).mean())), 1e-9)
    rows = np.concatenate([np.cross(centred, normals) / size, normals], 1)
    least = max(0.0, float(np.linalg.eigvalsh(rows.T @ rows / len(points))[0]))
    return {
        "relief": float(turned[0] + turned[1]),
        "stretch": float(np.log1p(widths[1])),
        "hold": float(np.sqrt(least)),
    }


@dataclass(frozen=True)
class Match:
    """If the second cluster stays, the first stands at the pose."""

    pose: Pose
    probability: float
    level: int
    votes: int
    features: Float32[np.ndarray, "v"]
    slides: bool = False
    """whether the two could slide along each other, as two sawn planes do, and no rims say where to stop"""
    ceiling: float = 1.0
    """how sure it may be told at most, whatever it is verified against later, because of how it was found"""

    def capped(self, ceiling: float) -> Match:
        """The same match, no surer than this."""
        ceiling = min(self.ceiling, ceiling)
        return replace(self, probability=min(self.probability, ceiling), ceiling=ceiling)

    def reversed(self) -> Match:
        """The same match with first and second exchanged."""
        return replace(self, pose=inverse(self.pose))


def level_for(first: Cluster, second: Cluster) -> int:
    """The coarsest level at which both breaks show enough: level 1, or finer where one has few points there."""
    level = min(1, *(cluster.finest for cluster in (first, second)))
    few = any(side is None or len(side.points) < _FEW for side in (first.side(level), second.side(level)))
    return level + 1 if few and can_refine(first, second, level + 1) else level


def can_refine(first: Cluster, second: Cluster, level: int) -> bool:
    """Whether data show a level, and neither break has too many points to handle there, by what the coarser one has."""
    sides = first.side(level - 1), second.side(level - 1)
    shown = level <= min(first.finest, second.finest)
    return shown and all(side is None or len(side.points) < _MANY for side in sides)


def match_clusters(
    first: Cluster, second: Cluster, level: int, effort: Effort, models: FractureModels, seed: int, most: int = _KEPT
) -> list[Match]:
    """Search for matches of two clusters at one level, the most probable first."""
    own, other = first.side(level), second.side(level)
    if own is None or other is None:
        return []
    if len(own.points) > len(other.points):
        return [match.reversed() for match in match_clusters(second, first, level, effort, models, seed, most)]
    spacing = first.fragments[0].spacing / 2**level
    return verify(search(own, other, spacing, effort, seed), own, other, spacing, level, models)[:most]


def reverify(first: Cluster, second: Cluster, matches: Sequence[Match], models: FractureModels) -> list[Match]:
    """Matches that were found for members of two clusters, refined and verified anew for the clusters."""
    result: list[Match] = []
    for level, ceiling in sorted({(match.level, match.ceiling) for match in matches}):
        own, other = first.side(level), second.side(level)
        if own is None or other is None:
            continue
        spacing = first.fragments[0].spacing / 2**level
        here = [match for match in matches if (match.level, match.ceiling) == (level, ceiling)]
        swapped = len(own.points) > len(other.points)
        if swapped:
            own, other, here = other, own, [match.reversed() for match in here]
        step = max(1, len(own.points) // 1500)
        some = np.ascontiguousarray(own.points[::step]), np.ascontiguousarray(own.smooth[::step])
        poses = np.stack([refine(match.pose, *some, other.target, 1.6 * spacing, 1.0 * spacing, 5) for match in here])
        candidates = Candidates(poses, np.array([match.votes for match in here]))
        verified = [match.capped(ceiling) for match in verify(candidates, own, other, spacing, level, models)]
        result += [match.reversed() for match in verified] if swapped else verified
    return sorted(result, key=lambda match: -match.probability)


def verify(
    candidates: Candidates, own: FractureSide, other: FractureSide, spacing: float, level: int, models: FractureModels
) -> list[Match]:
    """Poses of one side against another with the probabilities that they are true, by shapes and colours."""
    poses, votes = candidates
    if not len(poses):
        return []
    worth = np.array([rating(pose, own, other, spacing) for pose in poses])
    numbers = []
    for i, pose in enumerate(poses):
        others = np.delete(worth, i)
        margin = worth[i] / max(10.0, others.max()) if len(others) else 5.0
        numbers.append(match_features(pose, own, other, spacing, level, int(votes[i]), float(margin)))
    table = np.stack(numbers)
    chance = models.verification(table)
    colours = colour_evidence(poses, own, other, spacing)
    told = colours != 0
    both = chance[told] / (chance[told] + (1 - chance[told]) * np.exp(-colours[told]))
    chance[told] = np.minimum(both, np.maximum(chance[told], _SURE))
    slides = np.array(
        [one >= _ASKED and can_slide(pose, own, other, spacing) for pose, one in zip(poses, chance, strict=True)]
    )
    chance = np.where(slides, np.minimum(chance, _SLIDING), chance)
    rows = zip(poses, chance, votes, table, slides, strict=True)
    matches = [Match(pose, float(sure), level, int(vote), row, bool(loose)) for pose, sure, vote, row, loose in rows]
    return sorted(matches, key=lambda match: -match.probability)


def can_slide(pose: Pose, own: FractureSide, other: FractureSide, spacing: float) -> bool:
    """Whether one side could move along the other without leaving it, and no rim says where to stop."""
    held = hold(pose, own, other, spacing)
    return held.breaks < _FIRM and (held.rims < _PINNED or held.around < _AROUND)


def prepare(pieces: FragmentPieces, models: FractureModels, seed: int) -> list[Fragment]:
    """Fragments ready for matching; what is drawn for each depends on the seed and its place in the list."""
    spacing = spacing_of(pieces)

    def ready(number: int) -> Fragment:
        fragment = Fragment(with_normals(facing_outward(pieces.meshes[number])), spacing, models, seed + number)
        fragment.fracture(min(1, fragment.finest))
        return fragment

    return run_parallel(ready, range(len(pieces)))


def run_parallel(work: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """The results of all jobs, in their order, by as many threads as torch has; each has memory of its own."""
    if torch.get_num_threads() == 1:
        return [work(job) for job in jobs]
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        return list(pool.map(work, jobs))


class PairSearch:
    """Matches of every two fragments by themselves: a pair is searched once, whoever asks.

    What is drawn depends on `draws` and the fragments alone.
    """

    def __init__(self, fragments: Sequence[Fragment], models: FractureModels, draws: int = 0) -> None:
        self.fragments, self.models, self.draws = fragments, models, draws
        self.singles = [Cluster(self.fragments, {piece: IDENTITY}) for piece in range(len(self.fragments))]
        self._found: dict[tuple[int, int, int, Effort], list[Match]] = {}

    def level(self, first: int, second: int, finer: int = 0) -> int | None:
        """The level at which two fragments are compared, so much finer than needed; none where that shows nothing."""
        one, two = self.singles[first], self.singles[second]
        level = level_for(one, two) + finer
        if (finer and not can_refine(one, two, level)) or one.side(level) is None or two.side(level) is None:
            return None
        return level

    def between(self, first: int, second: int, finer: int = 0, effort: Effort = QUICK) -> list[Match]:
        """The most probable poses of the first fragment if the second stays."""
        if first > second:
            return [match.reversed() for match in self.between(second, first, finer, effort)]
        if (first, second, finer, effort) not in self._found:
            level, found = self.level(first, second, finer), []
            if level is not None:
                seed = mixed_seed(self.draws, finer, first, second)
                pair = self.singles[first], self.singles[second]
                found = match_clusters(*pair, level, effort, self.models, seed)
            self._found[first, second, finer, effort] = found
        return self._found[first, second, finer, effort]

    def thoroughly(self, first: int, second: int) -> list[Match]:
        """The same, and once more at a finer level where none is likely."""
        found = self.between(first, second)
        if max((match.probability for match in found), default=0.0) < _LIKELY:
            found = sorted(found + self.between(first, second, 1), key=lambda match: -match.probability)[:_KEPT]
        return found


class PairSearchCache:
    """Makes the search of a puzzle's fragments, and gives the same one to all who then ask for the same fragments."""

    def __init__(self, models: FractureModels, draws: int = 0) -> None:
        self.models, self.draws = models, draws
        self._last: tuple[Tensor, PairSearch] | None = None

    def __call__(self, pieces: FragmentPieces) -> PairSearch:
        if self._last is None or not torch.equal(self._last[0], pieces.points):
            search = PairSearch(prepare(pieces, self.models, self.draws), self.models, self.draws)
            self._last = pieces.points, search
        return self._last[1]


def find_matches(search: PairSearch, budget: float = math.inf) -> Matches:
    """The few most probable matches of every two fragments, in both directions; all fragments have slot 0.

    Channels of evidence: the probability that the match is true, the same over that of the best match of either
    fragment, and the share of the smaller fracture surface that touches. After `budget` seconds pairs are left out.
    """
    until = time.monotonic() + budget
    count = len(search.fragments)
    pairs = [(first, second) for first in range(count) for second in range(first)]
    for first, second in pairs:
        for finer in (0, 1):  # sides are made one after another, since what is drawn for them depends on the order
            search.level(second, first, finer)

    def look(pair: tuple[int, int]) -> list[Match]:
        return [] if time.monotonic() > until else search.thoroughly(*pair)

    looked = zip(pairs, run_parallel(look, pairs), strict=True)
    found = [(*pair, match) for pair, matches in looked for match in matches if match.probability >= _LEAST]
    return as_matches(found, count)


def as_matches(found: Sequence[tuple[int, int, Match]], count: int) -> Matches:
    """Matches of fragments by their numbers (the first stands at the pose if the second stays), told both ways."""
    both = [*found, *((second, first, match.reversed()) for first, second, match in found)]
    numbers = torch.tensor([(first, second) for first, second, _ in both]).long().view(-1, 2)
    chance = torch.tensor([match.probability for _, _, match in both])
    share = torch.tensor([float(match.features[4]) for _, _, match in both]).clamp(0, 1)
    best = torch.zeros(count).scatter_reduce(0, numbers[:, 0], chance, "amax")
    rank = chance / best[numbers].amax(1).clamp(min=1e-9)
    relative = poses_of(np.array([match.pose for _, _, match in both]).reshape(-1, 12))
    evidence = torch.stack([chance, rank, share], 1)
    return Matches(numbers[:, 0], numbers[:, 1], relative, torch.zeros(len(both), dtype=torch.long), evidence)
