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
from diffassemble.fragments.contact import Pose, compose, inverse

NO_BREAK, SMALL, LATE = "no break found", "too small to compare", "not compared in time"
NOWHERE, LOOSE = "fits nowhere", "fits here best, but not well"
BADLY, ALONE = "fits nowhere well: of another object, or without its neighbours?", "nothing fits it"
SLIDES = "fits, but could slide along what it touches"
Place = tuple[Pose, float]
"""a pose that a fragment may have, and its probability"""


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
    entered: float = 0.1
    """a place is taken if more than this share of the surface would be inside other fragments"""
    probes: int = 160


EXPLAIN = ExplainConfig()


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
    state: AssemblyState, piece: int, names: Sequence[str], unsupported: bool, config: ExplainConfig = EXPLAIN
) -> str:
    """Why a fragment has no place beside the anchor; an unsupported one was joined to it, but by no likely join."""
    cluster, fits = state.cluster_of(piece), ""
    others = [other for other in cluster.members if other != piece]
    if unsupported:
        joins = [join for join in state.joins if {*cluster.members} <= {*state.moving(join).members}]
        fits = SLIDES if any(join.match.slides for join in joins) else BADLY
    else:
        fits = equally_well(len(open_places(state, cluster, config)))
    if piece == state.anchor and not others:
        return ALONE
    if others:
        return f"joined to {names[state.largest(others)]}, but together they {fits or NOWHERE}".replace("fits", "fit")
    broken = state.fragments[piece].broken(0)
    if not fits and broken.sum() < config.fewest:
        return SMALL if broken.sum() > config.found * len(broken) else NO_BREAK
    return fits or (LATE if state.search_over else NOWHERE)


def why_unsure(state: AssemblyState, piece: int, names: Sequence[str], config: ExplainConfig = EXPLAIN) -> str:
    """What makes the place of a fragment doubtful: the least probable of the joins that hold it to the anchor."""
    parts = [state.moving(join).members for join in state.joins]
    held = [(state.posterior(number), number) for number, part in enumerate(parts) if piece in part]
    if not held:
        return ""
    chance, number = min(held)
    match, part = state.joins[number].match, parts[number]
    if len(part) > 1 and state.largest(part) != piece:
        return f"as sure as {names[state.largest(part)]}, to which it was joined before"
    if chance >= SURE:
        return "several joins lead from it to the largest fragment"
    if match.slides:
        return SLIDES
    count = len(rival_places(state, piece, match.probability, config)) if len(part) == 1 else 1
    return equally_well(count) or LOOSE


def equally_well(count: int) -> str:
    """The reason that something fits several places."""
    return f"fits {count} places about equally well" if count > 1 else ""


def open_places(state: AssemblyState, cluster: Cluster, config: ExplainConfig = EXPLAIN) -> list[Place]:
    """The places beside other clusters at which one fits about as well as at its best."""
    found: list[Place] = []
    for other in state.clusters:
        matches = [join.at(cluster) for join in state.between(cluster, other)]
        found += _distinct(state, cluster.members[0], ((match.pose, match.probability) for match in matches))
    best = max((chance for _, chance in found), default=0.0)
    found = [place for place in found if place[1] >= config.about * best]
    return found if sum(chance for _, chance in found) >= config.counts else []


def rival_places(state: AssemblyState, piece: int, chance: float, config: ExplainConfig = EXPLAIN) -> list[Place]:
    """The place of a joined fragment, of this probability, and free ones in its cluster that are about as probable."""
    cluster = state.cluster_of(piece)
    found = [(cluster.poses[piece], 1.0)]
    for (one, two), matches in state.pairs.items():
        other = two if one == piece else one
        if piece in (one, two) and other in cluster.members:
            for match in matches:
                pose = match.pose if one == piece else inverse(match.pose)
                found.append((compose(cluster.poses[other], pose), match.probability))
    own, *rivals = _distinct(state, piece, (place for place in found if place[1] >= config.about * chance))
    rest = {other: pose for other, pose in cluster.poses.items() if other != piece}
    body, points = Cluster(state.fragments, rest).body, state.pair_search.singles[piece].body.points
    step = max(1, len(points) // config.probes)
    most = config.entered * len(points[::step])
    return [own, *(rival for rival in rivals if body.holds(rival[0], points, step) <= most)]


def _distinct(state: AssemblyState, piece: int, places: Iterable[Place]) -> list[Place]:
    """Of places of a fragment (or of its cluster) that are the same the most probable."""
    kept: list[Place] = []
    for pose, chance in sorted(places, key=lambda place: -place[1]):
        if not any(state.alike(pose, other, piece) for other, _ in kept):
            kept.append((pose, chance))
    return kept
