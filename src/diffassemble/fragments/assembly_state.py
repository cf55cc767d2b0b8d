"""The state of an assembly that grows: clusters of fragments, matches between them, joins made, and their probability.

`FragmentConstraint` is what `assembly.growth` has to know of it: a join of two clusters has the log odds of a verified
match, and after it all matches of the new cluster are refined and verified again, so that what would collide with any
member loses its odds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from diffassemble.assembly.growth import Constraint
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, Pose, close, compose, inverse, moved
from diffassemble.fragments.gap_insertion import crowded
from diffassemble.fragments.matches import PairSearch, reverify
from diffassemble.fragments.spatial import nearest_across
from diffassemble.fragments.surface import oversampling
from diffassemble.fragments.verification import INSERTED, Match

Touching = Mapping[tuple[int, int], int]
"""points of the break of the first of two pieces that are on that of the second, where any are"""


@dataclass(frozen=True)
class StateConfig:
    """How matches add up to the probability of a join, and what is kept of them."""

    alike: tuple[float, float] = (8.0, 3.0)
    """poses that differ by fewer degrees and spacings are the same"""
    kept: int = 6
    """matches of two clusters that are kept"""
    searching: float = 0.85
    """share of the time for searching; the rest is for joining what was found"""
    hopeless: float = 0.01
    """matches of a lower probability are not verified again when a cluster has grown: a new search finds more"""
    touch: tuple[float, float] = (1.6, -0.6)
    """greatest distance of touching points, in spacings, and greatest cosine between their normals"""
    equal_contact: float = 0.5
    """two pieces touch about as much as others if they do so at this share of as many points"""
    least: float = 0.1
    """matches of a lower probability do not count against others"""
    surest: float = 0.995
    """no single match counts as more probable than this"""
    sliding: float = 0.45
    """greatest probability of a join that could slide: it is made where it fits best, but is no more than a guess"""
    touching: float = 0.75
    """share of the searches that verification was trained on in which the pieces touch"""
    neighbours: float = 5.0
    """neighbours of a fragment, about: of n fragments only so many touch it, so log odds are lower by
    log(touching · (n − 1) / neighbours); infinity switches this off"""
    firm: float = 0.5
    """share of that which counts for matches that cannot slide: of these only the best is joined"""
    small: float = 0.006
    """pieces of at most this share of the whole surface are small, divided by `oversampling` for very many pieces"""
    crowded: float = 0.3
    """centres of two inserted pieces are at least this share of both extents apart"""


STATE = StateConfig()


@dataclass(frozen=True, eq=False)
class Join:
    """Two clusters and one of the matches that are known between them."""

    first: Cluster
    second: Cluster
    match: Match

    @property
    def odds(self) -> float:
        """Log odds of the match, as verification gives them."""
        return logit(self.match.probability)

    def at(self, moving: Cluster) -> Match:
        """The match such that this cluster moves and the other stays."""
        return self.match if self.first is moving else self.match.reversed()


def logit(chance: float) -> float:
    """log(p / (1 − p)), finite for 0 and 1."""
    kept = min(max(chance, 1e-6), 1 - 1e-6)
    return math.log(kept / (1 - kept))


def log_odds(match: Match, fragments: int, config: StateConfig = STATE) -> float:
    """Log odds of a match among so many fragments, at most those of `config.surest`.

    They are lower than those of verification, since of many fragments fewer pairs touch than in its training; an
    inserted piece was compared with all other places already.
    """
    rare = math.log(max(1.0, config.touching * (fragments - 1) / config.neighbours))
    weight = 0.0 if match.level == INSERTED else 1.0 if match.slides else config.firm
    return min(logit(match.probability) - rare * weight, logit(config.surest))


class AssemblyState:
    """Clusters, the matches known between them, and the joins made so far.

    `pairs` holds all matches of two single fragments, `joins` what was joined, and `rivals` what else was known of what
    then moved. Locked fragments start as one cluster and keep their poses to each other; the anchor is the largest of
    them, or of all. After `until` (of `time.monotonic`) nothing is verified, and some time before nothing searched.
    """

    def __init__(
        self,
        pair_search: PairSearch,
        seed: int = 0,
        until: float = math.inf,
        locked: Mapping[int, Pose] | None = None,
        config: StateConfig = STATE,
    ) -> None:
        self.pair_search, self.seed, self.until, self.config = pair_search, seed, until, config
        self.fragments, self.models = pair_search.fragments, pair_search.models
        now = time.monotonic()
        self.search_until = now + config.searching * (until - now)
        self.locked = dict(locked or {})
        self.clusters = [one for piece, one in enumerate(pair_search.singles) if piece not in self.locked]
        if self.locked:
            self.clusters.append(Cluster(self.fragments, self.locked))
        self.matches: dict[tuple[Cluster, Cluster], list[Join]] = {}
        self.pairs: dict[tuple[int, int], list[Match]] = {}
        self.joins: list[Join] = []
        self.rivals: list[list[Join]] = []
        self.searched: set[tuple[Cluster, Cluster, int]] = set()
        self.anchor = self.largest(sorted(self.locked) or range(len(self.fragments)))

    @property
    def out_of_time(self) -> bool:
        """Whether there is no time for anything."""
        return time.monotonic() > self.until

    @property
    def search_over(self) -> bool:
        """Whether there is no time to search."""
        return time.monotonic() > self.search_until

    @property
    def ranked(self) -> list[Cluster]:
        """The clusters, that of the anchor first, then the largest."""
        return sorted(self.clusters, key=lambda one: (self.anchor not in one.members, -one.area, one.members))

    def cluster_of(self, piece: int) -> Cluster:
        """The cluster that a fragment belongs to."""
        return next(cluster for cluster in self.clusters if piece in cluster.members)

    def is_single(self, cluster: Cluster) -> bool:
        """Whether a cluster is one fragment in its own frame."""
        return len(cluster.members) == 1 and not self._holds_locked(cluster)

    def _holds_locked(self, cluster: Cluster) -> bool:
        return not self.locked.keys().isdisjoint(cluster.members)

    def largest(self, pieces: Sequence[int]) -> int:
        """The piece with the largest surface."""
        return max(pieces, key=lambda piece: (self.fragments[piece].area, -piece))

    @property
    def small(self) -> float:
        """The area below which a piece counts as small."""
        whole = sum(fragment.area for fragment in self.fragments)
        return self.config.small * whole / oversampling(len(self.fragments))

    def moving(self, join: Join) -> Cluster:
        """Which of two clusters moves to the other: the smaller one, unless it has the anchor."""
        return min((join.first, join.second), key=lambda one: (self.anchor in one.members, one.area))

    def alike(self, one: Pose, two: Pose, piece: int) -> bool:
        """Whether a fragment has about the same place at two poses."""
        fragment, (degrees, off) = self.fragments[piece], self.config.alike
        return close(one, two, fragment.pyramid.levels[0].points.mean(0), degrees, off * fragment.spacing)

    def add_matches(self, first: Cluster, second: Cluster, matches: list[Match]) -> list[Join]:
        """Keep the most probable matches of two clusters."""
        if self.is_single(first) and self.is_single(second):
            self.pairs.setdefault((first.members[0], second.members[0]), []).extend(matches)
        known = self.matches.get((first, second), []) + [Join(first, second, match) for match in matches]
        self.matches[first, second] = sorted(known, key=lambda one: -one.match.probability)[: self.config.kept]
        return self.matches[first, second]

    def between(self, first: Cluster, second: Cluster) -> list[Join]:
        """The matches known of two clusters."""
        return self.matches.get((first, second), []) + self.matches.get((second, first), [])

    def join(self, join: Join) -> list[Join]:
        """Make one cluster of two, and verify again what is known of both; returns the matches of the new one."""
        moving, pairs = self.moving(join), list(self.matches.items())
        self.rivals.append([one for pair, found in pairs if moving in pair for one in found if one is not join])
        if self._holds_locked(join.first):
            join = Join(join.second, join.first, join.match.reversed())
        self.joins.append(join)
        both, old = join.first.with_other(join.second, join.match.pose), {join.first, join.second}
        self.clusters = [cluster for cluster in self.clusters if cluster not in old] + [both]
        self.searched = {entry for entry in self.searched if old.isdisjoint(entry)}
        self.matches = {pair: found for pair, found in pairs if old.isdisjoint(pair)}
        carried: dict[Cluster, list[Match]] = {}
        for part, pose in ((join.first, join.match.pose), (join.second, IDENTITY)):
            for pair, found in pairs:
                other = pair[0] if part is pair[1] else pair[1]
                for match in [one.at(other) for one in found] if part in pair and other not in old else []:
                    if match.probability >= self.config.hopeless:
                        carried.setdefault(other, []).append(replace(match, pose=compose(pose, match.pose)))
        changed = []
        for other, known in carried.items():
            current = [match for match in known if match.level != INSERTED]
            if not self.out_of_time:
                current = reverify(other, both, current, self.models, self.pair_search.config)
            # Insertions stay as they are, but no two small pieces are inserted into one gap.
            gaps = (match for match in known if match.level == INSERTED)
            apart = self.config.crowded
            current += [match for match in gaps if not crowded(other, both, match.pose, self.small, apart)]
            changed += self.add_matches(other, both, current)
        for part in old:
            part.release()
        return changed

    # Probabilities

    @property
    def confidence(self) -> list[float]:
        """Probability of each piece's place beside the anchor: the product over the joins by which it moved.

        A join shares its probability with all that contradicts it (`posterior`), and needs the right places of the two
        pieces by which it holds: of the pairs that touch about as much as any other, those of the surest.
        """
        sure, touching = [1.0] * len(self.fragments), self.touching()
        for number, join in enumerate(self.joins):
            chance = self.posterior(number) * max(sure[one] * sure[two] for one, two in self.contacts(touching, join))
            for piece in self.moving(join).members:
                sure[piece] *= chance
        return sure

    def touching(self) -> Touching:
        """Points of the break of the first of two pieces that are on that of the second, where any are."""
        reach, facing = self.config.touch[0] * self.fragments[0].spacing, self.config.touch[1]
        found = {}
        for cluster in self.clusters:
            faces = {piece: self.fragments[piece].fracture(0) for piece in cluster.members}
            parts = {piece: moved(cluster.poses[piece], face.points, face.smooth) for piece, face in faces.items()}
            for one, (points, normals) in parts.items():
                for two, (others, other_normals) in parts.items():
                    near = nearest_across(points, others, reach) if one != two else np.zeros(0, np.int64)
                    met = np.flatnonzero(near >= 0)
                    if count := int(((normals[met] * other_normals[near[met]]).sum(1) < facing).sum()):
                        found[one, two] = count
        return found

    def contacts(self, touching: Touching, join: Join) -> list[tuple[int, int]]:
        """Pairs of members of the two clusters of a join that touch about as much as the pair that touches most."""
        pairs = [(one, two) for one in join.first.members for two in join.second.members]
        count = {(one, two): touching.get((one, two), 0) + touching.get((two, one), 0) for one, two in pairs}
        return [pair for pair, own in count.items() if own >= self.config.equal_contact * max(count.values())]

    def posterior(self, number: int) -> float:
        """The probability of a join, given all matches for and against it.

        1 / (1 + exp(−l) + Σ exp(r − l)), with l the log odds of the join, or the sum of those of the matches of other
        members of the two clusters that agree with it, and r those of matches of what moved that the assembly
        contradicts: of each pair of pieces the greatest.
        """
        join, count = self.joins[number], len(self.fragments)
        moving, both = self.moving(join).members, {*join.first.members, *join.second.members}
        known = list(self.rivals[number])
        for (one, two), found in self.pairs.items():
            if (one in moving) != (two in moving):
                known += [Join(self.pair_search.singles[one], self.pair_search.singles[two], match) for match in found]
        agreeing: dict[frozenset[int], float] = {}
        against: dict[frozenset[int], float] = {}
        for other in known:
            shown = self.shows(other) if other.match.probability >= self.config.least else None
            pair = frozenset((other.first.members[0], other.second.members[0]))
            # What was joined later is shown in any case, and planes fit each other in many places at once.
            if shown is False or (shown and pair <= both and not other.match.slides):
                kept = agreeing if shown else against
                kept[pair] = max(kept.get(pair, 0.0), log_odds(other.match, count, self.config))
        total = log_odds(join.match, count, self.config)
        if not join.match.slides:
            total = max(sum(value for value in agreeing.values() if value > 0) or total, total)
        rival = sum(math.exp(value - total) for value in against.values())
        ceiling = min(join.match.ceiling, self.config.sliding if join.match.slides else 1.0)
        return min(ceiling, 1 / (1 + math.exp(-total) + rival))

    def shows(self, join: Join) -> bool | None:
        """Whether the assembly has two former clusters at the pose of a match; none where they are apart."""
        one, two = join.first.members[0], join.second.members[0]
        whole = self.cluster_of(one)
        if two not in whole.members:
            return None
        placed = compose(inverse(whole.poses[two]), whole.poses[one])
        wanted = compose(compose(inverse(join.second.poses[two]), join.match.pose), join.first.poses[one])
        return self.alike(wanted, placed, one)

    def prune_unsupported(self, least: float) -> set[int]:
        """Split clusters where only joins less probable than this hold them together; returns what lost the anchor.

        A join counts alone, however long the chain of joins to the anchor is, and holds those pieces together that
        touch. One that could slide is never likely, but holds what touches several pieces, if it would be likely
        otherwise: planes at an angle hold each other.
        """
        touching, groups = self.touching(), DisjointSet(range(len(self.fragments)))
        for piece in self.locked:
            groups.merge(piece, min(self.locked))
        for number, join in enumerate(self.joins):
            pairs = [(one, two) for one in join.first.members for two in join.second.members if (one, two) in touching]
            wedged = join.match.slides and len({piece for pair in pairs for piece in pair}) > 2
            if self.posterior(number) >= (least * self.config.sliding if wedged else least):
                for one, two in self.contacts(touching, join):
                    groups.merge(one, two)
        before = set(self.cluster_of(self.anchor).members)
        parts: list[Cluster] = []
        for cluster in self.clusters:
            roots = {groups[piece]: None for piece in cluster.members}
            own = [{piece: pose for piece, pose in cluster.poses.items() if groups[piece] == root} for root in roots]
            parts += [cluster] if len(own) == 1 else [Cluster(self.fragments, poses) for poses in own]
        self.clusters = parts
        return before - set(self.cluster_of(self.anchor).members)


class FragmentConstraint(Constraint[AssemblyState, Join]):
    """Joins of clusters by verified matches."""

    def proposals(self, state: AssemblyState) -> Iterable[Join]:
        """All known matches, those of the largest members first."""
        order = sorted(state.matches, key=lambda pair: (pair[0].members, pair[1].members), reverse=True)
        return [join for pair in order for join in state.matches[pair]]

    def evidence(self, state: AssemblyState, join: Join) -> float:
        """Log odds of a match; −∞ if its clusters have become others."""
        return join.odds if join in state.matches.get((join.first, join.second), []) else -math.inf

    def join(self, state: AssemblyState, join: Join) -> Iterable[Join]:
        """Join two clusters; returns the verified matches of the new one."""
        return state.join(join)
