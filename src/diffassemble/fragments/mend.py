"""Mends broken objects: fracture surfaces are found, matched and verified; the surest match is joined first.

Round by round clusters are looked at harder (`assemble`), small pieces go into gaps last. Where likely matches
contradict each other, several assemblies are followed, and the evidence decides at last (`assemble_best`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from diffassemble.core import FragmentPieces, Placements, Poses, Puzzle, Step
from diffassemble.core.seeds import mixed_seed
from diffassemble.core.solver import in_content_order
from diffassemble.fragments.assembly_state import AssemblyState, Known, alike
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, Pose, compose, inverse, pose_rows, poses_of
from diffassemble.fragments.copies import are_copies, congruent
from diffassemble.fragments.doubtful_joins import take_off
from diffassemble.fragments.explain import explained
from diffassemble.fragments.gap_insertion import INSERTED, find_gaps, insert_into_gaps
from diffassemble.fragments.matches import (
    Match,
    PairSearchCache,
    can_refine,
    level_for,
    match_clusters,
    reverify,
    run_parallel,
)
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import GLANCE, QUICK, Effort
from diffassemble.fragments.scale import misfit_of
from diffassemble.fragments.surface import is_cloud, oversampling

SURE, LIKELY, POSSIBLE = 0.9, 0.5, 0.15
_ALL, _SEVERAL, _AT_ONCE = 1000, 8, 200
# Pieces whose break has fewer points than this at level 0 are not compared with others, only inserted into gaps.
_LEAST = 8
# Before this round small pieces, of at most this share of the whole surface (less, if it is in very many pieces), are
# inserted into the gaps of the largest cluster, which are looked at in this part of the spacing of level 0; then again,
# for those whose gap another one took.
_INSERTION, _SMALL, _GAP, _PASSES = 5, 0.006, 1 / 3, 3
# Middles of two small pieces are at least this share of both widths apart.
_CROWDED = 0.3
# A match rivals the surest one if its odds are at least this part of the other's.
_RIVAL = 0.1
# Of such matches only the surest few are looked at.
_MOST = 4
# It is contradicted if, after the surest was joined, no more than this part of its probability is left.
_LEFT = 0.5
# Two fragments enter each other if more than this share of one's surface lies inside the other.
_ENTERED = 0.1
_PROBES = 160
# No match counts for more than one of this probability.
_SUREST = 0.95
# What is joined with a probability between these is looked at once more.
_DOUBTED = 0.2, 0.97
# Where all that may be of the break counted as such, no match is surer than this, and than this when it is looked at
# again where it does not.
_SUREST_DOUBTFUL, _SUREST_REVIEWED = 0.7, 0.89
# A cluster of this part of its surface is worth more than a single fragment.
_OUTWEIGHS = 0.5
# The least probability with which pieces are joined where all belong to one object: mere guesses.
_GUESS = 0.1
# Nothing is surer where normals were estimated: wrong sides make wrong fits look right.
_ESTIMATED = 0.89


@dataclass(frozen=True)
class Round:
    """How hard pairs are looked at anew, how much finer than needed, how probable a match must be to be used, how many
    of the largest clusters the others are compared with, how many points a break must have at level 0, whether other
    points of the surfaces are drawn for it, and whether all that may be of the break counts as such."""

    effort: Effort
    finer: int
    least: float
    partners: int
    smallest: int = 0
    redrawn: bool = False
    doubtful: bool = False


ROUNDS = (
    Round(GLANCE, 0, SURE, _ALL, 60),
    Round(QUICK, 0, SURE, _SEVERAL, 60),
    Round(QUICK, 0, LIKELY, _SEVERAL, 60),
    Round(QUICK, 0, LIKELY, 3, _LEAST),
    Round(QUICK, 1, LIKELY, 3, _LEAST),
    Round(QUICK, 0, LIKELY, 1, _LEAST, redrawn=True),
    Round(QUICK, 0, LIKELY, 1, doubtful=True),
    Round(QUICK, 1, POSSIBLE, 1, _LEAST),
)


def assemble(state: AssemblyState, least: float, rivals: list[AssemblyState], most: int) -> Iterator[float]:
    """Join what fits with at least this probability; yields the probability of each join as it is made.

    Goes on with the round in which the state stands. Up to `most` `rivals` are made (see `join`).
    """
    for number in range(state.round, len(ROUNDS)):
        state.round = number
        goal = max(ROUNDS[number].least, least)
        yield from join(state, goal, rivals, most)
        if number == _INSERTION:
            yield from insert_small(state, max(LIKELY, least))
        while len(state.clusters) > 1 and not state.search_late and search_some(state, number):
            yield from join(state, goal, rivals, most)
        if oversampling(len(state.fragments)) > 1:
            state.let_go_views()
    # What was found in haste was not verified beside the rest: then only what is likely is used.
    yield from join_apart(state, max(LIKELY, least) if state.late else least)
    state.polish()


def search_some(state: AssemblyState, number: int) -> bool:
    """Look for matches of pairs of clusters that were not yet looked at in this round; whether there were any.

    The largest clusters come first; of very many pairs only some, so that what is found can be joined in between.
    """
    effort, before = ROUNDS[number], ROUNDS[number - 1]
    repeated = replace(effort, least=0.0, partners=0, smallest=0) == replace(before, least=0.0, partners=0, smallest=0)
    ordered = state.ordered
    pairs = [(ordered[i], ordered[j]) for j in range(len(ordered)) for i in range(min(j, effort.partners))]
    todo = [pair for pair in pairs if pair[1].points >= effort.smallest and (*pair, number) not in state.searched]
    jobs = []
    for large, small in todo[:_AT_ONCE]:
        one, two = seen_by(effort, small), seen_by(effort, large)
        again = repeated and (large, small, number - 1) in state.searched
        state.searched.add((large, small, number))
        # At a closer look there is too much that may be of the break.
        level = 0 if effort.doubtful else level_for(one, two) + effort.finer
        again = again or (effort.finer > 0 and not can_refine(one, two, level))
        # Sides are made here, one after another, since what is drawn for them depends on the order.
        if not again and one.side(level) is not None and two.side(level) is not None:
            jobs.append((small, large, level))
        if state.search_late:
            break

    def look(job: tuple[Cluster, Cluster, int]) -> list[Match]:
        small, large, level = job
        if state.search_late:
            return []
        seed = mixed_seed(state.seed, number, large.members, small.members)
        if effort.doubtful or effort.redrawn:
            both = seen_by(effort, small), seen_by(effort, large)
            found = match_clusters(*both, level, effort.effort, state.models, seed)
            return reviewed(state, small, large, found) if effort.doubtful else found
        if state.is_single(small) and state.is_single(large):
            return state.pair_search.between(small.members[0], large.members[0], effort.finer, effort.effort)
        return match_clusters(small, large, level, effort.effort, state.models, seed)

    for (small, large, _), matches in zip(jobs, run_parallel(look, jobs), strict=True):
        state.learn(small, large, matches)
    return bool(todo)


def reviewed(state: AssemblyState, small: Cluster, large: Cluster, found: list[Match]) -> list[Match]:
    """Matches found where all that may be of the break counted as such, as sure as they are where it does not."""
    level = level_for(small, large)
    closer = reverify(small, large, [replace(match, level=level) for match in found], state.models)
    matches = [match.capped(_SUREST_DOUBTFUL) for match in found] + [match.capped(_SUREST_REVIEWED) for match in closer]
    return sorted(matches, key=lambda match: -match.probability)


def seen_by(effort: Round, cluster: Cluster) -> Cluster:
    """A cluster as a round looks at it."""
    if effort.redrawn:
        return cluster.redrawn
    return cluster.doubtful if effort.doubtful else cluster


def insert_small(state: AssemblyState, least: float) -> Iterator[float]:
    """Insert small single pieces into the gaps of the first cluster; yields the probabilities of joins."""
    limit = _small(state)
    for _ in range(_PASSES):
        before = len(state.clusters)
        if before < 2 or state.search_late:
            return
        state.polish()
        main, *others = state.ordered
        known = state.matches
        tried = {one for (one, two) in known if two is main and any(m.level == INSERTED for m in known[one, two])}
        small = [one for one in others if len(one.members) == 1 and one.area < limit and one not in tried]
        # Clouds of points show nothing finer than what was looked at already.
        if not small or len(main.members) < 2 or any(is_cloud(fragment.mesh) for fragment in state.fragments):
            return
        gaps = find_gaps(main, _GAP * state.fragments[0].spacing)
        for other in small:
            if not state.search_late:
                seed = mixed_seed(state.seed, other.members, main.members)
                state.learn(other, main, insert_into_gaps(state.fragments[other.members[0]], main, gaps, seed))
        yield from join_apart(state, least)
        if len(state.clusters) == before:
            return


def join_apart(state: AssemblyState, least: float) -> Iterator[float]:
    """Join down to a probability, but insert no two small pieces into one gap."""
    limit = _small(state)
    for probability in join(state, least, [], 0):
        state.forget(lambda first, second, match: match.level == INSERTED and crowded(first, second, match.pose, limit))
        yield probability


def crowded(small: Cluster, whole: Cluster, pose: Pose, limit: float) -> bool:
    """Whether a single piece at a pose would stand where another one, of less than this area, stands already."""
    if len(small.members) > 1:
        return False
    middle, width = _measure(small, small.members[0], pose)
    others = [_measure(whole, piece, IDENTITY) for piece in whole.members if whole.fragments[piece].area < limit]
    return any(np.linalg.norm(middle - other) < _CROWDED * (width + wide) for other, wide in others)


def _small(state: AssemblyState) -> float:
    """The area below which a piece counts as small."""
    whole = sum(fragment.area for fragment in state.fragments)
    return _SMALL * whole / oversampling(len(state.fragments))


def _measure(cluster: Cluster, piece: int, pose: Pose) -> tuple[np.ndarray, float]:
    """The middle of a member of a cluster at a pose, and how wide it is."""
    corners = cluster.fragments[piece].mesh.vertices.numpy()
    stands = compose(pose, cluster.poses[piece])
    middle = stands[:9].reshape(3, 3) @ ((corners.min(0) + corners.max(0)) / 2) + stands[9:]
    return middle, float(np.linalg.norm(np.ptp(corners, axis=0)))


def assemble_best(state: AssemblyState, least: float, width: int) -> Iterator[float]:
    """Join what fits, as `assemble`; where it was not sure of all, also up to `width` − 1 other ways.

    The state ends with the assembly that has most evidence; yields the probabilities of the joins of the first. Very
    many pieces are joined one way only, since every way takes minutes.
    """
    rivals: list[AssemblyState] = []
    yield from assemble(state, least, rivals, width - 1 if oversampling(len(state.fragments)) == 1 else 0)
    if not rivals or (min(state.confidence) >= SURE and len(state.clusters) == 1):
        return
    ends = [state.branch()]
    for rival in rivals:
        if not state.late:
            for _ in assemble(rival, least, [], 0):
                pass
            ends.append(rival)
    state.take_over(max(ends, key=lambda end: (not entering(end), evidence(end))))


def join(state: AssemblyState, least: float, rivals: list[AssemblyState], most: int) -> Iterator[float]:
    """Make all joins down to a probability; what a join contradicts starts a rival, while there are fewer than `most`.

    A rival is a state on which the contradicted match was joined instead.
    """
    while len(state.clusters) > 1:
        best = state.surest()
        if best is None or best[2].probability < least:
            return
        close = [] if len(rivals) >= most or state.late else comparable(state, best, least)
        before = state.branch() if close else state
        state.join(*best)
        lost = [other for other in close if contradicted(state, best, other)]
        for other in lost[: most - len(rivals)]:
            rivals.append(before.branch())
            rivals[-1].join(*other)
        yield best[2].probability


def comparable(state: AssemblyState, best: Known, least: float) -> list[Known]:
    """Other matches of one of two clusters that are about as probable as theirs, the surest first."""
    odds = _RIVAL * _odds(best[2])
    found = [
        (first, second, match)
        for (first, second), matches in state.matches.items()
        if first in best[:2] or second in best[:2]
        for match in matches
        if match is not best[2] and match.level != INSERTED and match.probability >= least and _odds(match) >= odds
    ]
    return sorted(found, key=lambda known: -known[2].probability)[:_MOST]


def contradicted(state: AssemblyState, joined: Known, other: Known) -> bool:
    """Whether a match is no longer likely on a state on which another one was joined."""
    first, second, match = other
    if {first, second} == {*joined[:2]}:
        pose = match.pose if first is joined[0] else inverse(match.pose)
        return not alike(pose, joined[2].pose, joined[0].fragments[joined[0].members[0]])
    if first in joined[:2]:
        first, second, match = second, first, match.reversed()
    whole = next(cluster for cluster in state.clusters if set(second.members) < set(cluster.members))
    member = second.members[0]
    moved = compose(compose(whole.poses[member], inverse(second.poses[member])), match.pose)
    verified = reverify(first, whole, [replace(match, pose=moved)], state.models)
    return not verified or verified[0].probability < _LEFT * match.probability


def evidence(state: AssemblyState) -> float:
    """Log odds of all joins, and of all other matches of two single fragments with which the assembly agrees.

    What is less likely than not counts nothing: a guess is no worse than a piece left out.
    """
    total = sum(_log_odds(match) for _, _, match in state.joins)
    done = {frozenset(first.members + second.members) for first, second, _ in state.joins}
    for (one, two), matches in state.pairs.items():
        cluster = next((cluster for cluster in state.clusters if {one, two} <= set(cluster.members)), None)
        if cluster is not None and frozenset((one, two)) not in done:
            pose = compose(inverse(cluster.poses[two]), cluster.poses[one])
            shown = [match for match in matches if alike(match.pose, pose, state.fragments[one])]
            total += max((_log_odds(match) for match in shown), default=0.0)
    return total


def entering(state: AssemblyState) -> bool:
    """Whether two fragments that were joined stand in each other."""
    bodies = [Cluster(state.fragments, {piece: IDENTITY}).body for piece in range(len(state.fragments))]
    for cluster in state.clusters:
        for pair in combinations(cluster.members, 2):
            for one, two in (pair, pair[::-1]):
                pose = compose(inverse(cluster.poses[two]), cluster.poses[one])
                points = bodies[one].points
                step = max(1, len(points) // _PROBES)
                if bodies[two].holds(pose, points, step) > _ENTERED * len(points[::step]):
                    return True
    return False


def _odds(match: Match) -> float:
    return match.probability / max(1e-9, 1 - match.probability)


def _log_odds(match: Match) -> float:
    """Not below 0, and of no probability above the surest."""
    chance = min(match.probability, _SUREST)
    return max(0.0, float(np.log(max(1e-9, chance) / (1 - chance))))


@dataclass(frozen=True)
class MendSolver:
    """Joins fragments along their breaks; what fits nowhere is laid beside, with confidence 0.

    The largest fragment placed stays turned as it was given: geometry can't know how the object stood. After `budget`
    seconds nothing more is searched for, and what is known by then is used. With `several` the fragments may be of more
    than one object: only likely matches count, and every group that holds together is an object of its own. Where
    matches contradict each other, up to `beam` assemblies are made, and the one with most evidence is the answer.
    Points and poses to try are drawn by `draws`, never by a generator: the answer is a function of the fragments. Who
    has a `search` shares it: what others found there is known, and what is found here is known to them.
    """

    models: FractureModels
    budget: float = math.inf
    several: bool = False
    beam: int = 3
    draws: int = 0
    search: PairSearchCache | None = None
    name: str = "mend"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the fragments lying apart, then after every join, and the whole with confidences at last.

        The answer does not depend on the order in which the fragments are listed.
        """
        until = time.monotonic() + self.budget
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, until))

    def _ordered_steps(self, puzzle: Puzzle, until: float) -> Iterator[Step]:
        aside = set_aside(puzzle)
        kept = torch.tensor([piece for piece in range(len(puzzle)) if piece not in aside])
        rest = puzzle.reordered(kept)
        for step in self._joining_steps(rest, until):
            yield with_those_aside(with_equals_told(step, rest), puzzle.fragments, kept, aside)

    def _joining_steps(self, puzzle: Puzzle, until: float) -> Iterator[Step]:
        pieces, locks = puzzle.fragments, puzzle.locks
        locked = {} if locks is None else {i: row for i, row in enumerate(pose_rows(locks.poses)) if locks.held[i]}
        search = (self.search or PairSearchCache(self.models, self.draws))(pieces)
        state = AssemblyState(search.fragments, self.models, self.draws, until, locked, search)
        yield Step(lay_out(state, pieces), done=0.0)
        for joins, _ in enumerate(assemble_best(state, LIKELY if self.several else _GUESS, self.beam), 1):
            yield Step(lay_out(state, pieces), done=0.99 * joins / len(pieces))
        look_again(state)
        guess, loose = best_guess(state, lay_out(state, pieces)), set[int]()
        if not self.several:
            loose = take_off(state, LIKELY)
            choose_anchor(state)
        objects = found_objects(state, self.several)
        sure = torch.tensor(told_confidence(state)).where(objects >= 0, 0.0)
        if any(is_cloud(mesh) and mesh.normals is None for mesh in pieces.meshes):
            sure = sure.clamp(max=_ESTIMATED) if locks is None else sure.where(locks.held, sure.clamp(max=_ESTIMATED))
        notes = explained(state, sure.tolist(), objects.tolist(), puzzle.names, loose)
        laid = lay_out(state, pieces)
        stays = laid[[state.anchor]] @ guess[[state.anchor]].inverse()
        best = None if self.several else moved_by(stays, guess)
        yield Step.last(Placements(laid, sure, objects, notes=notes, guess=best))


def set_aside(puzzle: Puzzle) -> dict[int, str]:
    """Which fragments are not to be placed, and why: those of another unit, and all but one of equal ones.

    What is locked is never among them. Of equal fragments the first by name stays.
    """
    held = [False] * len(puzzle) if puzzle.locks is None else puzzle.locks.held.tolist()
    found = misfit_of(puzzle.fragments.points, puzzle.fragments.meshes)
    aside = {} if found is None or not found.leaves_out else dict.fromkeys(found.members, found.text)
    kept: dict[tuple[int, int], list[int]] = {}
    for piece in sorted(range(len(puzzle)), key=lambda piece: (not held[piece], puzzle.names[piece])):
        mesh = puzzle.fragments.meshes[piece]
        alike = kept.setdefault((len(mesh.vertices), len(mesh.faces)), [])
        same = next((other for other in alike if are_copies(puzzle.fragments.meshes[other], mesh)), None)
        if same is None or held[piece]:
            alike.append(piece)
        else:
            aside[piece] = f"the same fragment as {puzzle.names[same]}"
    return {piece: reason for piece, reason in aside.items() if not held[piece]}


def with_equals_told(step: Step, puzzle: Puzzle) -> Step:
    """The last step, with a word on each fragment in doubt that has the shape of another one."""
    if step.result is None or step.result.notes is None:
        return step
    notes, meshes = list(step.result.notes), puzzle.fragments.meshes
    for piece, sure in enumerate(step.result.confidence.tolist()):
        equal = (other for other in range(len(puzzle)) if other != piece and congruent(meshes[other], meshes[piece]))
        if sure < SURE and (same := next(equal, None)) is not None:
            told = f"of the same shape as {puzzle.names[same]}: a copy, or equal parts sawn apart?"
            notes[piece] = f"{notes[piece]}; {told}" if notes[piece] else told
    return Step.last(replace(step.result, notes=tuple(notes)))


def with_those_aside(step: Step, pieces: FragmentPieces, kept: Int[Tensor, "k"], aside: Mapping[int, str]) -> Step:
    """A step of the fragments that were kept as one of all: those set aside lie beside in a row, with their reasons."""
    if not aside:
        return step
    poses, edge = Poses.identity(len(pieces), 3), float(step.poses.apply(pieces.points[kept])[..., 0].max())
    poses.rotation[kept], poses.translation[kept] = step.poses.rotation, step.poses.translation
    for piece in aside:
        low, high = pieces.points[piece].amin(0), pieces.points[piece].amax(0)
        poses.translation[piece] = -(low + high) / 2
        poses.translation[piece, 0] = edge + 0.1 - low[0]
        edge += 0.1 + float(high[0] - low[0])
    if step.result is None:
        return step.with_poses(poses)
    return Step.last(step.result.among(poses, kept).with_notes(aside))


def look_again(state: AssemblyState) -> None:
    """Search with other draws for places of what was joined in doubt; other places that are found speak against it.

    Of very many pieces only those that would be told as sure.
    """
    told = state.confidence if oversampling(len(state.fragments)) > 1 else [1.0] * len(state.fragments)
    for number, (first, second, match) in enumerate(state.joins):
        if state.search_late:
            return
        loose = state.loose(first, second)
        doubted = match.level != INSERTED and _DOUBTED[0] <= state.posterior(number) < _DOUBTED[1]
        if not doubted or max(told[piece] for piece in loose.members) < SURE:
            continue
        whole = next(cluster for cluster in state.clusters if loose.members[0] in cluster.members)
        rest = Cluster(state.fragments, {one: pose for one, pose in whole.poses.items() if one not in loose.members})
        seed = mixed_seed(state.seed, len(ROUNDS), rest.members, loose.members)
        found = match_clusters(loose, rest, level_for(loose, rest), QUICK, state.models, seed)
        state.rivals[number] = state.rivals[number] + [(loose, rest, other) for other in found]
        loose.release()
        rest.release()


def told_confidence(state: AssemblyState) -> list[float]:
    """How sure each piece's place is; that of the anchor, unless it is locked, as the surest piece that holds to it."""
    sure = state.confidence
    held = next(cluster for cluster in state.clusters if state.anchor in cluster.members)
    if not state.locked and len(sure) > 1:
        sure[state.anchor] = max((sure[piece] for piece in held.members if piece != state.anchor), default=0.0)
    return sure


def choose_anchor(state: AssemblyState) -> None:
    """Let an anchor that nothing was joined to make way for the largest of a cluster of some size that holds together.

    The largest fragment may be of another object.
    """
    own = next(cluster for cluster in state.clusters if state.anchor in cluster.members)
    if len(own.members) > 1 or state.locked:
        return
    before = state.anchor
    for cluster in state.ranked[1:]:
        if len(cluster.members) > 1 and cluster.area > _OUTWEIGHS * own.area:
            state.anchor = state.largest(cluster.members)
            sure = state.confidence
            if max(sure[piece] for piece in cluster.members if piece != state.anchor) >= LIKELY:
                return
    state.anchor = before


def found_objects(state: AssemblyState, several: bool) -> Int[Tensor, "n"]:
    """Which object each fragment belongs to, 0 that of the anchor, then the largest; −1 for what was left out.

    Where there is one object, what does not hold to the anchor is left out; where there are several, single pieces.
    """
    objects = torch.full((len(state.fragments),), -1)
    for cluster in state.ranked:
        if state.anchor in cluster.members or (several and len(cluster.members) > 1):
            objects[list(cluster.members)] = objects.max() + 1
    return objects


def best_guess(state: AssemblyState, laid: Poses) -> Poses:
    """What is laid aside, a cluster each, where it fits best, or with its middle where most of the break is open."""
    rows = pose_rows(laid)
    main = next(cluster for cluster in state.clusters if state.anchor in cluster.members)
    stands = compose(rows[state.anchor], inverse(main.poses[state.anchor]))
    for cluster in state.clusters:
        if cluster is main:
            continue
        known = [*state.matches.get((cluster, main), [])]
        known += [match.reversed() for match in state.matches.get((main, cluster), [])]
        place = max(known, key=lambda match: match.probability).pose if known else _in_the_gap(cluster, main)
        for piece in cluster.members:
            rows[piece] = compose(compose(stands, place), cluster.poses[piece])
    return poses_of(rows)


def moved_by(motion: Poses, poses: Poses) -> Poses:
    """All poses after one motion."""
    return motion[[0] * len(poses)] @ poses


def _in_the_gap(cluster: Cluster, main: Cluster) -> Pose:
    side = main.side(0)
    target = main.body.points if side is None else side.points
    return np.concatenate([IDENTITY[:9], target.mean(0) - cluster.body.points.mean(0)])


def lay_out(state: AssemblyState, pieces: FragmentPieces) -> Poses:
    """The cluster of the anchor in the middle, the others beside it in a row, the largest first.

    Each is turned as its largest piece, or the anchor, was given.
    """
    rows, anchor, edge = np.zeros((len(pieces), 12)), state.anchor, 0.0
    for number, cluster in enumerate(state.ranked):
        held = anchor if anchor in cluster.members else state.largest(cluster.members)
        back = inverse(cluster.poses[held])
        own = {piece: compose(back, cluster.poses[piece]) for piece in cluster.members}
        points = ((pieces.points[piece].numpy(), pose) for piece, pose in own.items())
        corners = np.concatenate([cloud @ pose[:9].reshape(3, 3).T + pose[9:] for cloud, pose in points])
        low, high = corners.min(0), corners.max(0)
        shift = -(low + high) / 2
        if number:
            shift[0] = edge + 0.1 - low[0]
            edge += 0.1 + float(high[0] - low[0])
        else:
            edge = float(high[0] - low[0]) / 2
        for piece, pose in own.items():
            rows[piece] = pose
            rows[piece, 9:] += shift
    return poses_of(rows)
