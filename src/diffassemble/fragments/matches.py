"""The matcher of broken objects: every two fragments, or clusters of them, are searched for poses at which they fit.

Pair search proposes poses, verification gives each a probability; `find_matches` returns the candidates of a whole
puzzle as `Matches`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from diffassemble.core import FragmentPieces, Matches
from diffassemble.core.seeds import mixed_seed
from diffassemble.core.thresholds import LIKELY
from diffassemble.fragments.clusters import FRAGMENT, Cluster, Fragment, FragmentConfig
from diffassemble.fragments.contact import IDENTITY, inverse, poses_of
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import PAIR_SEARCH, QUICK, Effort, PairSearchConfig, Sides, search
from diffassemble.fragments.surface import facing_outward, spacing_of, with_normals
from diffassemble.fragments.verification import VERIFICATION, Match, VerificationConfig, verify

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class MatchingConfig:
    """How fragments are prepared, searched and verified."""

    fragment: FragmentConfig = FRAGMENT
    search: PairSearchConfig = PAIR_SEARCH
    verification: VerificationConfig = VERIFICATION
    few: int = 150
    """breaks with fewer points at level 1 are compared one level finer"""
    many: int = 12_000
    """breaks with more points are not compared any finer"""
    kept: int = 4
    """matches of two clusters that are kept"""
    settled: int = 1500
    """points by which a match is refined for a grown cluster, about"""
    settling: tuple[float, float, int] = (1.6, 1.0, 5)
    """first and last radius of that refinement in spacings, and its rounds"""
    least: float = 0.02
    """matches of a lower probability are no candidates of a puzzle"""


MATCHING = MatchingConfig()


def level_for(first: Cluster, second: Cluster, config: MatchingConfig = MATCHING) -> int:
    """The coarsest level at which both breaks show enough: level 1, or finer where one has few points there."""
    level = min(1, *(cluster.finest for cluster in (first, second)))
    few = any(side is None or len(side.points) < config.few for side in (first.side(level), second.side(level)))
    return level + 1 if few and can_refine(first, second, level + 1, config) else level


def can_refine(first: Cluster, second: Cluster, level: int, config: MatchingConfig = MATCHING) -> bool:
    """Whether data show a level, and neither break has too many points to handle there, by what the coarser one has."""
    sides = first.side(level - 1), second.side(level - 1)
    shown = level <= min(first.finest, second.finest)
    return shown and all(side is None or len(side.points) < config.many for side in sides)


def match_clusters(
    first: Cluster,
    second: Cluster,
    level: int,
    effort: Effort,
    models: FractureModels,
    seed: int,
    most: int | None = None,
    config: MatchingConfig = MATCHING,
) -> list[Match]:
    """Matches of two clusters at one level, the `most` most probable ones (`config.kept`, if not given)."""
    if first.side(level) is None or second.side(level) is None:
        return []
    sides, swapped = compared(first, second, level)
    poses, votes = search(sides, effort, seed, config.search)
    found = verify(poses, votes, sides, level, models, config.verification, config.search)
    found = found[: config.kept if most is None else most]
    return [match.reversed() for match in found] if swapped else found


def reverify(
    first: Cluster, second: Cluster, matches: Sequence[Match], models: FractureModels, config: MatchingConfig = MATCHING
) -> list[Match]:
    """Matches that were found for members of two clusters, refined and verified anew for the clusters."""
    result: list[Match] = []
    for level, ceiling in sorted({(match.level, match.ceiling) for match in matches}):
        if first.side(level) is None or second.side(level) is None:
            continue
        sides, swapped = compared(first, second, level)
        here = [match for match in matches if (match.level, match.ceiling) == (level, ceiling)]
        poses, votes = np.stack([match.pose for match in here]), np.array([match.votes for match in here])
        count = len(sides.own.points)
        some = np.arange(0, count, max(1, count // config.settled))[None]
        poses = sides.refined(inverse(poses) if swapped else poses, config.settling, some)
        verified = verify(poses, votes, sides, level, models, config.verification, config.search)
        anew = [match.capped(ceiling) for match in verified]
        result += [match.reversed() for match in anew] if swapped else anew
    return sorted(result, key=lambda match: -match.probability)


def compared(first: Cluster, second: Cluster, level: int) -> tuple[Sides, bool]:
    """The sides of two clusters, the smaller break first, and whether that is the second's."""
    own, other = first.side(level), second.side(level)
    assert own is not None
    assert other is not None
    sides = Sides(own, other, first.fragments[0].spacing / 2**level)
    return (sides.swapped, True) if len(own.points) > len(other.points) else (sides, False)


def prepare(
    pieces: FragmentPieces, models: FractureModels, seed: int, config: FragmentConfig = FRAGMENT
) -> list[Fragment]:
    """Fragments ready for matching; what is drawn for each depends on the seed and its place in the list."""
    spacing = spacing_of(pieces, config.sampling)

    def ready(number: int) -> Fragment:
        mesh = with_normals(facing_outward(pieces.meshes[number], config.sampling))
        fragment = Fragment(mesh, spacing, models, seed + number, config)
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
    """Matches of every two single fragments; the result of each search is kept.

    Random draws depend on `draws` and the fragments alone.
    """

    def __init__(
        self, fragments: Sequence[Fragment], models: FractureModels, draws: int = 0, config: MatchingConfig = MATCHING
    ) -> None:
        self.fragments, self.models, self.draws, self.config = fragments, models, draws, config
        self.singles = [Cluster(self.fragments, {piece: IDENTITY}) for piece in range(len(self.fragments))]
        self._found: dict[tuple[int, int, int, Effort], list[Match]] = {}

    def level(self, first: int, second: int, finer: int = 0) -> int | None:
        """The level at which two fragments are compared, so much finer than needed; none where that shows nothing."""
        pair = self.singles[first], self.singles[second]
        level = level_for(*pair, self.config) + finer
        shown = not finer or can_refine(*pair, level, self.config)
        return level if shown and all(one.side(level) is not None for one in pair) else None

    def between(self, first: int, second: int, finer: int = 0, effort: Effort = QUICK) -> list[Match]:
        """The most probable poses of the first fragment if the second stays."""
        if first > second:
            return [match.reversed() for match in self.between(second, first, finer, effort)]
        if (first, second, finer, effort) not in self._found:
            level, found = self.level(first, second, finer), []
            if level is not None:
                seed = mixed_seed(self.draws, finer, first, second)
                pair = self.singles[first], self.singles[second]
                found = match_clusters(*pair, level, effort, self.models, seed, config=self.config)
            self._found[first, second, finer, effort] = found
        return self._found[first, second, finer, effort]

    def thoroughly(self, first: int, second: int) -> list[Match]:
        """The same, and once more at a finer level where none is likely."""
        found = self.between(first, second)
        if max((match.probability for match in found), default=0.0) < LIKELY:
            found = sorted(found + self.between(first, second, 1), key=lambda match: -match.probability)
        return found[: self.config.kept]


class PairSearchCache:
    """Makes the pair search of a puzzle's fragments, and keeps the last one: solvers of the same puzzle share it."""

    def __init__(self, models: FractureModels, draws: int = 0, config: MatchingConfig = MATCHING) -> None:
        self.models, self.draws, self.config = models, draws, config
        self._last: tuple[Tensor, PairSearch] | None = None

    def __call__(self, pieces: FragmentPieces) -> PairSearch:
        if self._last is None or not torch.equal(self._last[0], pieces.points):
            fragments = prepare(pieces, self.models, self.draws, self.config.fragment)
            search = PairSearch(fragments, self.models, self.draws, self.config)
            self._last = pieces.points, search
        return self._last[1]


def find_matches(search: PairSearch, budget: float = math.inf) -> Matches:
    """The few most probable matches of every two fragments, in both directions.

    Channels of evidence: the probability that the match is true, the same over that of the best match of either
    fragment, and the share of the smaller fracture surface that touches. After `budget` seconds pairs are left out.
    """
    until, count = time.monotonic() + budget, len(search.fragments)
    pairs = [(first, second) for first in range(count) for second in range(first)]
    for first, second in pairs:
        for finer in (0, 1):  # sides are made one after another, since what is drawn for them depends on the order
            search.level(second, first, finer)

    def searched(pair: tuple[int, int]) -> list[Match]:
        return [] if time.monotonic() > until else search.thoroughly(*pair)

    results = zip(pairs, run_parallel(searched, pairs), strict=True)
    found = [(*pair, one) for pair, matches in results for one in matches if one.probability >= search.config.least]
    return as_matches(found, count)


def as_matches(found: Sequence[tuple[int, int, Match]], count: int) -> Matches:
    """Matches of fragments by their numbers, in both directions."""
    both = [*found, *((second, first, match.reversed()) for first, second, match in found)]
    numbers = torch.tensor([(first, second) for first, second, _ in both]).long().view(-1, 2)
    chance = torch.tensor([match.probability for _, _, match in both])
    share = torch.tensor([float(match.features[4]) for _, _, match in both]).clamp(0, 1)
    best = torch.zeros(count).scatter_reduce(0, numbers[:, 0], chance, "amax")
    rank = chance / best[numbers].amax(1).clamp(min=1e-9)
    relative = poses_of(np.array([match.pose for _, _, match in both]).reshape(-1, 12))
    evidence = torch.stack([chance, rank, share], 1)
    return Matches(numbers[:, 0], numbers[:, 1], relative, torch.zeros(len(both), dtype=torch.long), evidence)
