"""Why a fragment is not surer of its place, or was left out: a line for people, read off the end of a search.

Nothing is searched anew. What counts are the matches that are still known between clusters, those of two single
fragments, the joins that were made, and how much of a fragment is break.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from diffassemble.core.placements import UNPLACED, status_of
from diffassemble.core.thresholds import SURE
from diffassemble.fragments.assembly_state import AssemblyState
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, Pose, close, compose, inverse

NO_BREAK, SMALL, LATE = "no break found", "too small to compare, and fits into no gap", "not compared in time"
NOWHERE, LOOSE = "fits nowhere", "fits here best, but not well"
BADLY, ALONE = "fits nowhere well: of another object, or without its neighbours?", "nothing fits it"
SLIDES = "fits, but could slide along what it lies on"
# A break has hardly any points if there are fewer than this at level 0; it is found if it is this share of the surface.
_HARDLY, _FOUND = 8, 0.2
# Places are about as good as the best if they are at least this part as probable, and count if all together are so.
_ABOUT, _COUNTS = 0.5, 0.1
# Places are the same within so many degrees and spacings.
_DEGREES, _OFF = 8.0, 3.0
# A place is taken if more than this share of the surface would lie inside other fragments.
_ENTERED, _PROBES = 0.1, 160
Place = tuple[Pose, float]
"""Where a fragment may stand, and how probable it is."""


def explained(
    state: AssemblyState,
    confidence: Sequence[float],
    objects: Sequence[int],
    names: Sequence[str],
    loose: Collection[int] = (),
) -> tuple[str, ...]:
    """A line for every fragment; it is empty where a place is sure. Those that are `loose` fit, but not well."""
    notes = []
    for piece, (sure, own) in enumerate(zip(confidence, objects, strict=True)):
        status = status_of(sure, own)
        if status == UNPLACED:
            notes.append(why_left_out(state, piece, names, piece in loose))
        else:
            notes.append("" if status == "sure" else why_unsure(state, piece, names))
    return tuple(notes)


def why_left_out(state: AssemblyState, piece: int, names: Sequence[str], loose: bool = False) -> str:
    """Why a fragment has no place beside the anchor; one that is loose was joined to it, but not with likelihood."""
    cluster = _cluster_of(state, piece)
    others = [other for other in cluster.members if other != piece]
    fits = _why_loose(state, cluster) if loose else equally_well(len(open_places(state, cluster)))
    if piece == state.anchor and not others:
        return ALONE
    if others:
        return f"joined to {names[state.largest(others)]}, but together they {fits or NOWHERE}".replace("fits", "fit")
    if fits:
        return fits
    broken = state.fragments[piece].broken(0)
    if broken.sum() < _HARDLY:
        return SMALL if broken.sum() > _FOUND * len(broken) else NO_BREAK
    return LATE if state.search_late else NOWHERE


def _why_loose(state: AssemblyState, cluster: Cluster) -> str:
    """Why a cluster was taken off again."""
    joins = [
        match for first, second, match in state.joins if {*cluster.members} <= {*state.loose(first, second).members}
    ]
    return SLIDES if any(match.slides for match in joins) else BADLY


def why_unsure(state: AssemblyState, piece: int, names: Sequence[str]) -> str:
    """What makes the place of a fragment doubtful: the least probable of the joins that hold it to the anchor."""
    moved = [(number, state.loose(first, second)) for number, (first, second, _) in enumerate(state.joins)]
    held = [(state.posterior(number), number, loose) for number, loose in moved if piece in loose.members]
    if not held:
        return ""
    chance, number, loose = min(held, key=lambda join: join[:2])
    largest = state.largest(loose.members)
    if len(loose.members) > 1 and largest != piece:
        return f"as sure as {names[largest]}, to which it was joined before"
    if chance >= SURE:
        return "several joins lie between it and the largest fragment"
    if state.joins[number][2].slides:
        return SLIDES
    told = state.joins[number][2].probability
    count = len(rival_places(state, piece, told)) if len(loose.members) == 1 else 1
    return equally_well(count) or LOOSE


def equally_well(count: int) -> str:
    """What is said of something that fits several places."""
    return f"fits {count} places about equally well" if count > 1 else ""


def open_places(state: AssemblyState, cluster: Cluster) -> list[Place]:
    """The places beside other clusters at which one fits about as well as at its best."""
    beside: dict[Cluster, list[Place]] = {}
    for (first, second), matches in state.matches.items():
        if cluster in (first, second):
            own = matches if first is cluster else [match.reversed() for match in matches]
            places = beside.setdefault(second if first is cluster else first, [])
            places += [(match.pose, match.probability) for match in own]
    found = [place for places in beside.values() for place in _distinct(places, cluster)]
    best = max((chance for _, chance in found), default=0.0)
    found = [place for place in found if place[1] >= _ABOUT * best]
    return found if sum(chance for _, chance in found) >= _COUNTS else []


def rival_places(state: AssemblyState, piece: int, chance: float) -> list[Place]:
    """The place of a joined fragment, of this probability, and free ones in its cluster that are about as probable."""
    cluster, single = _cluster_of(state, piece), Cluster(state.fragments, {piece: IDENTITY})
    found = [(cluster.poses[piece], 1.0)]
    for (one, two), matches in state.pairs.items():
        other = two if one == piece else one
        if piece in (one, two) and other in cluster.members:
            for match in matches:
                pose = match.pose if one == piece else inverse(match.pose)
                found.append((compose(cluster.poses[other], pose), match.probability))
    own, *rivals = _distinct((place for place in found if place[1] >= _ABOUT * chance), single)
    rest = {other: pose for other, pose in cluster.poses.items() if other != piece}
    return [own, *(rival for rival in rivals if _is_free(rival[0], single, Cluster(state.fragments, rest)))]


def _is_free(pose: Pose, single: Cluster, rest: Cluster) -> bool:
    """Whether a fragment can stand at a pose without entering the others."""
    points = single.body.points
    step = max(1, len(points) // _PROBES)
    return rest.body.holds(pose, points, step) <= _ENTERED * len(points[::step])


def _distinct(places: Iterable[Place], cluster: Cluster) -> list[Place]:
    """Of places that are the same the most probable."""
    middle, off = cluster.body.points.mean(0), _OFF * cluster.fragments[0].spacing
    kept: list[Place] = []
    for pose, chance in sorted(places, key=lambda place: -place[1]):
        if not any(close(pose, other, middle, _DEGREES, off) for other, _ in kept):
            kept.append((pose, chance))
    return kept


def _cluster_of(state: AssemblyState, piece: int) -> Cluster:
    return next(cluster for cluster in state.clusters if piece in cluster.members)
