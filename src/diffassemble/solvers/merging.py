"""Clusters of fragments on a workbench: what is known about how they fit, and how two become one."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from diffassemble.compatibility.fracture.clusters import STAY, Cluster, Pose, composed
from diffassemble.compatibility.fracture.contact import undone
from diffassemble.compatibility.fracture.fits import Fit, review
from diffassemble.compatibility.fracture.fragments import Fragment
from diffassemble.compatibility.fracture.judges import Judges
from diffassemble.compatibility.fracture.moulds import CAST
from diffassemble.compatibility.fracture.polish import polished

_KEPT = 6
Known = tuple[Cluster, Cluster, Fit]
"""Two clusters and one of the fits that are known between them."""

# This share of the time is for searching, the rest for joining what was found.
_SEARCHING = 0.85


class Bench:
    """Clusters, the fits known between them, and how sure each piece's place beside the anchor is.

    `pairs` remembers all fits of two single fragments, `joins` what was joined, `round` how far the search has come.

    What is locked starts as one cluster, whose members keep their poses to each other; the anchor is the largest of
    them, or of all. After `until` (of `time.monotonic`) nothing is judged anew, and some time before nothing searched.
    """

    def __init__(
        self,
        fragments: Sequence[Fragment],
        judges: Judges,
        seed: int,
        until: float = math.inf,
        locked: Mapping[int, Pose] | None = None,
    ) -> None:
        self.fragments, self.judges, self.seed, self.until = fragments, judges, seed, until
        now = time.monotonic()
        self.search_until = now + _SEARCHING * (until - now)
        self.locked = dict(locked or {})
        free = [piece for piece in range(len(fragments)) if piece not in self.locked]
        self.clusters = [Cluster(fragments, {piece: STAY}) for piece in free]
        if self.locked:
            self.clusters.append(Cluster(fragments, self.locked))
        self.fits: dict[tuple[Cluster, Cluster], list[Fit]] = {}
        self.pairs: dict[tuple[int, int], list[Fit]] = {}
        self.joins: list[Known] = []
        self.round = 0
        self.searched: set[tuple[Cluster, Cluster, int]] = set()
        self.confidence = [1.0] * len(fragments)
        self.anchor = self.largest(sorted(self.locked) or range(len(fragments)))

    @property
    def late(self) -> bool:
        """Whether there is no time for anything."""
        return time.monotonic() > self.until

    @property
    def search_late(self) -> bool:
        """Whether there is no time to search."""
        return time.monotonic() > self.search_until

    @property
    def ordered(self) -> list[Cluster]:
        """The clusters, the one with what is locked first, then the largest."""
        return sorted(
            self.clusters,
            key=lambda cluster: (not self.locked.keys() & set(cluster.members), -cluster.area, cluster.members),
        )

    def largest(self, pieces: Sequence[int]) -> int:
        """The piece with the largest surface."""
        return max(pieces, key=lambda piece: (self.fragments[piece].area, -piece))

    def branch(self) -> Bench:
        """Another bench that knows the same; what is then done on one does not touch the other."""
        other = copy.copy(self)
        other.take_over(self)
        return other

    def take_over(self, other: Bench) -> None:
        """Stand as another bench of the same fragments stands."""
        self.clusters, self.fits, self.joins = list(other.clusters), dict(other.fits), list(other.joins)
        self.searched, self.confidence, self.round = set(other.searched), list(other.confidence), other.round

    def learn(self, first: Cluster, second: Cluster, fits: list[Fit]) -> None:
        """Keep the most probable fits of two clusters."""
        if len(first.members) == len(second.members) == 1 and not self.locked.keys() & {
            *first.members,
            *second.members,
        }:
            self.pairs.setdefault((first.members[0], second.members[0]), []).extend(fits)
        known = self.fits.get((first, second), [])
        self.fits[first, second] = sorted(known + fits, key=lambda fit: -fit.probability)[:_KEPT]

    def forget(self, wrong: Callable[[Cluster, Cluster, Fit], bool]) -> None:
        """Drop fits of two clusters that are known to be wrong."""
        self.fits = {
            (first, second): [fit for fit in fits if not wrong(first, second, fit)]
            for (first, second), fits in self.fits.items()
        }

    def join_down_to(self, least: float) -> Iterator[float]:
        """Join the surest fit as long as there is one of at least this probability; yields the probabilities."""
        while len(self.clusters) > 1:
            best = self.surest()
            if best is None or best[2].probability < least:
                return
            self.join(*best)
            yield best[2].probability

    def polish(self) -> None:
        """Let the members of every cluster settle together; the largest of each and what is locked stay."""
        for cluster in list(self.clusters):
            if not self.late and len(cluster.members) > 1:
                new = polished(cluster, {self.largest(cluster.members), *self.locked})
                self.clusters = [new if one is cluster else one for one in self.clusters]
                self.fits = {
                    (new if first is cluster else first, new if second is cluster else second): fits
                    for (first, second), fits in self.fits.items()
                }
                self.searched = {
                    (new if first is cluster else first, new if second is cluster else second, number)
                    for first, second, number in self.searched
                }

    def surest(self) -> Known | None:
        """The most probable of all fits."""
        ranked = [(fits[0].probability, pair) for pair, fits in self.fits.items() if fits]
        if not ranked:
            return None
        _, pair = max(ranked, key=lambda entry: (entry[0], entry[1][0].members, entry[1][1].members))
        return *pair, self.fits[pair][0]

    def join(self, first: Cluster, second: Cluster, fit: Fit) -> None:
        """Make one cluster of two, and carry over what is known about both."""
        if self.locked.keys() & set(first.members):
            first, second, fit = second, first, fit.turned_round()
        loose = first if self.anchor not in first.members and first.area <= second.area else second
        if self.anchor in loose.members:
            loose = second if loose is first else first
        for piece in loose.members:
            self.confidence[piece] *= fit.probability
        self.joins.append((first, second, fit))
        both = first.with_other(second, fit.pose)
        self.clusters = [c for c in self.clusters if c is not first and c is not second] + [both]
        self.searched = {entry for entry in self.searched if first not in entry and second not in entry}
        carried = self._carry(first, fit.pose) + self._carry(second, STAY)
        self.fits = {pair: fits for pair, fits in self.fits.items() if first not in pair and second not in pair}
        for other in self.clusters:
            known = [fit for partner, fit in carried if partner is other]
            if other is not both and known:
                self.learn(other, both, known if self.late else self._reviewed(other, both, known))

    def _reviewed(self, first: Cluster, second: Cluster, fits: list[Fit]) -> list[Fit]:
        """Fits judged anew; those of castings stay as they are."""
        known = [fit for fit in fits if fit.level != CAST]
        return [fit for fit in fits if fit.level == CAST] + review(first, second, known, self.judges)

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
