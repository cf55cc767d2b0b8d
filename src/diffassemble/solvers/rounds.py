"""How clusters come together: round by round harder looked at, the surest fit joined first, small pieces cast last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch

from diffassemble.compatibility.fracture.clusters import STAY, Cluster, Pose, composed
from diffassemble.compatibility.fracture.fits import Fit, can_refine, level_for, match
from diffassemble.compatibility.fracture.gaps import find_gaps
from diffassemble.compatibility.fracture.moulds import CAST, cast
from diffassemble.compatibility.fracture.pair_search import Effort
from diffassemble.compatibility.fracture.sampling import is_cloud
from diffassemble.solvers.merging import Bench

Joining = Callable[[Bench, float], Iterator[float]]
"""Makes all joins of a bench down to a probability, and yields their probabilities."""

QUICK = Effort()
HARD = Effort(keys=600, mates=60, draws=2_000_000, proposals=1200, refined=50, kept=10, everywhere=6)
SURE, LIKELY, POSSIBLE = 0.9, 0.5, 0.15
# Where both breaks have more points than this, a finer level shows nothing new.
_LARGE = 1200
_ALL, _AT_ONCE = 1000, 200
# Pieces whose break has fewer points than this at level 0 are not compared with others, only cast.
_LEAST = 40
# Before this round small pieces, of at most this share of the whole surface, are cast into the gaps of the largest
# cluster, which are looked at in this part of the spacing of level 0; then again, for those whose gap another one took.
_CASTING, _SMALL, _GAP, _PASSES = 4, 0.006, 1 / 3, 3
# Middles of two small pieces are at least this share of both widths apart.
_CROWDED = 0.3


@dataclass(frozen=True)
class Round:
    """How hard pairs are looked at anew, how much finer than needed, how probable a fit must be to be used, how many of
    the largest clusters the others are compared with, and how many points a break must have at level 0."""

    effort: Effort
    finer: int
    least: float
    partners: int
    smallest: int = 0

    def repeats(self, other: Round) -> bool:
        """Whether it looks as another round did."""
        return (self.effort, self.finer) == (other.effort, other.finer)


ROUNDS = (
    Round(QUICK, 0, SURE, _ALL, 150),
    Round(QUICK, 0, LIKELY, _ALL, 150),
    Round(QUICK, 0, LIKELY, 3, _LEAST),
    Round(QUICK, 1, LIKELY, 3, _LEAST),
    Round(HARD, 0, LIKELY, 2, _LEAST),
    Round(HARD, 0, POSSIBLE, 2, _LEAST),
)


def assemble(bench: Bench, least: float, join: Joining = Bench.join_down_to) -> Iterator[float]:
    """Join what fits with at least this probability; yields the probability of each join as it is made.

    Goes on with the round in which the bench stands.
    """
    for number in range(bench.round, len(ROUNDS)):
        bench.round = number
        goal = max(ROUNDS[number].least, least)
        yield from join(bench, goal)
        if number == _CASTING:
            yield from cast_small(bench, max(LIKELY, least))
        while len(bench.clusters) > 1 and not bench.search_late and search_some(bench, number):
            yield from join(bench, goal)
    # What was found in haste was not judged beside the rest: then only what is likely is used.
    yield from join_apart(bench, max(LIKELY, least) if bench.late else least)
    bench.polish()


def search_some(bench: Bench, number: int) -> bool:
    """Look for fits of pairs of clusters that were not yet looked at in this round; whether there were any.

    The largest clusters come first; of very many pairs only some, so that what is found can be joined in between.
    """
    effort = ROUNDS[number]
    ordered = bench.ordered
    pairs = [(ordered[i], ordered[j]) for j in range(len(ordered)) for i in range(min(j, effort.partners))]
    todo = [pair for pair in pairs if pair[1].points >= effort.smallest and (*pair, number) not in bench.searched]
    jobs = []
    for large, small in todo[:_AT_ONCE]:
        again = (large, small, number - 1) in bench.searched and effort.repeats(ROUNDS[number - 1])
        bench.searched.add((large, small, number))
        level = level_for(small, large)
        if again or (effort.finer and not _gains_by(level + effort.finer, small, large)):
            continue
        # Sides are made here, one after another, since what is drawn for them depends on the order.
        if small.side(level + effort.finer) is not None and large.side(level + effort.finer) is not None:
            jobs.append((small, large, level + effort.finer))
        if bench.search_late:
            break

    def look(job: tuple[Cluster, Cluster, int]) -> list[Fit]:
        small, large, level = job
        if bench.search_late:
            return []
        seed = hash((bench.seed, number, large.members, small.members)) & 0x7FFFFFFF
        return match(small, large, level, effort.effort, bench.judges, seed)

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for (small, large, _), fits in zip(jobs, pool.map(look, jobs), strict=True):
            bench.learn(small, large, fits)
    return bool(todo)


def cast_small(bench: Bench, least: float) -> Iterator[float]:
    """Cast small single pieces into the gaps of the first cluster; yields the probabilities of joins."""
    limit = _small(bench)
    for _ in range(_PASSES):
        before = len(bench.clusters)
        if before < 2 or bench.search_late:
            return
        bench.polish()
        main, *others = bench.ordered
        small = [other for other in others if len(other.members) == 1 and other.area < limit]
        small = [other for other in small if not any(fit.level == CAST for fit in bench.fits.get((other, main), []))]
        # Clouds of points show nothing finer than what was looked at already.
        if not small or len(main.members) < 2 or any(is_cloud(fragment.mesh) for fragment in bench.fragments):
            return
        gaps = find_gaps(main, _GAP * bench.fragments[0].spacing)
        for other in small:
            if not bench.search_late:
                seed = hash((bench.seed, other.members, main.members)) & 0x7FFFFFFF
                bench.learn(other, main, cast(bench.fragments[other.members[0]], main, gaps, seed))
        yield from join_apart(bench, least)
        if len(bench.clusters) == before:
            return


def join_apart(bench: Bench, least: float) -> Iterator[float]:
    """Join down to a probability, but cast no two small pieces into one gap."""
    limit = _small(bench)
    for probability in bench.join_down_to(least):
        bench.forget(lambda first, second, fit: fit.level == CAST and crowded(first, second, fit.pose, limit))
        yield probability


def crowded(small: Cluster, whole: Cluster, pose: Pose, limit: float) -> bool:
    """Whether a single piece at a pose would stand where another one, of less than this area, stands already."""
    if len(small.members) > 1:
        return False
    middle, width = _measure(small, small.members[0], pose)
    for piece in whole.members:
        if whole.fragments[piece].area < limit:
            other, wide = _measure(whole, piece, STAY)
            if np.linalg.norm(middle - other) < _CROWDED * (width + wide):
                return True
    return False


def _small(bench: Bench) -> float:
    """The area below which a piece counts as small."""
    return _SMALL * sum(fragment.area for fragment in bench.fragments)


def _measure(cluster: Cluster, piece: int, pose: Pose) -> tuple[np.ndarray, float]:
    """The middle of a member of a cluster at a pose, and how wide it is."""
    corners = cluster.fragments[piece].mesh.vertices.numpy()
    stands = composed(pose, cluster.poses[piece])
    middle = stands[:9].reshape(3, 3) @ ((corners.min(0) + corners.max(0)) / 2) + stands[9:]
    return middle, float(np.linalg.norm(np.ptp(corners, axis=0)))


def _gains_by(level: int, small: Cluster, large: Cluster) -> bool:
    """Whether a finer level shows more: not where both breaks are large already."""
    sides = small.side(level - 1), large.side(level - 1)
    few = any(side is not None and len(side.points) < _LARGE for side in sides)
    return few and can_refine(small, large, level)
