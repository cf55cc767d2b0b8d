"""The surest match is joined first; where matches contradict each other, several assemblies are followed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch
from manifold3d import Manifold

from diffassemble.fragments.assembly_state import AssemblyState, alike, support
from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.contact import IDENTITY, Pose, compose, inverse, pose_rows, poses_of, transformed
from diffassemble.fragments.gap_insertion import INSERTED
from diffassemble.fragments.matches import PairSearch, prepare
from diffassemble.fragments.mend import best_guess, entering, evidence, follow_rivals, grow, join
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.verification import Match

Known = tuple[list[Fragment], list[Pose], FractureModels]


@pytest.fixture(scope="module")
def known(models: FractureModels) -> Known:
    """Three fragments of a block, and where they belong."""
    generator = torch.Generator().manual_seed(2)
    block = mesh_of(Manifold.cube((1.0, 0.7, 0.4), True), 1.0, torch.zeros(3))
    puzzle = scatter(fracture(block, 3, generator), generator)
    assert puzzle.truth is not None
    return prepare(puzzle.fragments, models, 0), list(pose_rows(puzzle.truth)), models


def beside(poses: Mapping[int, Pose] | Sequence[Pose], first: int, second: int) -> Pose:
    """The pose of one piece seen from another."""
    return compose(inverse(poses[second]), poses[first])


def learn(state: AssemblyState, first: int, second: int, pose: Pose, chance: float, level: int = INSERTED) -> None:
    """Tell a state how two of its single pieces may belong to each other."""
    one, two = (next(c for c in state.clusters if c.members == (piece,)) for piece in (first, second))
    state.add_matches(one, two, [Match(pose, chance, level, 3, np.zeros(3, np.float32))])


def test_joins_in_order_of_probability(known: Known) -> None:
    fragments, truth, models = known
    state = AssemblyState(PairSearch(fragments, models), 0, -math.inf)
    learn(state, 0, 1, beside(truth, 0, 1), 0.6)
    learn(state, 1, 2, beside(truth, 1, 2), 0.8)
    assert list(join(state, 0.7, [], 0)) == [0.8]
    assert list(join(state, 0.5, [], 0)) == [0.6]
    assert [cluster.members for cluster in state.clusters] == [(0, 1, 2)]
    assert beside(state.clusters[0].poses, 0, 2) == pytest.approx(beside(truth, 0, 2), abs=1e-5)
    assert state.confidence[state.anchor] == 1
    assert sorted(state.confidence)[0] in (pytest.approx(0.48), pytest.approx(0.6))


def test_what_is_locked_keeps_its_poses(known: Known) -> None:
    fragments, truth, models = known
    state = AssemblyState(PairSearch(fragments, models), 0, locked={1: truth[1], 2: truth[2]})
    assert sorted(cluster.members for cluster in state.clusters) == [(0,), (1, 2)]
    assert state.anchor in (1, 2)
    assert state.ordered[0].members == (1, 2)
    pose = truth[0]
    locked, loose = state.ordered
    state.add_matches(locked, loose, [Match(inverse(pose), 0.9, INSERTED, 1, np.zeros(3, np.float32))])
    assert list(join(state, 0.5, [], 0)) == [0.9]
    state.polish()
    assert np.array_equal(state.clusters[0].poses[1], truth[1])
    assert np.array_equal(state.clusters[0].poses[2], truth[2])
    assert state.clusters[0].poses[0] == pytest.approx(pose, abs=0.02)


def test_polishing_keeps_what_is_known(known: Known) -> None:
    fragments, truth, models = known
    state = AssemblyState(PairSearch(fragments, models), 0)
    learn(state, 0, 1, beside(truth, 0, 1), 0.9)
    learn(state, 1, 2, beside(truth, 1, 2), 0.4)
    assert len(list(join(state, 0.5, [], 0))) == 1
    state.polish()
    assert all(cluster in state.clusters for pair in state.matches for cluster in pair)
    assert [match.probability for matches in state.matches.values() for match in matches] == [0.4]
    state.drop_matches(lambda first, second, match: match.probability < 0.5)
    assert list(join(state, 0.0, [], 0)) == []


def state_of(known: Known, *, misled: bool) -> AssemblyState:
    """A state that searches for nothing and knows all true matches; misled, it is surer of a wrong one."""
    fragments, truth, models = known
    state = AssemblyState(PairSearch(fragments, models), 0)
    state.search_until = -math.inf
    for first, second, chance in ((0, 1, 0.75), (1, 2, 0.79), (0, 2, 0.78)):
        learn(state, first, second, beside(truth, first, second), chance, level=0)
    if misled:
        learn(state, 0, 1, beside(truth, 0, 1) + np.array([0.0] * 9 + [0.4, 0.5, 0.3]), 0.8, level=0)
    return state


def right(state: AssemblyState, truth: list[Pose]) -> bool:
    """Whether all stand as they belong."""
    poses = state.clusters[0].poses
    return len(poses) == len(truth) and all(
        alike(beside(poses, piece, 0), beside(truth, piece, 0), state.fragments[piece]) for piece in poses
    )


def test_the_beam_mends_what_the_surest_match_spoils(known: Known) -> None:
    greedy, several = state_of(known, misled=True), state_of(known, misled=True)
    list(grow(greedy, 0.1, [], 0))
    assert not right(greedy, known[1])
    rivals = list[AssemblyState]()
    joins = list(grow(several, 0.1, rivals, 2))
    follow_rivals(several, 0.1, rivals)
    assert joins[0] == 0.8
    assert right(several, known[1])
    assert evidence(several) > evidence(greedy)


def test_a_beam_of_one_is_greedy(known: Known) -> None:
    greedy, one = state_of(known, misled=True), state_of(known, misled=True)
    assert list(grow(greedy, 0.1, [], 0)) == list(grow(one, 0.1, [], 0))
    follow_rivals(one, 0.1, [])
    assert np.allclose([*greedy.clusters[0].poses.values()], [*one.clusters[0].poses.values()])


def test_without_contradiction_there_is_no_rival(known: Known) -> None:
    state, rivals = state_of(known, misled=False), list[AssemblyState]()
    assert len(list(join(state, 0.3, rivals, 2))) == 2
    assert rivals == []
    assert not entering(state)


def test_states_do_not_touch_each_other(known: Known) -> None:
    state = state_of(known, misled=False)
    other = state.branch()
    list(join(other, 0.3, [], 0))
    assert len(state.clusters) == 3
    assert state.joins == []
    assert state.confidence == [1.0] * 3
    state.copy_from(other)
    assert state.clusters == other.clusters


def test_what_stands_in_each_other_is_seen(known: Known) -> None:
    fragments, truth, models = known
    state = AssemblyState(PairSearch(fragments, models), 0)
    state.clusters = [Cluster(fragments, {0: truth[0], 1: truth[0], 2: truth[2]})]
    assert entering(state)


def confidence_with(known: Known, *told: tuple[int, int, float, bool]) -> float:
    """How sure the least sure piece is, if matches of these pairs and probabilities are known, true ones or not."""
    fragments, truth, models = known
    state = AssemblyState(PairSearch(fragments, models), 0, -math.inf)
    for first, second, chance, true in told:
        away = np.array([0.0] * 9 + [0.0 if true else 0.5, 0.0, 0.0])
        learn(state, first, second, beside(truth, first, second) + away, chance)
    list(join(state, 0.5, [], 0))
    assert len(state.clusters) == 1
    return min(state.confidence)


def test_what_fits_elsewhere_as_well_is_a_doubt_and_what_agrees_is_none(known: Known) -> None:
    alone = confidence_with(known, (0, 1, 0.97, True), (1, 2, 0.96, True))
    agreed = confidence_with(known, (0, 1, 0.97, True), (1, 2, 0.96, True), (0, 2, 0.95, True))
    rivalled = confidence_with(known, (0, 1, 0.97, True), (1, 2, 0.96, True), (0, 2, 0.95, False))
    assert alone == pytest.approx(0.96, abs=0.01) or alone == pytest.approx(0.97 * 0.96, abs=0.01)
    assert agreed > alone
    assert rivalled < 0.65


def test_a_join_leans_on_the_surest_of_those_that_touch_much(known: Known) -> None:
    fragments, _, _ = known
    lone, pair = Cluster(fragments, {0: IDENTITY}), Cluster(fragments, {1: IDENTITY, 2: IDENTITY})
    assert support([1.0, 1.0, 0.6], {(0, 2): 50, (2, 0): 40, (1, 0): 10}, lone, pair, 0.5) == 0.6
    assert support([1.0, 1.0, 0.6], {(0, 2): 50, (2, 0): 40, (1, 0): 60}, lone, pair, 0.5) == 1.0
    assert support([0.5, 1.0, 0.6], {}, lone, pair, 0.5) == 0.5


def test_what_holds_to_a_doubtful_piece_alone_is_as_doubtful(known: Known) -> None:
    fragments, truth, models = known
    state = AssemblyState(PairSearch(fragments, models), 0, -math.inf)
    touching = AssemblyState(PairSearch(fragments, models), 0, -math.inf, dict(enumerate(truth))).touching()
    middle = max(range(3), key=lambda piece: sum(count for pair, count in touching.items() if piece in pair))
    ends = [piece for piece in range(3) if piece != middle]
    state.anchor = ends[0]
    learn(state, middle, ends[0], beside(truth, middle, ends[0]), 0.6)
    list(join(state, 0.5, [], 0))
    whole, last = state.clusters[::-1]
    held = compose(whole.poses[middle], beside(truth, ends[1], middle))
    state.add_matches(last, whole, [Match(held, 0.99, INSERTED, 3, np.zeros(3, np.float32))])
    list(join(state, 0.5, [], 0))
    assert state.confidence[ends[1]] == pytest.approx(0.6 * 0.99, abs=1e-3)


def test_what_is_laid_aside_is_guessed_where_it_fits_best_or_where_the_break_is_open(known: Known) -> None:
    fragments, truth, models = known
    state = AssemblyState(PairSearch(fragments, models), 0)
    anchor = state.anchor
    loose, lost = (piece for piece in range(3) if piece != anchor)
    learn(state, loose, anchor, beside(truth, loose, anchor), 0.05)
    laid = poses_of(np.stack([IDENTITY + np.array([0.0] * 9 + [9.0 * piece, 0, 0]) for piece in range(3)]))
    rows = dict(enumerate(pose_rows(best_guess(state, laid))))
    assert beside(rows, loose, anchor) == pytest.approx(beside(truth, loose, anchor), abs=1e-5)
    main, other = (Cluster(fragments, {piece: IDENTITY}) for piece in (anchor, lost))
    side = main.side(0)
    assert side is not None
    middle = transformed(beside(rows, lost, anchor), other.body.points.mean(0)[None])[0]
    assert middle == pytest.approx(side.points.mean(0), abs=1e-4)
