"""The state of an assembly that grows: clusters of fragments, matches between them, joins made, and what each is worth.

`polished` moves all members of a cluster at once until their fracture surfaces lie on each other: loops close.
"""

from __future__ import annotations

import copy
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import DisjointSet
from scipy.spatial.transform import Rotation

from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.contact import IDENTITY, Points, Pose, close, compose, inverse, moved
from diffassemble.fragments.gap_insertion import INSERTED
from diffassemble.fragments.matches import PairSearch, reverify
from diffassemble.fragments.spatial import nearest_across
from diffassemble.fragments.verification import Match


@dataclass(frozen=True)
class PolishConfig:
    """Joint point-to-plane refinement of all members of a cluster. Lengths in spacings."""

    reach: tuple[float, float] = (1.6, 1.1)
    """greatest distance of touching points: first at level 0, last at the level that is used"""
    rounds: int = 5
    doubt: float = 0.25
    """distance from the plane at which a point counts by half"""
    facing: float = -0.6
    """greatest cosine between the normals of touching points"""
    fewest: int = 12
    """pairs with fewer touching points are left out"""


@dataclass(frozen=True)
class StateConfig:
    """How matches add up to the probability of a join, and what is kept of them."""

    polish: PolishConfig | None = PolishConfig()
    """none: poses stay as they were joined"""
    alike: tuple[float, float] = (8.0, 3.0)
    """poses that differ by fewer degrees and spacings are the same"""
    kept: int = 6
    """matches of two clusters that are kept"""
    searching: float = 0.85
    """share of the time for searching; the rest is for joining what was found"""
    hopeless: float = 0.01
    """matches of a lower probability are not verified again when a cluster has grown: a new search finds more"""
    equal_contact: float = 0.5
    """two pieces touch about as much as others if they do so at this share of as many points"""
    least: float = 0.1
    """matches of a lower probability do not speak against others"""
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
    """share of that which counts for matches that cannot slide"""


POLISH, STATE = PolishConfig(), StateConfig()


class KnownMatch(NamedTuple):
    """Two clusters and one of the matches that are known between them."""

    first: Cluster
    second: Cluster
    match: Match


def rarity(fragments: int, config: StateConfig = STATE) -> float:
    """By how much log odds among so many fragments are lower than verification learnt: fewer pairs touch."""
    return math.log(max(1.0, config.touching * (fragments - 1) / config.neighbours))


def log_odds(match: Match, fragments: int, config: StateConfig = STATE) -> float:
    """Log odds of a match among so many fragments, at most those of `config.surest`.

    An inserted piece was compared with all other places already, and of firm matches only the best is joined, so rarity
    counts for less: of 222 such joins above 0.98 none was wrong, of 26 above 0.9 none, of 22 above 0.5 two; of 98 that
    could slide 64 (four solids in 100 pieces).
    """
    chance = min(max(match.probability, 1e-6), 1 - 1e-6)
    weight = 0.0 if match.level == INSERTED else 1.0 if match.slides else config.firm
    rare = rarity(fragments, config) * weight
    return min(math.log(chance / (1 - chance)) - rare, math.log(config.surest / (1 - config.surest)))


def alike(one: Pose, two: Pose, fragment: Fragment, config: StateConfig = STATE) -> bool:
    """Whether a fragment has about the same place at two poses."""
    degrees, off = config.alike
    return close(one, two, fragment.pyramid.levels[0].points.mean(0), degrees, off * fragment.spacing)


def polished(cluster: Cluster, held: Collection[int], config: PolishConfig = POLISH) -> Cluster:
    """The same members after a joint point-to-plane refinement over all pairs that touch; those held do not move.

    Where nothing touches, poses stay.
    """
    free = [piece for piece in cluster.members if piece not in held]
    if not free or len(cluster.members) < 2:
        return cluster
    poses, level = dict(cluster.poses), min(1, *(cluster.fragments[piece].finest for piece in cluster.members))
    spacing = cluster.fragments[0].spacing / 2**level
    number = {piece: index for index, piece in enumerate(free)}
    for reach in np.linspace(config.reach[0] * 2**level, config.reach[1], config.rounds):
        matrix, vector = np.zeros((6 * len(free),) * 2), np.zeros(6 * len(free))
        faces = {piece: cluster.fragments[piece].fracture(level) for piece in cluster.members}
        parts = {piece: moved(poses[piece], face.points, face.smooth) for piece, face in faces.items()}
        for pair in _near_each_other({piece: part[0] for piece, part in parts.items()}, reach * spacing):
            _add_pair(matrix, vector, parts, pair, number, reach * spacing, spacing, config)
        scale = np.maximum(np.diag(matrix), 1e-9)
        motion = np.linalg.solve(matrix + np.diag(1e-3 * scale + 1e-9), vector)
        for piece, index in number.items():
            turn = Rotation.from_rotvec(motion[6 * index : 6 * index + 3]).as_matrix().ravel()
            poses[piece] = compose(np.concatenate([turn, motion[6 * index + 3 : 6 * index + 6]]), poses[piece])
    return Cluster(cluster.fragments, poses)


def _near_each_other(points: Mapping[int, Points], reach: float) -> Iterator[tuple[int, int]]:
    """Which pieces have boxes within reach of each other, both ways round."""
    boxes = {piece: (own.min(0), own.max(0)) for piece, own in points.items() if len(own)}
    for first, (low, high) in boxes.items():
        for second, (other_low, other_high) in boxes.items():
            if first != second and not (np.maximum(low - other_high, other_low - high) > reach).any():
                yield first, second


def _facing(
    one: tuple[Points, Points], two: tuple[Points, Points], reach: float, facing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Points of the first surface with a point of the second within reach that faces them, and those points."""
    near = nearest_across(one[0], two[0], reach)
    found = np.flatnonzero(near >= 0)
    found = found[(one[1][found] * two[1][near[found]]).sum(1) < facing]
    return found, near[found]


def _add_pair(matrix, vector, parts, pair, number, reach, spacing, config) -> None:  # type: ignore[no-untyped-def]
    """Add the normal equations of the points of the first piece that lie on the second."""
    first, second = pair
    (own, own_smooth), (other, other_smooth) = parts[first], parts[second]
    found, near = _facing(parts[first], parts[second], reach, config.facing)
    if len(found) < config.fewest:
        return
    here, there = own[found].astype(np.float64), other[near].astype(np.float64)
    normal = other_smooth[near].astype(np.float64) - own_smooth[found]
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    apart = ((there - here) * normal).sum(1)
    weight = 1 / (1 + (apart / (config.doubt * spacing)) ** 2)
    rows = {first: np.concatenate([np.cross(here, normal), normal], 1)}
    rows[second] = -np.concatenate([np.cross(there, normal), normal], 1)
    for one in pair:
        if one in number:
            a = 6 * number[one]
            vector[a : a + 6] += rows[one].T @ (weight * apart)
            for two in pair:
                if two in number:
                    b = 6 * number[two]
                    matrix[a : a + 6, b : b + 6] += rows[one].T @ (weight[:, None] * rows[two])


Touching = Mapping[tuple[int, int], int]
"""points of the break of the first of two pieces that lie on that of the second, where any do"""


def contact_pairs(touching: Touching, first: Cluster, second: Cluster, share: float) -> list[tuple[int, int]]:
    """Pairs of members of two clusters that touch at this share or more of the points that the best pair has."""
    count = {(a, b): touching.get((a, b), 0) + touching.get((b, a), 0) for a in first.members for b in second.members}
    most = max(count.values())
    return [pair for pair, own in count.items() if own >= share * most]


def support(sure: Sequence[float], touching: Touching, first: Cluster, second: Cluster, share: float) -> float:
    """Probability that the two pieces by which a join holds have the right places, each in its cluster.

    Of the pairs that touch about as much as any other it is that of the surest.
    """
    return max(sure[one] * sure[two] for one, two in contact_pairs(touching, first, second, share))


class AssemblyState:
    """Clusters, the matches known between them, and the joins made so far.

    `pairs` holds all matches of two single fragments, `joins` what was joined, `rivals` what else was known of what
    then moved, `round` how far the search has come. Locked fragments start as one cluster and keep their poses to each
    other; the anchor is the largest of them, or of all. After `until` (of `time.monotonic`) nothing is verified, and
    some time before nothing searched.
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
        self.matches: dict[tuple[Cluster, Cluster], list[Match]] = {}
        self.pairs: dict[tuple[int, int], list[Match]] = {}
        self.joins: list[KnownMatch] = []
        self.rivals: list[list[KnownMatch]] = []
        self.round = 0
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

    @property
    def ordered(self) -> list[Cluster]:
        """The clusters, the one with what is locked first, then the largest."""
        return sorted(self.clusters, key=lambda one: (not self._holds_locked(one), -one.area, one.members))

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

    def branch(self) -> AssemblyState:
        """A copy; what is then done on one does not change the other."""
        other = copy.copy(self)
        other.copy_from(self)
        return other

    def copy_from(self, other: AssemblyState) -> None:
        """Take the clusters, matches and joins of another state of the same fragments."""
        self.clusters, self.matches, self.joins = list(other.clusters), dict(other.matches), list(other.joins)
        self.searched, self.rivals, self.round = set(other.searched), list(other.rivals), other.round

    def add_matches(self, first: Cluster, second: Cluster, matches: list[Match]) -> None:
        """Keep the most probable matches of two clusters."""
        if self.is_single(first) and self.is_single(second):
            self.pairs.setdefault((first.members[0], second.members[0]), []).extend(matches)
        known = self.matches.get((first, second), [])
        self.matches[first, second] = sorted(known + matches, key=lambda one: -one.probability)[: self.config.kept]

    def drop_matches(self, wrong: Callable[[Cluster, Cluster, Match], bool]) -> None:
        """Drop matches of two clusters that are known to be wrong."""
        self.matches = {
            (first, second): [match for match in matches if not wrong(first, second, match)]
            for (first, second), matches in self.matches.items()
        }

    def polish(self) -> None:
        """Refine the poses of the members of every cluster jointly; the largest of each and what is locked stay."""
        for cluster in list(self.clusters):
            if self.config.polish is not None and not self.out_of_time and len(cluster.members) > 1:
                held = {self.largest(cluster.members), *self.locked}
                now = {cluster: polished(cluster, held, self.config.polish)}
                self.clusters = [now.get(one, one) for one in self.clusters]
                self.matches = {(now.get(a, a), now.get(b, b)): known for (a, b), known in self.matches.items()}
                self.searched = {(now.get(a, a), now.get(b, b), number) for a, b, number in self.searched}

    def best_match(self) -> KnownMatch | None:
        """The most probable of all matches."""
        ranked = [(matches[0].probability, pair) for pair, matches in self.matches.items() if matches]
        if not ranked:
            return None
        _, pair = max(ranked, key=lambda entry: (entry[0], entry[1][0].members, entry[1][1].members))
        return KnownMatch(*pair, self.matches[pair][0])

    def join(self, first: Cluster, second: Cluster, match: Match) -> None:
        """Make one cluster of two, and verify again what is known of both."""
        moving = self.moving(first, second)
        others = [KnownMatch(*pair, other) for pair, found in self.matches.items() if moving in pair for other in found]
        self.rivals.append([rival for rival in others if rival.match is not match])
        if self._holds_locked(first):
            first, second, match = second, first, match.reversed()
        self.joins.append(KnownMatch(first, second, match))
        both = first.with_other(second, match.pose)
        old = {first, second}
        self.clusters = [cluster for cluster in self.clusters if cluster not in old] + [both]
        self.searched = {entry for entry in self.searched if old.isdisjoint(entry)}
        carried = self._carry(first, match.pose) + self._carry(second, IDENTITY)
        self.matches = {pair: matches for pair, matches in self.matches.items() if old.isdisjoint(pair)}
        for other in self.clusters:
            known = [m for partner, m in carried if partner is other and m.probability >= self.config.hopeless]
            if other is not both and known:
                if not self.out_of_time:  # insertions stay as they are, all else is verified again
                    found = [match for match in known if match.level != INSERTED]
                    known = [match for match in known if match.level == INSERTED]
                    known += reverify(other, both, found, self.models, self.pair_search.config)
                self.add_matches(other, both, known)
        for part in old:
            part.release()

    def free_views(self) -> None:
        """Free other samples of the fragments and their doubtful breaks, which take as much memory as all else."""
        for one in (*self.fragments, *self.clusters):
            for view in ("redrawn", "doubtful"):
                one.__dict__.pop(view, None)

    def moving(self, first: Cluster, second: Cluster) -> Cluster:
        """Which of two clusters moves to the other: the smaller one, unless it has the anchor."""
        return min((first, second), key=lambda one: (self.anchor in one.members, one.area))

    @property
    def confidence(self) -> list[float]:
        """Probability of each piece's place beside the anchor: the product over the joins by which it moved.

        A join shares its probability with all that contradicts it (`posterior`), and needs the right places of the
        pieces by which it holds (`support`).
        """
        sure, touching = [1.0] * len(self.fragments), self.touching()
        for number, (first, second, _) in enumerate(self.joins):
            chance = self.posterior(number) * support(sure, touching, first, second, self.config.equal_contact)
            for piece in self.moving(first, second).members:
                sure[piece] *= chance
        return sure

    def touching(self) -> dict[tuple[int, int], int]:
        """Points of the break of the first of two pieces that lie on that of the second, where any do."""
        polish, found = self.config.polish or POLISH, {}
        reach = polish.reach[0] * self.fragments[0].spacing
        for cluster in self.clusters:
            faces = {piece: self.fragments[piece].fracture(0) for piece in cluster.members}
            parts = {piece: moved(cluster.poses[piece], face.points, face.smooth) for piece, face in faces.items()}
            for one, two in _near_each_other({piece: part[0] for piece, part in parts.items()}, reach):
                if count := len(_facing(parts[one], parts[two], reach, polish.facing)[0]):
                    found[one, two] = count
        return found

    def posterior(self, number: int) -> float:
        """The probability of a join, given all matches that speak for and against it.

        1 / (1 + exp(−l) + Σ exp(r − l)), with l the log odds of the join, or the sum of those of the matches of other
        members of the two clusters that agree with it, and r those of matches of what moved that the assembly
        contradicts: of each pair of pieces the greatest.
        """
        first, second, match = self.joins[number]
        moving, both = self.moving(first, second).members, {*first.members, *second.members}
        known = list(self.rivals[number])
        for (one, two), found in self.pairs.items():
            if (one in moving) != (two in moving):
                here, there = (Cluster(self.fragments, {piece: IDENTITY}) for piece in (one, two))
                known += [KnownMatch(here, there, other) for other in found]
        agreeing: dict[frozenset[int], float] = {}
        against: dict[frozenset[int], float] = {}
        for here, there, other in known:
            shown = self.shows(here, there, other.pose) if other.probability >= self.config.least else None
            pair = frozenset((here.members[0], there.members[0]))
            # What was joined later is shown in any case, and planes lie on each other in many places at once.
            if shown is False or (shown and pair <= both and not other.slides):
                kept = agreeing if shown else against
                kept[pair] = max(kept.get(pair, 0.0), log_odds(other, len(self.fragments), self.config))
        total = log_odds(match, len(self.fragments), self.config)
        if not match.slides:
            total = max(sum(value for value in agreeing.values() if value > 0) or total, total)
        rival = sum(math.exp(value - total) for value in against.values())
        ceiling = min(match.ceiling, self.config.sliding) if match.slides else match.ceiling
        return min(ceiling, 1 / (1 + math.exp(-total) + rival))

    def shows(self, first: Cluster, second: Cluster, pose: Pose) -> bool | None:
        """Whether the assembly has two former clusters at a pose to each other; none where they are apart."""
        one, two = first.members[0], second.members[0]
        whole = next((cluster for cluster in self.clusters if one in cluster.members), None)
        if whole is None or two not in whole.members:
            return None
        placed = compose(inverse(whole.poses[two]), whole.poses[one])
        wanted = compose(compose(inverse(second.poses[two]), pose), first.poses[one])
        return alike(wanted, placed, self.fragments[one], self.config)

    def _carry(self, cluster: Cluster, pose: Pose) -> list[tuple[Cluster, Match]]:
        """Matches of others with a cluster that now has the pose, as (the other, its match with the whole)."""
        carried = []
        for (first, second), matches in self.matches.items():
            for match in matches:
                if cluster in (first, second):
                    other, own = (first, match) if second is cluster else (second, match.reversed())
                    carried.append((other, replace(own, pose=compose(pose, own.pose))))
        return carried


def prune_unsupported(state: AssemblyState, least: float) -> set[int]:
    """Part clusters where only joins less probable than this hold them together; the pieces that lost the anchor.

    A join counts alone, however long the chain of joins to the anchor is, and holds those pieces together that touch.
    One that could slide is never likely, but holds what lies against several pieces, if it would be likely otherwise.
    """
    touching = state.touching()
    groups = DisjointSet(range(len(state.fragments)))
    for piece in state.locked:
        groups.merge(piece, min(state.locked))
    for number, (first, second, match) in enumerate(state.joins):
        wedged = match.slides and _lies_between_several(touching, first, second)
        if state.posterior(number) >= (least * state.config.sliding if wedged else least):
            for one, two in contact_pairs(touching, first, second, state.config.equal_contact):
                groups.merge(one, two)
    before = set(state.cluster_of(state.anchor).members)
    state.clusters = [part for cluster in state.clusters for part in _parts(cluster, groups)]
    return before - set(state.cluster_of(state.anchor).members)


def _lies_between_several(touching: Touching, first: Cluster, second: Cluster) -> bool:
    """Whether more than two members of two clusters touch one of the other: planes at an angle hold each other."""
    pairs = [(one, two) for one in first.members for two in second.members if (one, two) in touching]
    return len({piece for pair in pairs for piece in pair}) > 2


def _parts(cluster: Cluster, groups: DisjointSet) -> list[Cluster]:
    """The cluster itself if all of its members are of one group, else one for each group."""
    roots = Counter(groups[piece] for piece in cluster.members)
    if len(roots) == 1:
        return [cluster]
    members = [
        {piece: pose for piece, pose in cluster.poses.items() if groups[piece] == root} for root in sorted(roots)
    ]
    return [Cluster(cluster.fragments, poses) for poses in members]
