"""Clusters of fragments on their way to an assembly: the matches known between them, and how two become one.

`polished` moves all members of a cluster a little at once until their fracture surfaces lie on each other: loops close.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.contact import IDENTITY, Points, Pose, close, compose, inverse, moved
from diffassemble.fragments.gap_insertion import INSERTED
from diffassemble.fragments.matches import Match, PairSearch, reverify
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.spatial import nearest_across

# In spacings: how far touching points may be apart in the first and in the last round, and which deviation is doubtful.
_FIRST, _LAST, _DOUBT = 1.6, 1.1, 0.25
_FACING = -0.6
_ROUNDS = 5
_LEAST = 12
_KEPT = 6
# What could slide along what it lies on is joined where it fits best, but told as no more than a guess.
SLIDING = 0.45
Known = tuple[Cluster, Cluster, Match]
"""Two clusters and one of the matches that are known between them."""
# This share of the time is for searching, the rest for joining what was found.
_SEARCHING = 0.85
# Poses are alike within so many degrees and spacings.
_DEGREES, _OFF = 8.0, 3.0
# Matches of a lower probability are not verified anew when a cluster has grown: searching anew finds more.
_HOPELESS = 0.01
# Two pieces touch about as much as two others if they do so at this part of as many points.
AS_MUCH = 0.5
# Of the searches that verification learnt from this share were of pieces that touch; a fragment has about so many
# neighbours.
_TOUCHING, _NEIGHBOURS = 0.75, 5
# So much of what that says counts for matches that can't slide.
_FIRM = 0.5
# Matches of a lower probability don't speak against others; and no match is taken for surer than this.
_RIVAL, _SUREST = 0.1, 0.995


def log_odds(match: Match, fragments: int) -> float:
    """Of a match among so many fragments; of no probability above the surest that a single match is taken for.

    What was found by inserting a piece was compared with all other places already, and of what is held firmly only the
    best is joined. Of 222 such joins told above 0.98 none was wrong, of 26 above 0.9 none, of 22 above 0.5 two; of 98
    that could slide 64 (four solids in 100 pieces).
    """
    chance = min(max(match.probability, 1e-6), 1 - 1e-6)
    rare = rarity(fragments) * (0.0 if match.level == INSERTED else 1.0 if match.slides else _FIRM)
    return min(math.log(chance / (1 - chance)) - rare, math.log(_SUREST / (1 - _SUREST)))


def alike(one: Pose, two: Pose, fragment: Fragment) -> bool:
    """Whether a fragment stands about the same at two poses."""
    return close(one, two, fragment.pyramid.levels[0].points.mean(0), _DEGREES, _OFF * fragment.spacing)


def polished(cluster: Cluster, held: Collection[int]) -> Cluster:
    """The same members after a joint point-to-plane refinement over all pairs that touch; those held do not move.

    Where nothing touches, poses stay.
    """
    loose = [piece for piece in cluster.members if piece not in held]
    if not loose or len(cluster.members) < 2:
        return cluster
    poses, level = dict(cluster.poses), min(1, *(cluster.fragments[piece].finest for piece in cluster.members))
    spacing = cluster.fragments[0].spacing / 2**level
    number = {piece: index for index, piece in enumerate(loose)}
    # What lies one spacing of level 0 off is still reached.
    for reach in np.linspace(_FIRST * 2**level, _LAST, _ROUNDS):
        matrix, vector = np.zeros((6 * len(loose),) * 2), np.zeros(6 * len(loose))
        faces = {piece: cluster.fragments[piece].fracture(level) for piece in cluster.members}
        parts = {piece: moved(poses[piece], face.points, face.smooth) for piece, face in faces.items()}
        for pair in _near_each_other({piece: part[0] for piece, part in parts.items()}, reach * spacing):
            _add_pair(matrix, vector, parts, pair, number, (reach * spacing, _DOUBT * spacing))
        scale = np.maximum(np.diag(matrix), 1e-9)
        motion = np.linalg.solve(matrix + np.diag(1e-3 * scale + 1e-9), vector)
        for piece, index in number.items():
            turn = np.zeros(12)
            turn[:9] = Rotation.from_rotvec(motion[6 * index : 6 * index + 3]).as_matrix().ravel()
            turn[9:] = motion[6 * index + 3 : 6 * index + 6]
            poses[piece] = compose(turn, poses[piece])
    return Cluster(cluster.fragments, poses)


def _near_each_other(points: Mapping[int, Points], reach: float) -> Iterator[tuple[int, int]]:
    """Which pieces have boxes within reach of each other, both ways round."""
    boxes = {piece: (own.min(0), own.max(0)) for piece, own in points.items() if len(own)}
    for first, (low, high) in boxes.items():
        for second, (other_low, other_high) in boxes.items():
            if first != second and not (np.maximum(low - other_high, other_low - high) > reach).any():
                yield first, second


def _add_pair(matrix, vector, parts, pair, number, limits) -> None:  # type: ignore[no-untyped-def]
    """Add the normal equations of the points of the first piece that lie on the second."""
    (first, second), (reach, doubt) = pair, limits
    (own, own_smooth), (other, other_smooth) = parts[first], parts[second]
    near = nearest_across(own, other, reach)
    found = np.flatnonzero(near >= 0)
    found = found[(own_smooth[found] * other_smooth[near[found]]).sum(1) < _FACING]
    if len(found) < _LEAST:
        return
    here, there = own[found].astype(np.float64), other[near[found]].astype(np.float64)
    normal = other_smooth[near[found]].astype(np.float64) - own_smooth[found]
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    apart = ((there - here) * normal).sum(1)
    weight = 1 / (1 + (apart / doubt) ** 2)
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


def leaning(sure: Sequence[float], touching: Mapping[tuple[int, int], int], first: Cluster, second: Cluster) -> float:
    """How sure the two pieces are, each in its cluster, on which a join of both clusters leans.

    Of those pairs that touch at least about as much as any other, the surest: the join holds by them alone.
    """
    pairs = [
        (touching.get((one, two), 0) + touching.get((two, one), 0), sure[one] * sure[two])
        for one in first.members
        for two in second.members
    ]
    most = max(count for count, _ in pairs)
    return max(both for count, both in pairs if count >= AS_MUCH * most)


def rarity(fragments: int) -> float:
    """By how much log odds are lower than verification learnt: of many fragments fewer pairs touch.

    So more of the fits that look right do so by chance.
    """
    return math.log(max(1.0, _TOUCHING * (fragments - 1) / _NEIGHBOURS))


class AssemblyState:
    """Clusters, the matches known between them, and how sure each piece's place beside the anchor is.

    `pairs` remembers all matches of two single fragments, `joins` what was joined and `rivals` what else was known of
    what then moved, `round` how far the search has come.

    What is locked starts as one cluster, whose members keep their poses to each other; the anchor is the largest of
    them, or of all. After `until` (of `time.monotonic`) nothing is verified, and some time before nothing searched.
    """

    def __init__(
        self,
        fragments: Sequence[Fragment],
        models: FractureModels,
        seed: int,
        until: float = math.inf,
        locked: Mapping[int, Pose] | None = None,
        pair_search: PairSearch | None = None,
    ) -> None:
        self.pair_search = pair_search or PairSearch(fragments, models, seed)
        self.fragments, self.models, self.seed, self.until = fragments, models, seed, until
        now = time.monotonic()
        self.search_until = now + _SEARCHING * (until - now)
        self.locked = dict(locked or {})
        free = [piece for piece in range(len(fragments)) if piece not in self.locked]
        self.clusters = [self.pair_search.singles[piece] for piece in free]
        if self.locked:
            self.clusters.append(Cluster(fragments, self.locked))
        self.matches: dict[tuple[Cluster, Cluster], list[Match]] = {}
        self.pairs: dict[tuple[int, int], list[Match]] = {}
        self.joins: list[Known] = []
        self.rivals: list[list[Known]] = []
        self.round = 0
        self.searched: set[tuple[Cluster, Cluster, int]] = set()
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
    def ranked(self) -> list[Cluster]:
        """The clusters, that of the anchor first, then the largest."""
        return sorted(self.clusters, key=lambda one: (self.anchor not in one.members, -one.area, one.members))

    @property
    def ordered(self) -> list[Cluster]:
        """The clusters, the one with what is locked first, then the largest."""
        return sorted(self.clusters, key=lambda one: (not self._holds_locked(one), -one.area, one.members))

    def is_single(self, cluster: Cluster) -> bool:
        """Whether a cluster is one fragment in its own frame."""
        return len(cluster.members) == 1 and not self._holds_locked(cluster)

    def _holds_locked(self, cluster: Cluster) -> bool:
        return not self.locked.keys().isdisjoint(cluster.members)

    def largest(self, pieces: Sequence[int]) -> int:
        """The piece with the largest surface."""
        return max(pieces, key=lambda piece: (self.fragments[piece].area, -piece))

    def branch(self) -> AssemblyState:
        """Another state that knows the same; what is then done on one does not touch the other."""
        other = copy.copy(self)
        other.take_over(self)
        return other

    def take_over(self, other: AssemblyState) -> None:
        """Stand as another state of the same fragments stands."""
        self.clusters, self.matches, self.joins = list(other.clusters), dict(other.matches), list(other.joins)
        self.searched, self.rivals, self.round = set(other.searched), list(other.rivals), other.round

    def learn(self, first: Cluster, second: Cluster, matches: list[Match]) -> None:
        """Keep the most probable matches of two clusters."""
        if self.is_single(first) and self.is_single(second):
            self.pairs.setdefault((first.members[0], second.members[0]), []).extend(matches)
        known = self.matches.get((first, second), [])
        self.matches[first, second] = sorted(known + matches, key=lambda match: -match.probability)[:_KEPT]

    def forget(self, wrong: Callable[[Cluster, Cluster, Match], bool]) -> None:
        """Drop matches of two clusters that are known to be wrong."""
        self.matches = {
            (first, second): [match for match in matches if not wrong(first, second, match)]
            for (first, second), matches in self.matches.items()
        }

    def polish(self) -> None:
        """Let the members of every cluster settle together; the largest of each and what is locked stay."""
        for cluster in list(self.clusters):
            if not self.late and len(cluster.members) > 1:
                now = {cluster: polished(cluster, {self.largest(cluster.members), *self.locked})}
                self.clusters = [now.get(one, one) for one in self.clusters]
                self.matches = {(now.get(a, a), now.get(b, b)): known for (a, b), known in self.matches.items()}
                self.searched = {(now.get(a, a), now.get(b, b), number) for a, b, number in self.searched}

    def surest(self) -> Known | None:
        """The most probable of all matches."""
        ranked = [(matches[0].probability, pair) for pair, matches in self.matches.items() if matches]
        if not ranked:
            return None
        _, pair = max(ranked, key=lambda entry: (entry[0], entry[1][0].members, entry[1][1].members))
        return *pair, self.matches[pair][0]

    def join(self, first: Cluster, second: Cluster, match: Match) -> None:
        """Make one cluster of two, and carry over what is known about both."""
        loose = self.loose(first, second)
        others = [(*pair, other) for pair, found in self.matches.items() if loose in pair for other in found]
        self.rivals.append([rival for rival in others if rival[2] is not match])
        if self._holds_locked(first):
            first, second, match = second, first, match.reversed()
        self.joins.append((first, second, match))
        both = first.with_other(second, match.pose)
        old = {first, second}
        self.clusters = [cluster for cluster in self.clusters if cluster not in old] + [both]
        self.searched = {entry for entry in self.searched if old.isdisjoint(entry)}
        carried = self._carry(first, match.pose) + self._carry(second, IDENTITY)
        self.matches = {pair: matches for pair, matches in self.matches.items() if old.isdisjoint(pair)}
        for other in self.clusters:
            known = [match for partner, match in carried if partner is other and match.probability >= _HOPELESS]
            if other is not both and known:
                if not self.late:  # insertions stay as they are, all else is verified anew
                    found = [match for match in known if match.level != INSERTED]
                    known = [match for match in known if match.level == INSERTED]
                    known += reverify(other, both, found, self.models)
                self.learn(other, both, known)
        for part in old:
            part.release()

    def let_go_views(self) -> None:
        """Forget other points of the fragments and their doubtful breaks, which take as much memory as all else."""
        for one in (*self.fragments, *self.clusters):
            for view in ("redrawn", "doubtful"):
                one.__dict__.pop(view, None)

    def loose(self, first: Cluster, second: Cluster) -> Cluster:
        """Which of two clusters moves to the other: the smaller one, unless it has the anchor."""
        return min((first, second), key=lambda one: (self.anchor in one.members, one.area))

    @property
    def confidence(self) -> list[float]:
        """How sure each piece's place beside the anchor is: as sure as all joins by which it moved.

        A join shares its probability with all that contradicts it: matches of what moved that the assembly does not
        show. Matches of other members of the same two clusters, which it shows as well, speak for it. And it leans on
        pieces whose places in their clusters must be right.
        """
        sure, touching = [1.0] * len(self.fragments), self.touching()
        for number, (first, second, _) in enumerate(self.joins):
            chance = self.posterior(number) * leaning(sure, touching, first, second)
            for piece in self.loose(first, second).members:
                sure[piece] *= chance
        return sure

    def touching(self) -> dict[tuple[int, int], int]:
        """How many points of the break of the first of two pieces lie on that of the second, where any do."""
        found = {}
        for cluster in self.clusters:
            faces = {piece: self.fragments[piece].fracture(0) for piece in cluster.members}
            parts = {piece: moved(cluster.poses[piece], face.points, face.smooth) for piece, face in faces.items()}
            reach = _FIRST * self.fragments[0].spacing
            for one, two in _near_each_other({piece: part[0] for piece, part in parts.items()}, reach):
                near = nearest_across(parts[one][0], parts[two][0], reach)
                on = np.flatnonzero(near >= 0)
                count = int(((parts[one][1][on] * parts[two][1][near[on]]).sum(1) < _FACING).sum())
                if count:
                    found[one, two] = count
        return found

    def posterior(self, number: int) -> float:
        """The probability of a join, given all matches that speak for and against it."""
        first, second, match = self.joins[number]
        moved = self.loose(first, second).members
        both = {*first.members, *second.members}
        said = list(self.rivals[number])
        for (one, two), found in self.pairs.items():
            if (one in moved) != (two in moved):
                single = [Cluster(self.fragments, {piece: IDENTITY}) for piece in (one, two)]
                said += [(single[0], single[1], known) for known in found]
        support: dict[frozenset[int], float] = {}
        against: dict[frozenset[int], float] = {}
        for here, there, known in said:
            shown = self.shows(here, there, known.pose) if known.probability >= _RIVAL else None
            pair = frozenset((here.members[0], there.members[0]))
            # What was joined later is shown in any case, and planes lie on each other in many places at once.
            if shown is False or (shown and pair <= both and not known.slides):
                kept = support if shown else against
                kept[pair] = max(kept.get(pair, 0.0), log_odds(known, len(self.fragments)))
        total = log_odds(match, len(self.fragments))
        if not match.slides:
            total = max(sum(value for value in support.values() if value > 0) or total, total)
        rival = sum(math.exp(value - total) for value in against.values())
        ceiling = min(match.ceiling, SLIDING) if match.slides else match.ceiling
        return min(ceiling, 1 / (1 + math.exp(-total) + rival))

    def shows(self, first: Cluster, second: Cluster, pose: Pose) -> bool | None:
        """Whether the assembly has two former clusters at a pose to each other; none where they are apart."""
        one, two = first.members[0], second.members[0]
        whole = next((cluster for cluster in self.clusters if one in cluster.members), None)
        if whole is None or two not in whole.members:
            return None
        stands = compose(inverse(whole.poses[two]), whole.poses[one])
        told = compose(compose(inverse(second.poses[two]), pose), first.poses[one])
        return alike(told, stands, self.fragments[one])

    def _carry(self, cluster: Cluster, pose: Pose) -> list[tuple[Cluster, Match]]:
        """Matches of others with a cluster that now stands at the pose, as (the other, its match with the whole)."""
        carried = []
        for (first, second), matches in self.matches.items():
            for match in matches:
                if cluster in (first, second):
                    other, own = (first, match) if second is cluster else (second, match.reversed())
                    carried.append((other, replace(own, pose=compose(pose, own.pose))))
        return carried
