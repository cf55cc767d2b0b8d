"""What holds to the rest by no likely join is taken off it again: it may be of another object, or lack its neighbours.

Its place is still the best guess, but it is not part of the answer.
"""

from __future__ import annotations

from diffassemble.fragments.assembly_state import AS_MUCH, SLIDING, AssemblyState
from diffassemble.fragments.clusters import Cluster


def take_off(state: AssemblyState, least: float) -> set[int]:
    """Part clusters where only joins less probable than this hold them together; the pieces that lost the anchor.

    A join counts by itself, however long the chain of joins to the anchor is, and holds those pieces together that
    touch. One that could slide is never told as likely, but holds what lies against several pieces, if it would be
    likely otherwise.
    """
    touching = state.touching()
    group = {piece: piece for piece in range(len(state.fragments))}
    for piece in state.locked:
        group[piece] = min(state.locked)
    for number, (first, second, match) in enumerate(state.joins):
        slides = match.slides and _among_several(touching, first, second)
        if state.posterior(number) >= (least * SLIDING if slides else least):
            for one, two in _held(touching, first, second):
                old, new = group[one], group[two]
                group = {piece: new if own == old else own for piece, own in group.items()}
    before = next(cluster for cluster in state.clusters if state.anchor in cluster.members)
    state.clusters = [part for cluster in state.clusters for part in _parts(cluster, group)]
    after = next(cluster for cluster in state.clusters if state.anchor in cluster.members)
    return set(before.members) - set(after.members)


def _held(touching: dict[tuple[int, int], int], first: Cluster, second: Cluster) -> list[tuple[int, int]]:
    """Pairs of members of two clusters that touch about as much as any."""
    count = {
        (one, two): touching.get((one, two), 0) + touching.get((two, one), 0)
        for one in first.members
        for two in second.members
    }
    most = max(count.values())
    return [pair for pair, own in count.items() if own >= AS_MUCH * most]


def _among_several(touching: dict[tuple[int, int], int], first: Cluster, second: Cluster) -> bool:
    """Whether more than two members of two clusters touch one of the other: planes at an angle hold each other."""
    pairs = [(one, two) for one in first.members for two in second.members if (one, two) in touching]
    return len({piece for pair in pairs for piece in pair}) > 2


def _parts(cluster: Cluster, group: dict[int, int]) -> list[Cluster]:
    """The cluster itself if all of its members are of one group, else one for each group."""
    groups = sorted({group[piece] for piece in cluster.members})
    if len(groups) == 1:
        return [cluster]
    members = [{piece: pose for piece, pose in cluster.poses.items() if group[piece] == own} for own in groups]
    return [Cluster(cluster.fragments, poses) for poses in members]
