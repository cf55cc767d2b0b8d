"""`mend`: broken objects are put together by their fracture surfaces, the most probable match first.

`mend` reads top to bottom: search and join round by round, each round harder than the last; prune what no likely join
supports; and compute how probable each place is, and why.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from diffassemble.assembly.growth import best_first
from diffassemble.assembly.layout import in_rows
from diffassemble.core import FragmentPieces, Placements, Poses, Puzzle, Step
from diffassemble.core.seeds import mixed_seed
from diffassemble.core.solver import in_content_order
from diffassemble.core.thresholds import LIKELY, SURE
from diffassemble.fragments.assembly_state import STATE, AssemblyState, FragmentConstraint, StateConfig, logit
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, compose, inverse, pose_rows, poses_of
from diffassemble.fragments.explain import EXPLAIN, ExplainConfig, explained
from diffassemble.fragments.gap_insertion import GAP_INSERTION, GapInsertionConfig, find_gaps, insert_into_gaps
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
from diffassemble.fragments.surface import is_cloud
from diffassemble.fragments.verification import INSERTED, Match


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
    insert: bool = False
    """whether small pieces are inserted into the gaps of the anchor's cluster before the search"""
    doubtful: bool = False
    """whether all that may be of the break counts as such, at level 0"""


@dataclass(frozen=True)
class MendConfig:
    """All numbers of `mend`; what each rule is worth is in docs/decisions/011-mend-heuristics.md."""

    rounds: tuple[Round, ...] = (
        Round(GLANCE, SURE, partners=1000, smallest=60),
        Round(QUICK, LIKELY, partners=8, smallest=8),
        Round(QUICK, LIKELY, partners=3, smallest=8, finer=1, insert=True),
        Round(QUICK, LIKELY, partners=1, doubtful=True),
    )
    state: StateConfig = STATE
    insertion: GapInsertionConfig = GAP_INSERTION
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
    explain: ExplainConfig = EXPLAIN
    screening: ScreeningConfig | None = SCREENING
    """which fragments are set aside before the search: those of another unit of length, and copies"""


MEND = MendConfig()


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
    # 1. Every fragment is a cluster of its own; those that are locked are one.
    locked = {} if locks is None else {i: row for i, row in enumerate(pose_rows(locks.poses)) if locks.held[i]}
    state = AssemblyState(pair_search, seed, until, locked, config.state)
    yield Step(lay_out(state, pieces), done=0.0)
    # 2. Clusters are searched and joined round by round; small pieces are inserted into gaps.
    for joins, _ in enumerate(grow(state, LIKELY if several else config.least, config), 1):
        yield Step(lay_out(state, pieces), done=0.99 * joins / len(pieces))
    # 3. What no likely join supports is taken off; its place is still the best guess.
    guess = best_guess(state, lay_out(state, pieces))
    unsupported = state.prune_unsupported(LIKELY) if config.prune and not several else set[int]()
    # 4. An anchor that nothing is joined to may be of another object.
    if not several:
        choose_anchor(state, config.replace_anchor)
    # 5. Objects, the confidence of each place, and a line on each that is not sure.
    objects = torch.full((len(pieces),), -1)
    for (
        cluster
    ) in state.ranked:  # of one object, what is not joined to the anchor is unplaced; of several, single pieces
        if state.anchor in cluster.members or (several and len(cluster.members) > 1):
            objects[list(cluster.members)] = objects.max() + 1
    sure = torch.tensor(piece_confidence(state)).where(objects >= 0, 0.0)
    if any(is_cloud(mesh) and mesh.normals is None for mesh in pieces.meshes):
        capped = sure.clamp(max=config.estimated_ceiling)
        sure = capped if locks is None else sure.where(locks.held, capped)
    notes = explained(state, sure.tolist(), objects.tolist(), puzzle.names, unsupported, config.explain)
    # 6. The answer, laid out about the anchor.
    laid = lay_out(state, pieces)
    motion = laid[[state.anchor]] @ guess[[state.anchor]].inverse()
    moved = None if several else motion[[0] * len(pieces)] @ guess
    yield Step.last(Placements(laid, sure, objects, notes=notes, guess=moved))


# 2. Search and join


def grow(state: AssemblyState, least: float, config: MendConfig = MEND) -> Iterator[float]:
    """Search round by round, and join what fits with at least this probability; yields that of each join."""
    constraint = FragmentConstraint()
    for number, now in enumerate(config.rounds):
        searched, passes = True, config.insertion.passes if now.insert else 0
        while searched:
            for made in best_first(constraint, state, logit(max(now.least, least))):
                yield made.join.match.probability
            searched = len(state.clusters) > 1 and not state.search_over
            if searched and passes > 0 and insert_small(state, config.insertion):
                passes -= 1
            elif searched:
                passes, searched = 0, search_some(state, number, config)
    # What was joined in haste was not verified beside the rest: then only what is likely is used.
    for made in best_first(constraint, state, logit(max(LIKELY, least) if state.out_of_time else least)):
        yield made.join.match.probability


def search_some(state: AssemblyState, number: int, config: MendConfig = MEND) -> bool:
    """Search pairs of clusters that were not yet searched in this round; whether there were any.

    That of the anchor and the largest come first; of very many pairs only some, so that what is found can be joined
    in between.
    """
    now, ordered, matching = config.rounds[number], state.ranked, state.pair_search.config
    pairs = [(ordered[i], ordered[j]) for j in range(len(ordered)) for i in range(min(j, now.partners))]
    todo = [pair for pair in pairs if pair[1].points >= now.smallest and (*pair, number) not in state.searched]
    jobs = []
    for large, small in todo[: config.at_once]:
        state.searched.add((large, small, number))
        # Sides are made here, one after another, since what is drawn for them depends on the order.
        level = level_for(small, large, matching) + now.finer
        shown = now.finer == 0 or can_refine(small, large, level, matching)
        sides = [one.side(level) for one in (small, large)] if shown else [None]
        if now.doubtful:
            sides = [one.doubtful.side(0) for one in (small, large)]
        if all(side is not None for side in sides):
            jobs.append((small, large, level))
        if state.search_over:
            break

    def search(job: tuple[Cluster, Cluster, int]) -> list[Match]:
        small, large, level = job
        if state.search_over:
            return []
        seed = mixed_seed(state.seed, number, large.members, small.members)
        if now.doubtful:
            both = small.doubtful, large.doubtful
            found = match_clusters(*both, 0, now.effort, state.models, seed, config=matching)
            return reviewed(state, small, large, level, found, config.doubtful_ceilings)
        if state.is_single(small) and state.is_single(large):
            return state.pair_search.between(small.members[0], large.members[0], now.finer, now.effort)
        return match_clusters(small, large, level, now.effort, state.models, seed, config=matching)

    for (small, large, _), matches in zip(jobs, run_parallel(search, jobs), strict=True):
        state.add_matches(small, large, matches)
    return bool(todo)


def reviewed(
    state: AssemblyState,
    small: Cluster,
    large: Cluster,
    level: int,
    found: list[Match],
    ceilings: tuple[float, float],
) -> list[Match]:
    """Matches found on doubtful breaks, and the same verified on the probable breaks, each with its ceiling."""
    again = [replace(match, level=level) for match in found]
    closer = reverify(small, large, again, state.models, state.pair_search.config)
    matches = [match.capped(ceilings[0]) for match in found] + [match.capped(ceilings[1]) for match in closer]
    return sorted(matches, key=lambda match: -match.probability)


def insert_small(state: AssemblyState, config: GapInsertionConfig = GAP_INSERTION) -> bool:
    """Search the gaps of the first cluster for places of small single pieces; whether there were any to be tried.

    Those that have such places, or were tried in the same cluster, are not tried again. Clouds of points show nothing
    finer than what was searched already.
    """
    main, *others = state.ranked
    if len(main.members) < 2 or any(is_cloud(fragment.mesh) for fragment in state.fragments):
        return False
    small = [one for one in others if state.is_single(one) and one.area < state.small]
    small = [one for one in small if (main, one, INSERTED) not in state.searched]
    small = [one for one in small if all(join.match.level != INSERTED for join in state.between(one, main))]
    if small:
        gaps = find_gaps(main, config)
    for one in small:
        if not state.search_over:
            seed = mixed_seed(state.seed, one.members, main.members)
            state.searched.add((main, one, INSERTED))
            state.add_matches(one, main, insert_into_gaps(state.fragments[one.members[0]], main, gaps, seed, config))
    return bool(small)


# 3. to 6. What is placed, and how probably


def best_guess(state: AssemblyState, laid: Poses) -> Poses:
    """Every unplaced cluster where it fits best, or with its centre where most of the break is open."""
    rows, main = pose_rows(laid), state.cluster_of(state.anchor)
    origin = compose(rows[state.anchor], inverse(main.poses[state.anchor]))
    for cluster in state.clusters:
        if cluster is main:
            continue
        known = [join.at(cluster) for join in state.between(cluster, main)]
        side = main.side(0)
        opened = (main.body if side is None else side).points.mean(0)
        place = np.concatenate([IDENTITY[:9], opened - cluster.body.points.mean(0)])
        if known:
            place = max(known, key=lambda match: match.probability).pose
        for piece in cluster.members:
            rows[piece] = compose(compose(origin, place), cluster.poses[piece])
    return poses_of(rows)


def choose_anchor(state: AssemblyState, outweighs: float = 0.5) -> None:
    """Let an anchor that nothing was joined to make way for the largest of a likely cluster of some size.

    The largest fragment may be of another object.
    """
    own, before = state.cluster_of(state.anchor), state.anchor
    if len(own.members) > 1 or state.locked:
        return
    for cluster in state.ranked[1:]:
        if len(cluster.members) > 1 and cluster.area > outweighs * own.area:
            state.anchor = state.largest(cluster.members)
            sure = state.confidence
            if max(sure[piece] for piece in cluster.members if piece != state.anchor) >= LIKELY:
                return
    state.anchor = before


def piece_confidence(state: AssemblyState) -> list[float]:
    """Confidence of each place; that of the anchor, unless it is locked, is that of the surest piece joined to it."""
    sure, held = state.confidence, state.cluster_of(state.anchor)
    if not state.locked and len(sure) > 1:
        sure[state.anchor] = max((sure[piece] for piece in held.members if piece != state.anchor), default=0.0)
    return sure


def lay_out(state: AssemblyState, pieces: FragmentPieces) -> Poses:
    """The cluster of the anchor in the middle, the others beside it in a row, the largest first.

    Each is turned as its largest piece, or the anchor, was given.
    """
    rows, own, lows, highs = np.zeros((len(pieces), 12)), [], [], []
    for cluster in state.ranked:
        held = state.anchor if state.anchor in cluster.members else state.largest(cluster.members)
        back = inverse(cluster.poses[held])
        own.append({piece: compose(back, cluster.poses[piece]) for piece in cluster.members})
        points = ((pieces.points[piece].numpy(), pose) for piece, pose in own[-1].items())
        corners = np.concatenate([cloud @ pose[:9].reshape(3, 3).T + pose[9:] for cloud, pose in points])
        lows.append(corners.min(0))
        highs.append(corners.max(0))
    low, high = np.stack(lows), np.stack(highs)
    shifts = in_rows(low, high, start=(float(low[0, 0] - high[0, 0]) / 2, 0.0), gap=0.1)
    shifts[:, 1:] = -(low + high)[:, 1:] / 2
    for poses, shift in zip(own, shifts, strict=True):
        for piece, pose in poses.items():
            rows[piece] = pose
            rows[piece, 9:] += shift
    return poses_of(rows)


# The solver


@dataclass(frozen=True)
class MendSolver:
    """Joins fragments along their breaks; what fits nowhere is laid beside, with confidence 0.

    The largest fragment placed stays turned as it was given: geometry does not determine the object's frame. After
    `budget` seconds nothing more is searched for, and what is known by then is used. With `several` the fragments may
    be of more than one object. Points and poses to try are drawn by `draws`, never by a generator: the answer is a
    function of the fragments. Solvers that are given the same `search` share its results.
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
    """A step of the fragments that were kept as one of all: those set aside are in a row beside, with their reasons."""
    if not aside:
        return step
    poses, edge = Poses.identity(len(pieces), 3), float(step.poses.apply(pieces.points[kept])[..., 0].max())
    poses.rotation[kept], poses.translation[kept] = step.poses.rotation, step.poses.translation
    others = list(aside)
    low, high = pieces.points[others].amin(1).double().numpy(), pieces.points[others].amax(1).double().numpy()
    shifts = in_rows(low, high, start=(edge + 0.1, 0.0), gap=0.1)
    shifts[:, 1:] = -(low + high)[:, 1:] / 2
    poses.translation[others] = torch.from_numpy(shifts).float()
    if step.result is None:
        return step.with_poses(poses)
    return Step.last(step.result.among(poses, kept).with_notes(aside))
