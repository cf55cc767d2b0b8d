"""Several assemblies: where likely fits contradict each other, each is followed, and the evidence decides at last."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from diffassemble.compatibility.fracture.clusters import STAY, Cluster, Pose, composed
from diffassemble.compatibility.fracture.contact import count_buried, undone
from diffassemble.compatibility.fracture.fits import Fit, review
from diffassemble.compatibility.fracture.moulds import CAST
from diffassemble.solvers.merging import Bench, Known
from diffassemble.solvers.rounds import SURE, assemble

# A fit rivals the surest one if its odds are at least this part of the other's.
_RIVAL = 0.1
# Of such fits only the surest few are looked at.
_MOST = 4
# It is contradicted if, after the surest was joined, no more than this part of its probability is left.
_LEFT = 0.5
# Poses are alike within so many degrees and spacings.
_DEGREES, _OFF = 8.0, 3.0
# Two fragments enter each other if more than this share of one's surface lies inside the other.
_ENTERED = 0.1
_PROBES = 160
# No fit counts for more than one of this probability.
_SUREST = 0.95


def assemble_best(bench: Bench, least: float, width: int) -> Iterator[float]:
    """Join what fits, as `rounds.assemble`; where it was not sure of all, also up to `width` − 1 other ways.

    The bench ends with the assembly that has most evidence; yields the probabilities of the joins of the first.
    """
    rivals: list[Bench] = []

    def join(one: Bench, goal: float) -> Iterator[float]:
        return join_and_branch(one, goal, rivals, width - 1)

    yield from assemble(bench, least, join)
    if not rivals or (min(bench.confidence) >= SURE and len(bench.clusters) == 1):
        return
    ends = [bench.branch()]
    for rival in rivals:
        if not bench.late:
            for _ in assemble(rival, least):
                pass
            ends.append(rival)
    bench.take_over(max(ends, key=lambda end: (not entering(end), evidence(end))))


def join_and_branch(bench: Bench, least: float, rivals: list[Bench], most: int) -> Iterator[float]:
    """Make all joins down to a probability; what a join contradicts starts a rival, while there are fewer than `most`.

    A rival is a bench on which the contradicted fit was joined instead.
    """
    while len(bench.clusters) > 1:
        best = bench.surest()
        if best is None or best[2].probability < least:
            return
        close = [] if len(rivals) >= most or bench.late else comparable(bench, best, least)
        before = bench.branch()
        bench.join(*best)
        lost = [other for other in close if contradicted(bench, best, other)]
        for other in lost[: most - len(rivals)]:
            rivals.append(before.branch())
            rivals[-1].join(*other)
        yield best[2].probability


def comparable(bench: Bench, best: Known, least: float) -> list[Known]:
    """Other fits of one of two clusters that are about as probable as theirs, the surest first."""
    odds = _RIVAL * _odds(best[2])
    found = [
        (first, second, fit)
        for (first, second), fits in bench.fits.items()
        if first in best[:2] or second in best[:2]
        for fit in fits
        if fit is not best[2] and fit.level != CAST and fit.probability >= least and _odds(fit) >= odds
    ]
    return sorted(found, key=lambda known: -known[2].probability)[:_MOST]


def contradicted(bench: Bench, joined: Known, other: Known) -> bool:
    """Whether a fit is no longer likely on a bench on which another one was joined."""
    first, second, fit = other
    if {first, second} == {*joined[:2]}:
        pose = fit.pose if first is joined[0] else undone(fit.pose)
        return not alike(pose, joined[2].pose, joined[0])
    if first in joined[:2]:
        first, second, fit = second, first, fit.turned_round()
    whole = next(cluster for cluster in bench.clusters if set(second.members) < set(cluster.members))
    member = second.members[0]
    moved = composed(composed(whole.poses[member], undone(second.poses[member])), fit.pose)
    judged = review(first, whole, [Fit(moved, fit.probability, fit.level, fit.votes, fit.numbers)], bench.judges)
    return not judged or judged[0].probability < _LEFT * fit.probability


def alike(one: Pose, two: Pose, cluster: Cluster) -> bool:
    """Whether a cluster stands about the same at two poses."""
    cosine = ((one[:9] * two[:9]).sum() - 1) / 2
    off = (one[:9] - two[:9]).reshape(3, 3) @ cluster.body.points.mean(0) + one[9:] - two[9:]
    near = float(np.linalg.norm(off)) < _OFF * cluster.fragments[0].spacing
    return near and bool(np.degrees(np.arccos(np.clip(cosine, -1, 1))) < _DEGREES)


def evidence(bench: Bench) -> float:
    """Log odds of all joins, and of all other fits of two single fragments with which the assembly agrees.

    What is less likely than not counts nothing: a guess is no worse than a piece left out.
    """
    total = sum(_log_odds(fit) for _, _, fit in bench.joins)
    done = {frozenset(first.members + second.members) for first, second, _ in bench.joins}
    for (one, two), fits in bench.pairs.items():
        cluster = next((cluster for cluster in bench.clusters if {one, two} <= set(cluster.members)), None)
        if cluster is not None and frozenset((one, two)) not in done:
            single = Cluster(bench.fragments, {one: STAY})
            pose = composed(undone(cluster.poses[two]), cluster.poses[one])
            total += max((_log_odds(fit) for fit in fits if alike(fit.pose, pose, single)), default=0.0)
    return total


def entering(bench: Bench) -> bool:
    """Whether two fragments that were joined stand in each other."""
    bodies = [Cluster(bench.fragments, {piece: STAY}).body for piece in range(len(bench.fragments))]
    for cluster in bench.clusters:
        for pair in combinations(cluster.members, 2):
            for one, two in (pair, pair[::-1]):
                pose = composed(undone(cluster.poses[two]), cluster.poses[one])
                points = bodies[one].points[:: max(1, len(bodies[one].points) // _PROBES)]
                body = bodies[two]
                inside = count_buried(pose, points, body.voxels, body.points, body.normals, body.spacing)
                if inside > _ENTERED * len(points):
                    return True
    return False


def _odds(fit: Fit) -> float:
    return fit.probability / max(1e-9, 1 - fit.probability)


def _log_odds(fit: Fit) -> float:
    """Not below 0, and of no probability above the surest."""
    chance = min(fit.probability, _SUREST)
    return max(0.0, float(np.log(max(1e-9, chance) / (1 - chance))))
