"""`mend`: broken objects are put together by their fracture surfaces, the most probable match first.

`mend` reads top to bottom: search and join round by round, each round harder than the last; insert small pieces into
gaps; follow rival assemblies where likely matches contradict each other; search doubted joins again; prune what no
likely join supports; and say how probable each place is, and why.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from diffassemble.core import FragmentPieces, Placements, Poses, Puzzle, Step
from diffassemble.core.seeds import mixed_seed
from diffassemble.core.solver import in_content_order
from diffassemble.core.thresholds import LIKELY, SURE
from diffassemble.fragments.assembly_state import (
    STATE,
    AssemblyState,
    KnownMatch,
    StateConfig,
    alike,
    prune_unsupported,
)
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, Pose, compose, inverse, pose_rows, poses_of
from diffassemble.fragments.explain import EXPLAIN, ExplainConfig, explained
from diffassemble.fragments.gap_insertion import (
    GAP_INSERTION,
    INSERTED,
    GapInsertionConfig,
    find_gaps,
    insert_into_gaps,
)
from diffassemble.fragments.matches import (
    MATCHING,
    MatchingConfig,
    PairSearch,
    PairSearchCache,
    can_refine,
    level_for,
    match_clusters,
    reverify,
    run_parallel,
)
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import GLANCE, QUICK, Effort
from diffassemble.fragments.screening import SCREENING, ScreeningConfig, congruent, set_aside
from diffassemble.fragments.surface import is_cloud, oversampling
from diffassemble.fragments.verification import Match


@dataclass(frozen=True)
class Round:
    """How hard pairs of clusters are searched in a round."""

    effort: Effort = QUICK
    least: float = LIKELY
    """least probability of a match that is used"""
    partners: int = 1
    """the others are compared with so many of the largest clusters"""
    smallest: int = 0
    """points that a break must have at level 0 to be compared"""
    finer: int = 0
    """levels finer than needed"""
    redrawn: bool = False
    """whether other points of the surfaces are sampled"""
    doubtful: bool = False
    """whether all that may be of the break counts as such, at level 0"""
    insert: bool = False
    """whether small pieces are inserted into the gaps of the largest cluster before the search"""


ROUNDS = (
    Round(GLANCE, SURE, partners=1000, smallest=60),
    Round(QUICK, SURE, partners=8, smallest=60),
    Round(QUICK, LIKELY, partners=8, smallest=60),
    Round(QUICK, LIKELY, partners=3, smallest=8),
    Round(QUICK, LIKELY, partners=3, smallest=8, finer=1),
    Round(QUICK, LIKELY, partners=1, smallest=8, redrawn=True, insert=True),
    Round(QUICK, LIKELY, partners=1, doubtful=True),
    Round(QUICK, 0.15, partners=1, smallest=8, finer=1),
)


@dataclass(frozen=True)
class RivalsConfig:
    """When other assemblies are followed beside the most probable one, and how they are compared."""

    width: int = 3
    """assemblies that are followed at most; 1 switches rivals off"""
    odds: float = 0.1
    """a match rivals another one if its odds are at least this share of the other's"""
    most: int = 4
    """of such matches only so many are looked at"""
    left: float = 0.5
    """it is contradicted if, after the other was joined, its probability falls below this share of itself"""
    entered: float = 0.1
    """assemblies in which a fragment has more than this share of its surface within another lose"""
    probes: int = 160
    surest: float = 0.95
    """no match counts as more probable than this"""


@dataclass(frozen=True)
class ReexamineConfig:
    """Which joins are searched once more, by other random draws."""

    doubted: tuple[float, float] = (0.2, 0.97)
    """joins of a probability in this range"""
    effort: Effort = QUICK


@dataclass(frozen=True)
class MendConfig:
    """All numbers of `mend`. Each heuristic can be switched off alone (docs/decisions/011-mend-heuristics.md).

    A round is switched off by `replace(round, partners=0)`.
    """

    rounds: tuple[Round, ...] = ROUNDS
    state: StateConfig = STATE
    insertion: GapInsertionConfig | None = GAP_INSERTION
    rivals: RivalsConfig = RivalsConfig()
    reexamine: ReexamineConfig | None = ReexamineConfig()
    prune: bool = True
    """whether what no likely join supports is taken off again"""
    replace_anchor: float = 0.5
    """an anchor that nothing was joined to makes way for a cluster of more than this share of its surface; infinity
    switches this off"""
    least: float = 0.1
    """least probability with which pieces are joined where all belong to one object; else LIKELY"""
    at_once: int = 200
    """pairs that are searched before what was found is joined"""
    doubtful_ceilings: tuple[float, float] = (0.7, 0.89)
    """greatest probability of a match found on doubtful breaks: there, and verified again on the others"""
    estimated_ceiling: float = 0.89
    """greatest confidence where normals of clouds were estimated: wrong sides make wrong fits look right; 1 switches
    it off"""
    explain: ExplainConfig | None = EXPLAIN
    screening: ScreeningConfig | None = SCREENING
    """which fragments are set aside before the search: those of another unit of length, and copies"""


RIVALS, MEND = RivalsConfig(), MendConfig()


def mend(
    puzzle: Puzzle,
    pair_search: PairSearch,
    config: MendConfig = MEND,
    until: float = math.inf,
    several: bool = False,
    seed: int = 0,
) -> Iterator[Step]:
    """Put fragments together; yields the poses after each join, and the answer last.

    After `until` (of `time.monotonic`) nothing more is searched for. With `several` the fragments may be of more than
    one object: only likely matches are joined, and every cluster is an object.
    """
    pieces, locks = puzzle.fragments, puzzle.locks
    least = LIKELY if several else config.least
    # 1. Every fragment is a cluster of its own; those that are locked are one.
    locked = {} if locks is None else {i: row for i, row in enumerate(pose_rows(locks.poses)) if locks.held[i]}
    state = AssemblyState(pair_search, seed, until, locked, config.state)
    yield Step(lay_out(state, pieces), done=0.0)
    # 2. Clusters are searched and joined round by round; small pieces are inserted; all poses are polished.
    rivals: list[AssemblyState] = []
    # Very many pieces are joined one way only, since every assembly takes minutes.
    most = config.rivals.width - 1 if oversampling(len(pieces)) == 1 else 0
    for joins, _ in enumerate(grow(state, least, rivals, most, config), 1):
        yield Step(lay_out(state, pieces), done=0.99 * joins / len(pieces))
    # 3. Where likely matches contradicted each other, the assemblies that follow from each compete.
    follow_rivals(state, least, rivals, config)
    # 4. Doubted joins are searched again: other places that are found speak against them.
    reexamine(state, config)
    # 5. What no likely join supports is taken off; its place is still the best guess.
    guess = best_guess(state, lay_out(state, pieces))
    unsupported = prune_unsupported(state, LIKELY) if config.prune and not several else set[int]()
    # 6. An anchor that nothing holds to may be of another object.
    if not several:
        choose_anchor(state, config.replace_anchor)
    # 7. Objects, the confidence of each place, and a line on each that is not sure.
    objects = find_objects(state, several)
    sure = torch.tensor(piece_confidence(state)).where(objects >= 0, 0.0)
    if any(is_cloud(mesh) and mesh.normals is None for mesh in pieces.meshes):
        capped = sure.clamp(max=config.estimated_ceiling)
        sure = capped if locks is None else sure.where(locks.held, capped)
    notes = ("",) * len(pieces)
    if config.explain is not None:
        notes = explained(state, sure.tolist(), objects.tolist(), puzzle.names, unsupported, config.explain)
    # 8. The answer, laid out about the anchor.
    laid = lay_out(state, pieces)
    motion = laid[[state.anchor]] @ guess[[state.anchor]].inverse()
    moved = None if several else motion[[0] * len(pieces)] @ guess
    yield Step.last(Placements(laid, sure, objects, notes=notes, guess=moved))


# 2. Search and join


def grow(
    state: AssemblyState, least: float, rivals: list[AssemblyState], most: int, config: MendConfig = MEND
) -> Iterator[float]:
    """Join what fits with at least this probability, from the state's round on; yields the probability of each join.

    Up to `most` states are added to `rivals` (see `join`).
    """
    for number in range(state.round, len(config.rounds)):
        state.round = number
        goal = max(config.rounds[number].least, least)
        yield from join(state, goal, rivals, most, config)
        if config.rounds[number].insert and config.insertion is not None:
            yield from insert_small(state, max(LIKELY, least), config.insertion)
        while len(state.clusters) > 1 and not state.search_over and search_some(state, number, config):
            yield from join(state, goal, rivals, most, config)
        if oversampling(len(state.fragments)) > 1:
            state.free_views()
    # What was found in haste was not verified beside the rest: then only what is likely is used.
    yield from join_apart(state, max(LIKELY, least) if state.out_of_time else least, config.insertion)
    state.polish()


def join(
    state: AssemblyState, least: float, rivals: list[AssemblyState], most: int, config: MendConfig = MEND
) -> Iterator[float]:
    """Make all joins down to a probability; what a join contradicts starts a rival, while there are fewer than `most`.

    A rival is a state on which the contradicted match was joined instead.
    """
    while len(state.clusters) > 1:
        best = state.best_match()
        if best is None or best.match.probability < least:
            return
        close = [] if len(rivals) >= most or state.out_of_time else comparable(state, best, least, config.rivals)
        before = state.branch() if close else state
        state.join(*best)
        lost = [other for other in close if contradicted(state, best, other, config.rivals)]
        for other in lost[: most - len(rivals)]:
            rivals.append(before.branch())
            rivals[-1].join(*other)
        yield best.match.probability


def search_some(state: AssemblyState, number: int, config: MendConfig = MEND) -> bool:
    """Search pairs of clusters that were not yet searched in this round; whether there were any.

    The largest clusters come first; of very many pairs only some, so that what is found can be joined in between.
    """
    now, before = config.rounds[number], config.rounds[number - 1]
    neutral: dict[str, Any] = {"least": 0.0, "partners": 0, "smallest": 0, "insert": False}
    repeated = replace(now, **neutral) == replace(before, **neutral)
    ordered, matching = state.ordered, state.pair_search.config
    pairs = [(ordered[i], ordered[j]) for j in range(len(ordered)) for i in range(min(j, now.partners))]
    todo = [pair for pair in pairs if pair[1].points >= now.smallest and (*pair, number) not in state.searched]
    jobs = []
    for large, small in todo[: config.at_once]:
        one, two = seen_in(now, small), seen_in(now, large)
        again = repeated and (large, small, number - 1) in state.searched
        state.searched.add((large, small, number))
        # At a closer look there is too much that may be of the break.
        level = 0 if now.doubtful else level_for(one, two, matching) + now.finer
        again = again or (now.finer > 0 and not can_refine(one, two, level, matching))
        # Sides are made here, one after another, since what is drawn for them depends on the order.
        if not again and one.side(level) is not None and two.side(level) is not None:
            jobs.append((small, large, level))
        if state.search_over:
            break

    def look(job: tuple[Cluster, Cluster, int]) -> list[Match]:
        small, large, level = job
        if state.search_over:
            return []
        seed = mixed_seed(state.seed, number, large.members, small.members)
        if not (now.doubtful or now.redrawn) and state.is_single(small) and state.is_single(large):
            return state.pair_search.between(small.members[0], large.members[0], now.finer, now.effort)
        both = seen_in(now, small), seen_in(now, large)
        found = match_clusters(*both, level, now.effort, state.models, seed, config=matching)
        return reviewed(state, small, large, found, config.doubtful_ceilings) if now.doubtful else found

    for (small, large, _), matches in zip(jobs, run_parallel(look, jobs), strict=True):
        state.add_matches(small, large, matches)
    return bool(todo)


def reviewed(
    state: AssemblyState, small: Cluster, large: Cluster, found: list[Match], ceilings: tuple[float, float]
) -> list[Match]:
    """Matches found on doubtful breaks, and the same verified on the breaks as they are usually seen."""
    level = level_for(small, large, state.pair_search.config)
    finer = [replace(match, level=level) for match in found]
    closer = reverify(small, large, finer, state.models, state.pair_search.config)
    matches = [match.capped(ceilings[0]) for match in found] + [match.capped(ceilings[1]) for match in closer]
    return sorted(matches, key=lambda match: -match.probability)


def seen_in(now: Round, cluster: Cluster) -> Cluster:
    """A cluster as a round looks at it."""
    if now.redrawn:
        return cluster.redrawn
    return cluster.doubtful if now.doubtful else cluster


def insert_small(state: AssemblyState, least: float, config: GapInsertionConfig = GAP_INSERTION) -> Iterator[float]:
    """Insert small single pieces into the gaps of the first cluster; yields the probabilities of joins."""
    limit = _small(state, config)
    for _ in range(config.passes):
        before = len(state.clusters)
        if before < 2 or state.search_over:
            return
        state.polish()
        main, *others = state.ordered
        known = state.matches
        tried = {one for (one, two) in known if two is main and any(m.level == INSERTED for m in known[one, two])}
        small = [one for one in others if len(one.members) == 1 and one.area < limit and one not in tried]
        # Clouds of points show nothing finer than what was looked at already.
        if not small or len(main.members) < 2 or any(is_cloud(fragment.mesh) for fragment in state.fragments):
            return
        gaps = find_gaps(main, config.gap * state.fragments[0].spacing, config)
        for other in small:
            if not state.search_over:
                seed = mixed_seed(state.seed, other.members, main.members)
                found = insert_into_gaps(state.fragments[other.members[0]], main, gaps, seed, config)
                state.add_matches(other, main, found)
        yield from join_apart(state, least, config)
        if len(state.clusters) == before:
            return


def join_apart(
    state: AssemblyState, least: float, config: GapInsertionConfig | None = GAP_INSERTION
) -> Iterator[float]:
    """Join down to a probability, but insert no two small pieces into one gap."""

    def is_crowded(first: Cluster, second: Cluster, match: Match) -> bool:
        if config is None or match.level != INSERTED:
            return False
        return crowded(first, second, match, _small(state, config), config.crowded)

    for probability in join(state, least, [], 0):
        state.drop_matches(is_crowded)
        yield probability


def crowded(small: Cluster, whole: Cluster, match: Match, limit: float, apart: float = GAP_INSERTION.crowded) -> bool:
    """Whether a single piece would take the place of a member of less than this area: their centres are nearer than
    `apart` of both extents."""
    if len(small.members) > 1:
        return False
    middle, width = _extent(small, small.members[0], match.pose)
    others = [_extent(whole, piece, IDENTITY) for piece in whole.members if whole.fragments[piece].area < limit]
    return any(np.linalg.norm(middle - other) < apart * (width + wide) for other, wide in others)


def _small(state: AssemblyState, config: GapInsertionConfig) -> float:
    """The area below which a piece counts as small."""
    whole = sum(fragment.area for fragment in state.fragments)
    return config.small * whole / oversampling(len(state.fragments))


def _extent(cluster: Cluster, piece: int, pose: Pose) -> tuple[np.ndarray, float]:
    """The centre of a member of a cluster at a pose, and the diagonal of its box."""
    corners = cluster.fragments[piece].mesh.vertices.numpy()
    placed = compose(pose, cluster.poses[piece])
    middle = placed[:9].reshape(3, 3) @ ((corners.min(0) + corners.max(0)) / 2) + placed[9:]
    return middle, float(np.linalg.norm(np.ptp(corners, axis=0)))


# 3. Rival assemblies


def follow_rivals(state: AssemblyState, least: float, rivals: list[AssemblyState], config: MendConfig = MEND) -> None:
    """Grow all rivals to their end, unless all is sure already; the state becomes the assembly with most evidence."""
    if not rivals or (min(state.confidence) >= SURE and len(state.clusters) == 1):
        return
    ends = [state.branch()]
    for rival in rivals:
        if not state.out_of_time:
            for _ in grow(rival, least, [], 0, config):
                pass
            ends.append(rival)
    state.copy_from(max(ends, key=lambda end: (not entering(end, config.rivals), evidence(end, config.rivals))))


def comparable(state: AssemblyState, best: KnownMatch, least: float, config: RivalsConfig = RIVALS) -> list[KnownMatch]:
    """Other matches of one of two clusters that are about as probable as theirs, the most probable first."""
    odds = config.odds * _odds(best.match)
    found = [
        KnownMatch(first, second, match)
        for (first, second), matches in state.matches.items()
        if first in best[:2] or second in best[:2]
        for match in matches
        if match is not best.match and match.level != INSERTED and match.probability >= least and _odds(match) >= odds
    ]
    return sorted(found, key=lambda known: -known.match.probability)[: config.most]


def contradicted(state: AssemblyState, joined: KnownMatch, other: KnownMatch, config: RivalsConfig = RIVALS) -> bool:
    """Whether a match is no longer likely on a state on which another one was joined."""
    first, second, match = other
    if {first, second} == {*joined[:2]}:
        pose = match.pose if first is joined.first else inverse(match.pose)
        return not alike(pose, joined.match.pose, joined.first.fragments[joined.first.members[0]], state.config)
    if first in joined[:2]:
        first, second, match = second, first, match.reversed()
    member = second.members[0]
    whole = state.cluster_of(member)
    moved = compose(compose(whole.poses[member], inverse(second.poses[member])), match.pose)
    verified = reverify(first, whole, [replace(match, pose=moved)], state.models, state.pair_search.config)
    return not verified or verified[0].probability < config.left * match.probability


def evidence(state: AssemblyState, config: RivalsConfig = RIVALS) -> float:
    """Log odds of all joins, and of all other matches of two single fragments with which the assembly agrees.

    What is less likely than not counts nothing: a guess is no worse than an unplaced piece.
    """
    total = sum(_log_odds(join.match, config.surest) for join in state.joins)
    done = {frozenset(join.first.members + join.second.members) for join in state.joins}
    for (one, two), matches in state.pairs.items():
        cluster = state.cluster_of(one)
        if two in cluster.members and frozenset((one, two)) not in done:
            pose = compose(inverse(cluster.poses[two]), cluster.poses[one])
            shown = [match for match in matches if alike(match.pose, pose, state.fragments[one], state.config)]
            total += max((_log_odds(match, config.surest) for match in shown), default=0.0)
    return total


def entering(state: AssemblyState, config: RivalsConfig = RIVALS) -> bool:
    """Whether two fragments that were joined intersect."""
    bodies = [Cluster(state.fragments, {piece: IDENTITY}).body for piece in range(len(state.fragments))]
    for cluster in state.clusters:
        for pair in combinations(cluster.members, 2):
            for one, two in (pair, pair[::-1]):
                pose = compose(inverse(cluster.poses[two]), cluster.poses[one])
                points = bodies[one].points
                step = max(1, len(points) // config.probes)
                if bodies[two].holds(pose, points, step) > config.entered * len(points[::step]):
                    return True
    return False


def _odds(match: Match) -> float:
    return match.probability / max(1e-9, 1 - match.probability)


def _log_odds(match: Match, surest: float) -> float:
    """Not below 0, and of no probability above the surest."""
    chance = min(match.probability, surest)
    return max(0.0, float(np.log(max(1e-9, chance) / (1 - chance))))


# 4. Doubted joins


def reexamine(state: AssemblyState, config: MendConfig = MEND) -> None:
    """Search with other draws for places of what was joined in doubt; other places that are found speak against it.

    Of very many pieces only those that would be sure.
    """
    if config.reexamine is None:
        return
    matching, low, high = state.pair_search.config, *config.reexamine.doubted
    sure = state.confidence if oversampling(len(state.fragments)) > 1 else [1.0] * len(state.fragments)
    for number, (first, second, match) in enumerate(state.joins):
        if state.search_over:
            return
        moving = state.moving(first, second)
        doubted = match.level != INSERTED and low <= state.posterior(number) < high
        if not doubted or max(sure[piece] for piece in moving.members) < SURE:
            continue
        whole = state.cluster_of(moving.members[0])
        rest = Cluster(state.fragments, {one: pose for one, pose in whole.poses.items() if one not in moving.members})
        seed, level = mixed_seed(state.seed, len(config.rounds), rest.members, moving.members), level_for(moving, rest)
        found = match_clusters(moving, rest, level, config.reexamine.effort, state.models, seed, config=matching)
        state.rivals[number] = state.rivals[number] + [KnownMatch(moving, rest, other) for other in found]
        moving.release()
        rest.release()


# 5. to 7. What is placed, and how probably


def best_guess(state: AssemblyState, laid: Poses) -> Poses:
    """Every cluster that is laid aside where it fits best, or with its centre where most of the break is open."""
    rows = pose_rows(laid)
    main = state.cluster_of(state.anchor)
    origin = compose(rows[state.anchor], inverse(main.poses[state.anchor]))
    for cluster in state.clusters:
        if cluster is main:
            continue
        known = [*state.matches.get((cluster, main), [])]
        known += [match.reversed() for match in state.matches.get((main, cluster), [])]
        place = max(known, key=lambda match: match.probability).pose if known else _in_the_gap(cluster, main)
        for piece in cluster.members:
            rows[piece] = compose(compose(origin, place), cluster.poses[piece])
    return poses_of(rows)


def _in_the_gap(cluster: Cluster, main: Cluster) -> Pose:
    side = main.side(0)
    target = main.body.points if side is None else side.points
    return np.concatenate([IDENTITY[:9], target.mean(0) - cluster.body.points.mean(0)])


def choose_anchor(state: AssemblyState, outweighs: float = 0.5) -> None:
    """Let an anchor that nothing was joined to make way for the largest of a likely cluster of some size.

    The largest fragment may be of another object.
    """
    own = state.cluster_of(state.anchor)
    if len(own.members) > 1 or state.locked:
        return
    before = state.anchor
    for cluster in state.ranked[1:]:
        if len(cluster.members) > 1 and cluster.area > outweighs * own.area:
            state.anchor = state.largest(cluster.members)
            sure = state.confidence
            if max(sure[piece] for piece in cluster.members if piece != state.anchor) >= LIKELY:
                return
    state.anchor = before


def find_objects(state: AssemblyState, several: bool) -> Int[Tensor, "n"]:
    """Which object each fragment belongs to, 0 that of the anchor, then the largest; −1 for what is unplaced.

    Of one object, what does not hold to the anchor is unplaced; of several, single pieces.
    """
    objects = torch.full((len(state.fragments),), -1)
    for cluster in state.ranked:
        if state.anchor in cluster.members or (several and len(cluster.members) > 1):
            objects[list(cluster.members)] = objects.max() + 1
    return objects


def piece_confidence(state: AssemblyState) -> list[float]:
    """Confidence of each place; that of the anchor, unless it is locked, is that of the surest piece joined to it."""
    sure = state.confidence
    held = state.cluster_of(state.anchor)
    if not state.locked and len(sure) > 1:
        sure[state.anchor] = max((sure[piece] for piece in held.members if piece != state.anchor), default=0.0)
    return sure


# The solver


@dataclass(frozen=True)
class MendSolver:
    """Joins fragments along their breaks; what fits nowhere is laid beside, with confidence 0.

    The largest fragment placed stays turned as it was given: geometry cannot know how the object stood. After `budget`
    seconds nothing more is searched for, and what is known by then is used. With `several` the fragments may be of more
    than one object. Points and poses to try are drawn by `draws`, never by a generator: the answer is a function of the
    fragments. Solvers that are given the same `search` share its results.
    """

    models: FractureModels
    budget: float = math.inf
    several: bool = False
    draws: int = 0
    search: PairSearchCache | None = None
    name: str = "mend"
    config: MendConfig = field(default=MEND, repr=False)
    matching: MatchingConfig = field(default=MATCHING, repr=False)

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the fragments apart, then after every join, and the answer with confidences last.

        The answer does not depend on the order in which the fragments are listed.
        """
        until = time.monotonic() + self.budget
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, until))

    def _ordered_steps(self, puzzle: Puzzle, until: float) -> Iterator[Step]:
        aside = {} if self.config.screening is None else set_aside(puzzle, self.config.screening)
        kept = torch.tensor([piece for piece in range(len(puzzle)) if piece not in aside])
        rest = puzzle.reordered(kept)
        search = (self.search or PairSearchCache(self.models, self.draws, self.matching))(rest.fragments)
        for step in mend(rest, search, self.config, until, self.several, self.draws):
            yield with_those_aside(with_equals_noted(step, rest), puzzle.fragments, kept, aside)


def with_equals_noted(step: Step, puzzle: Puzzle) -> Step:
    """The last step, with a note on each fragment in doubt that has the shape of another one."""
    if step.result is None:
        return step
    notes, meshes = list(step.result.notes or ("",) * len(puzzle)), puzzle.fragments.meshes
    for piece, sure in enumerate(step.result.confidence.tolist()):
        equal = (other for other in range(len(puzzle)) if other != piece and congruent(meshes[other], meshes[piece]))
        if sure < SURE and (same := next(equal, None)) is not None:
            note = f"of the same shape as {puzzle.names[same]}: a copy, or equal parts sawn apart?"
            notes[piece] = f"{notes[piece]}; {note}" if notes[piece] else note
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
