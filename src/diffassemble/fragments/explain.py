"""Why the place of a fragment is not sure, or why it has none: a line for people, read off the state after a search.

Nothing is searched again. What counts are the matches still known between clusters, those of two single fragments, the
joins that were made, and how much of a fragment is break.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from diffassemble.core.placements import UNPLACED, status_of
from diffassemble.core.thresholds import SURE
from diffassemble.fragments.assembly_state import AssemblyState
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, Pose, close, compose, inverse

NO_BREAK, SMALL, LATE = "no break found", "too small to compare, and fits into no gap", "not compared in time"
NOWHERE, LOOSE = "fits nowhere", "fits here best, but not well"
BADLY, ALONE = "fits nowhere well: of another object, or without its neighbours?", "nothing fits it"
SLIDES = "fits, but could slide along what it lies on"


@dataclass(frozen=True)
class ExplainConfig:
    """When places count as equally good, and breaks as found."""

    fewest: int = 8
    """a break with fewer points at level 0 can hardly be compared"""
    found: float = 0.2
    """a fragment is small, and not without a break, if its break is more than this share of its surface"""
    about: float = 0.5
    """places are about as good as the best if they are at least this share as probable"""
    counts: float = 0.1
    """and count if their probabilities add up to this"""
    alike: tuple[float, float] = (8.0, 3.0)
    """places that differ by fewer degrees and spacings are one"""
    entered: float = 0.1
    """a place is taken if more than this share of the surface would lie inside other fragments"""
    probes: int = 160


EXPLAIN = ExplainConfig()
Place = tuple[Pose, float]
"""a pose that a fragment may have, and its probability"""


def explained(
    state: AssemblyState,
    confidence: Sequence[float],
    objects: Sequence[int],
    names: Sequence[str],
    unsupported: Collection[int] = (),
    config: ExplainConfig = EXPLAIN,
) -> tuple[str, ...]:
    """A line for every fragment, empty where a place is sure; `unsupported` are those whose joins were taken off."""
    notes = []
    for piece, (sure, own) in enumerate(zip(confidence, objects, strict=True)):
        status = status_of(sure, own)
        if status == UNPLACED:
            notes.append(why_unplaced(state, piece, names, piece in unsupported, config))
        else:
            notes.append("" if status == "sure" else why_unsure(state, piece, names, config))
    return tuple(notes)


def why_unplaced(
    state: AssemblyState, piece: int, names: Sequence[str], unsupported: bool, config: ExplainConfig
) -> str:
    """Why a fragment has no place beside the anchor; an unsupported one was joined to it, but by no likely join."""
    cluster = state.cluster_of(piece)
    others = [other for other in cluster.members if other != piece]
    fits = _why_taken_off(state, cluster) if unsupported else equally_well(len(open_places(state, cluster, config)))
    if piece == state.anchor and not others:
        return ALONE
    if others:
        return f"joined to {names[state.largest(others)]}, but together they {fits or NOWHERE}".replace("fits", "fit")
    if fits:
        return fits
    broken = state.fragments[piece].broken(0)
    if broken.sum() < config.fewest:
        return SMALL if broken.sum() > config.found * len(broken) else NO_BREAK
    return LATE if state.search_over else NOWHERE


def _why_taken_off(state: AssemblyState, cluster: Cluster) -> str:
    """Why the join of a cluster was taken off again."""
    joins = [
        match for first, second, match in state.joins if {*cluster.members} <= {*state.moving(first, second).members}
    ]
    return SLIDES if any(match.slides for match in joins) else BADLY


def why_unsure(state: AssemblyState, piece: int, names: Sequence[str], config: ExplainConfig) -> str:
    """What makes the place of a fragment doubtful: the least probable of the joins that hold it to the anchor."""
    moved = [(number, state.moving(first, second)) for number, (first, second, _) in enumerate(state.joins)]
    held = [(state.posterior(number), number, part) for number, part in moved if piece in part.members]
    if not held:
        return ""
    chance, number, part = min(held, key=lambda join: join[:2])
    largest = state.largest(part.members)
    if len(part.members) > 1 and largest != piece:
        return f"as sure as {names[largest]}, to which it was joined before"
    if chance >= SURE:
        return "several joins lie between it and the largest fragment"
    if state.joins[number].match.slides:
        return SLIDES
    probability = state.joins[number].match.probability
    count = len(rival_places(state, piece, probability, config)) if len(part.members) == 1 else 1
    return equally_well(count) or LOOSE


def equally_well(count: int) -> str:
    """What is said of something that fits several places."""
    return f"fits {count} places about equally well" if count > 1 else ""


def open_places(state: AssemblyState, cluster: Cluster, config: ExplainConfig = EXPLAIN) -> list[Place]:
    """The places beside other clusters at which one fits about as well as at its best."""
    beside: dict[Cluster, list[Place]] = {}
    for (first, second), matches in state.matches.items():
        if cluster in (first, second):
            own = matches if first is cluster else [match.reversed() for match in matches]
            places = beside.setdefault(second if first is cluster else first, [])
            places += [(match.pose, match.probability) for match in own]
    found = [place for places in beside.values() for place in _distinct(places, cluster, config)]
    best = max((chance for _, chance in found), default=0.0)
    found = [place for place in found if place[1] >= config.about * best]
    return found if sum(chance for _, chance in found) >= config.counts else []


def rival_places(state: AssemblyState, piece: int, chance: float, config: ExplainConfig = EXPLAIN) -> list[Place]:
    """The place of a joined fragment, of this probability, and free ones in its cluster that are about as probable."""
    cluster, single = state.cluster_of(piece), Cluster(state.fragments, {piece: IDENTITY})
    found = [(cluster.poses[piece], 1.0)]
    for (one, two), matches in state.pairs.items():
        other = two if one == piece else one
        if piece in (one, two) and other in cluster.members:
            for match in matches:
                pose = match.pose if one == piece else inverse(match.pose)
                found.append((compose(cluster.poses[other], pose), match.probability))
    own, *rivals = _distinct((place for place in found if place[1] >= config.about * chance), single, config)
    rest = {other: pose for other, pose in cluster.poses.items() if other != piece}
    body, points = Cluster(state.fragments, rest).body, single.body.points
    step = max(1, len(points) // config.probes)
    most = config.entered * len(points[::step])
    return [own, *(rival for rival in rivals if body.holds(rival[0], points, step) <= most)]


def _distinct(places: Iterable[Place], cluster: Cluster, config: ExplainConfig) -> list[Place]:
    """Of places that are the same the most probable."""
    degrees, off = config.alike
    middle, off = cluster.body.points.mean(0), off * cluster.fragments[0].spacing
    kept: list[Place] = []
    for pose, chance in sorted(places, key=lambda place: -place[1]):
        if not any(close(pose, other, middle, degrees, off) for other, _ in kept):
            kept.append((pose, chance))
    return kept
