"""Fragments joined one after another: the surest fit first, what was joined is matched anew against the rest."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diffassemble.compatibility.fracture.clusters import STAY, Cluster, Pose, composed
from diffassemble.compatibility.fracture.contact import undone
from diffassemble.compatibility.fracture.fits import Fit, can_refine, level_for, match, review
from diffassemble.compatibility.fracture.fragments import Fragment
from diffassemble.compatibility.fracture.judges import Judges
from diffassemble.compatibility.fracture.pair_search import Effort

QUICK = Effort()
HARD = Effort(keys=600, mates=60, draws=2_000_000, proposals=1200, refined=50, kept=10, everywhere=6)
SURE, LIKELY, POSSIBLE = 0.9, 0.5, 0.15
_KEPT = 6
# Where both breaks have more points than this, a finer level shows nothing new.
_LARGE = 1200


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


_ALL = 1000
ROUNDS = (
    Round(QUICK, 0, SURE, _ALL, 150),
    Round(QUICK, 0, LIKELY, _ALL, 150),
    Round(QUICK, 0, LIKELY, 3),
    Round(QUICK, 1, LIKELY, 3),
    Round(HARD, 0, LIKELY, 2),
    Round(HARD, 0, POSSIBLE, 2),
)


class Bench:
    """Clusters on a workbench, the fits known between them, and how sure each piece's place is."""

    def __init__(self, fragments: Sequence[Fragment], judges: Judges, seed: int, until: float = math.inf) -> None:
        self.fragments, self.judges, self.seed, self.until = fragments, judges, seed, until
        self.clusters = [Cluster(fragments, {piece: STAY}) for piece in range(len(fragments))]
        self.fits: dict[tuple[Cluster, Cluster], list[Fit]] = {}
        self.searched: set[tuple[Cluster, Cluster, int]] = set()
        self.confidence = [1.0] * len(fragments)
        self.anchor = max(range(len(fragments)), key=lambda piece: (fragments[piece].area, -piece))

    @property
    def late(self) -> bool:
        return time.monotonic() > self.until

    def assemble(self) -> Iterator[float]:
        """Join what fits, round by round; yields the probability of each join as it is made."""
        for number, effort in enumerate(ROUNDS):
            yield from self._join_down_to(effort.least)
            while len(self.clusters) > 1 and not self.late and self._search_all(number, effort):
                before = len(self.clusters)
                yield from self._join_down_to(effort.least)
                if len(self.clusters) == before:
                    break
        yield from self._join_down_to(0.0)

    def _pairs(self, partners: int) -> list[tuple[Cluster, Cluster]]:
        """Every cluster with those that are larger, if they are among the largest."""
        ordered = sorted(self.clusters, key=lambda cluster: (-cluster.area, cluster.members))
        return [(ordered[i], ordered[j]) for j in range(len(ordered)) for i in range(min(j, partners))]

    def _search_all(self, number: int, effort: Round) -> bool:
        """Look for fits of all pairs of clusters that were not yet looked at like this; whether there were any."""
        pairs = [pair for pair in self._pairs(effort.partners) if pair[1].points >= effort.smallest]
        todo = [pair for pair in pairs if (*pair, number) not in self.searched]
        for large, small in todo:
            if self.late:
                break
            self.searched.add((large, small, number))
            level = level_for(small, large)
            if effort.finer and not self._gains_by(level + effort.finer, small, large):
                continue
            level += effort.finer
            if (large, small, number - 1) in self.searched and effort.repeats(ROUNDS[number - 1]):
                continue
            seed = hash((self.seed, number, large.members, small.members)) & 0x7FFFFFFF
            self._learn(small, large, match(small, large, level, effort.effort, self.judges, seed))
        return bool(todo)

    def _gains_by(self, level: int, small: Cluster, large: Cluster) -> bool:
        """Whether a finer level shows more: not where both breaks are large already."""
        sides = small.side(level - 1), large.side(level - 1)
        few = any(side is not None and len(side.points) < _LARGE for side in sides)
        return few and can_refine(small, large, level)

    def _learn(self, first: Cluster, second: Cluster, fits: list[Fit]) -> None:
        known = self.fits.get((first, second), [])
        self.fits[first, second] = sorted(known + fits, key=lambda fit: -fit.probability)[:_KEPT]

    def _best(self) -> tuple[Cluster, Cluster, Fit] | None:
        ranked = [(fits[0].probability, pair) for pair, fits in self.fits.items() if fits]
        if not ranked:
            return None
        _, pair = max(ranked, key=lambda entry: (entry[0], entry[1][0].members, entry[1][1].members))
        return *pair, self.fits[pair][0]

    def _join_down_to(self, least: float) -> Iterator[float]:
        """Join the surest fit as long as there is one of at least this probability."""
        while len(self.clusters) > 1 and not (least > 0 and self.late):
            best = self._best()
            if best is None or best[2].probability < least:
                return
            self._join(*best)
            yield best[2].probability

    def _join(self, first: Cluster, second: Cluster, fit: Fit) -> None:
        """Make one cluster of two, and carry over what is known about both."""
        loose = first if self.anchor not in first.members and first.area <= second.area else second
        if self.anchor in loose.members:
            loose = second if loose is first else first
        for piece in loose.members:
            self.confidence[piece] *= fit.probability
        both = first.with_other(second, fit.pose)
        self.clusters = [c for c in self.clusters if c is not first and c is not second] + [both]
        self.searched = {entry for entry in self.searched if first not in entry and second not in entry}
        carried = self._carry(first, fit.pose) + self._carry(second, STAY)
        self.fits = {pair: fits for pair, fits in self.fits.items() if first not in pair and second not in pair}
        for other in self.clusters:
            known = sorted((fit for partner, fit in carried if partner is other), key=lambda fit: -fit.probability)
            if other is not both and known:
                self.fits[other, both] = known if self.late else review(other, both, known, self.judges)[:_KEPT]

    def _carry(self, cluster: Cluster, pose: Pose) -> list[tuple[Cluster, Fit]]:
        """Fits of others with a cluster that now stands at the pose, as (the other, its fit with the whole)."""
        carried = []
        for (first, second), fits in self.fits.items():
            for fit in fits:
                if second is cluster:
                    carried.append((first, _moved(fit, pose)))
                elif first is cluster:
                    carried.append((second, _moved(fit.turned_round(), pose)))
        return carried


def _moved(fit: Fit, pose: Pose) -> Fit:
    """The fit after its second cluster was moved."""
    return Fit(composed(pose, fit.pose), fit.probability, fit.level, fit.votes, fit.numbers)


def standing(cluster: Cluster, piece: int) -> Pose:
    """The pose that brings a cluster into the frame of one of its pieces."""
    return undone(cluster.poses[piece])
