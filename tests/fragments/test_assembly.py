"""An assembly grows by the most probable match, shares probabilities among rivals, and explains what is in doubt."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch
from manifold3d import Manifold

from diffassemble.assembly.growth import best_first
from diffassemble.fragments.assembly_state import AssemblyState, FragmentConstraint, Join, log_odds, logit
from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.contact import IDENTITY, Pose, compose, inverse, pose_rows, poses_of, transformed
from diffassemble.fragments.explain import (
    ALONE,
    BADLY,
    LATE,
    LOOSE,
    NO_BREAK,
    NOWHERE,
    SLIDES,
    SMALL,
    explained,
    open_places,
)
from diffassemble.fragments.matches import PairSearch, prepare
from diffassemble.fragments.mend import best_guess, choose_anchor, piece_confidence, search_some
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.verification import Match

NAMES = ("a", "b", "c")


def beside(poses: Mapping[int, Pose] | Sequence[Pose], first: int, second: int, *shift: float) -> Pose:
    """The pose of one piece seen from another, shifted."""
    return compose(inverse(poses[second]), poses[first]) + np.array([0.0] * 9 + [*shift, 0.0, 0.0, 0.0][:3])


class Heap:
    """Three fragments of a block, the largest first, and what a search may have found out about them."""

    def __init__(self, fragments: list[Fragment], truth: list[Pose], models: FractureModels) -> None:
        self.fragments, self.truth, self.models = fragments, truth, models
        self.begin(-math.inf)

    def begin(self, until: float = math.inf, locked: Mapping[int, Pose] | None = None) -> AssemblyState:
        """Without time nothing is verified again, so probabilities stay as they are given."""
        self.state = AssemblyState(PairSearch(self.fragments, self.models), 0, until, locked)
        return self.state

    def single(self, piece: int) -> Cluster:
        return next(cluster for cluster in self.state.clusters if cluster.members == (piece,))

    def learn(self, first: int, second: int, chance: float, *shift: float, slides: bool = False) -> None:
        """Give the state a match of two single pieces, off by a shift from the true pose."""
        pose = beside(self.truth, first, second, *shift)
        match = Match(pose, chance, 0, 3, np.zeros(3, np.float32), slides)
        self.state.add_matches(self.single(first), self.single(second), [match])

    def grow(self, least: float = 0.01) -> list[float]:
        """The probabilities of the joins that are made."""
        made = best_first(FragmentConstraint(), self.state, logit(least))
        return [one.join.match.probability for one in made]

    def notes(self, *confidence: float, unsupported: Sequence[int] = ()) -> list[str]:
        objects = [0 if sure else -1 for sure in confidence]
        return list(explained(self.state, [float(sure) for sure in confidence], objects, NAMES, unsupported))

    @property
    def members(self) -> list[tuple[int, ...]]:
        return sorted(cluster.members for cluster in self.state.clusters)


@pytest.fixture(scope="module")
def prepared(models: FractureModels) -> tuple[list[Fragment], list[Pose]]:
    generator = torch.Generator().manual_seed(2)
    puzzle = scatter(fracture(mesh_of(Manifold.cube((1.0, 0.7, 0.4), True)), 3, generator), generator)
    puzzle = puzzle.reordered(puzzle.fragments.areas.argsort(descending=True))
    assert puzzle.truth is not None
    return prepare(puzzle.fragments, models, 0), list(pose_rows(puzzle.truth))


@pytest.fixture
def heap(prepared: tuple[list[Fragment], list[Pose]], models: FractureModels) -> Heap:
    fragments, truth = prepared
    return Heap([copy.copy(fragment) for fragment in fragments], truth, models)


# Growth


def test_joins_in_order_of_probability(heap: Heap) -> None:
    heap.learn(0, 1, 0.6)
    heap.learn(1, 2, 0.8)
    assert heap.grow(0.7) == [0.8]
    assert heap.grow(0.5) == [0.6]
    assert heap.members == [(0, 1, 2)]
    assert beside(heap.state.clusters[0].poses, 0, 2) == pytest.approx(beside(heap.truth, 0, 2), abs=1e-5)
    assert heap.state.confidence[heap.state.anchor] == 1
    assert sorted(heap.state.confidence)[0] in (pytest.approx(0.48), pytest.approx(0.6))


def test_matches_that_collide_with_the_cluster_are_not_joined_any_more(heap: Heap) -> None:
    heap.begin()
    heap.learn(1, 0, 0.9)
    heap.learn(2, 0, 0.8, *(beside(heap.truth, 1, 0)[9:] - beside(heap.truth, 2, 0)[9:]))  # in the place of piece 1
    assert heap.grow(0.5) == [0.9]


def test_what_is_locked_keeps_its_poses(heap: Heap) -> None:
    state, truth = heap.begin(-math.inf, {1: heap.truth[1], 2: heap.truth[2]}), heap.truth
    assert heap.members == [(0,), (1, 2)]
    assert state.anchor in (1, 2)
    locked, loose = state.ranked
    assert locked.members == (1, 2)
    state.add_matches(locked, loose, [Match(inverse(truth[0]), 0.9, 0, 1, np.zeros(3, np.float32))])
    assert heap.grow() == [0.9]
    whole = state.clusters[0]
    assert [np.array_equal(whole.poses[piece], truth[piece]) for piece in (1, 2)] == [True, True]
    assert whole.poses[0] == pytest.approx(truth[0], abs=1e-6)


def test_pairs_are_searched_once_and_threads_change_nothing(heap: Heap, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads in (1, 2):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        state = heap.begin()
        assert search_some(state, 0)
        assert not search_some(state, 0)
        found.append([join.match for joins in state.matches.values() for join in joins])
    assert found[0]
    assert [match.probability for match in found[0]] == [match.probability for match in found[1]]
    assert all(np.array_equal(one.pose, two.pose) for one, two in zip(*found, strict=True))


# Probability


def test_of_many_fragments_fewer_pairs_touch_so_less_is_sure() -> None:
    def chance(probability: float, fragments: int, slides: bool = False) -> float:
        match = Match(IDENTITY, probability, 1, 1, np.zeros(3, np.float32), slides)
        return 1 / (1 + math.exp(-log_odds(match, fragments)))

    rarer = 0.75 / (5 / 99)  # of 100 fragments a pair touches in 5 of 99 cases; verification learnt from 3 of 4
    assert chance(0.8, 2) == chance(0.8, 7) == pytest.approx(0.8)
    assert chance(0.8, 100) == pytest.approx(1 / (1 + 0.25 * rarer**0.5))
    assert chance(0.8, 100, slides=True) == pytest.approx(1 / (1 + 0.25 * rarer))
    assert chance(0.9999, 100) == chance(0.999, 5) == pytest.approx(0.995)


def test_what_fits_elsewhere_as_well_is_a_doubt_and_what_agrees_is_none(heap: Heap) -> None:
    least = []
    for others in ((), ((0, 2, 0.95),), ((0, 2, 0.95, 0.5),)):
        heap.begin(-math.inf)
        for match in ((0, 1, 0.97), (1, 2, 0.96), *others):
            heap.learn(*match)
        heap.grow(0.5)
        assert heap.members == [(0, 1, 2)]
        least.append(min(heap.state.confidence))
    alone, agreed, rivalled = least
    assert alone == pytest.approx(0.96, abs=0.01) or alone == pytest.approx(0.97 * 0.96, abs=0.01)
    assert agreed > alone
    assert rivalled < 0.65


def test_what_is_joined_to_a_doubtful_piece_alone_is_as_doubtful(heap: Heap) -> None:
    touching = heap.begin(-math.inf, dict(enumerate(heap.truth))).touching()
    middle = max(range(3), key=lambda piece: sum(count for pair, count in touching.items() if piece in pair))
    state, ends = heap.begin(-math.inf), [piece for piece in range(3) if piece != middle]
    state.anchor = ends[0]
    heap.learn(middle, ends[0], 0.6)
    heap.grow()
    whole, last = state.clusters[::-1]
    held = compose(whole.poses[middle], beside(heap.truth, ends[1], middle))
    state.add_matches(last, whole, [Match(held, 0.99, 0, 3, np.zeros(3, np.float32))])
    heap.grow()
    assert state.confidence[ends[1]] == pytest.approx(0.6 * 0.99, abs=1e-3)


def test_a_join_is_supported_by_the_pieces_that_touch_much(heap: Heap) -> None:
    lone, pair = (Cluster(heap.fragments, dict.fromkeys(own, IDENTITY)) for own in ((0,), (1, 2)))
    join = Join(lone, pair, Match(IDENTITY, 0.9, 0, 1, np.zeros(3, np.float32)))
    assert heap.state.contacts({(0, 2): 50, (2, 0): 40, (1, 0): 10}, join) == [(0, 2)]
    assert heap.state.contacts({(0, 2): 50, (2, 0): 40, (1, 0): 60}, join) == [(0, 1), (0, 2)]
    assert heap.state.contacts({}, join) == [(0, 1), (0, 2)]


# What is taken off, and the best guess


def test_likely_joins_stay(heap: Heap) -> None:
    heap.learn(1, 0, 0.8)
    heap.learn(2, 1, 0.7)
    heap.grow()
    assert heap.state.prune_unsupported(0.5) == set()
    assert heap.members == [(0, 1, 2)]


@pytest.mark.parametrize("slides", [False, True])
def test_guesses_are_taken_off_with_a_reason(slides: bool, heap: Heap) -> None:
    heap.learn(1, 0, 0.6 if slides else 0.3, slides=slides)
    heap.grow()
    assert heap.state.prune_unsupported(0.5) == {1}
    assert heap.members == [(0,), (1,), (2,)]
    assert heap.notes(0, 0, 0, unsupported=(1,))[:2] == [ALONE, SLIDES if slides else BADLY]


def test_what_is_joined_is_chosen_instead_of_a_largest_that_nothing_fits(heap: Heap) -> None:
    heap.learn(2, 1, 0.95)
    heap.learn(1, 0, 0.3)
    heap.grow()
    assert heap.state.anchor == 0
    assert heap.state.prune_unsupported(0.5) == {1, 2}
    choose_anchor(heap.state)
    assert heap.state.anchor == 1
    sure = piece_confidence(heap.state)
    assert sure[1] == sure[2] > 0.9


def test_unplaced_pieces_are_guessed_where_they_fit_best_or_where_the_break_is_open(heap: Heap) -> None:
    heap.learn(1, 0, 0.05)
    laid = poses_of(np.stack([IDENTITY + np.array([0.0] * 9 + [9.0 * piece, 0, 0]) for piece in range(3)]))
    rows = dict(enumerate(pose_rows(best_guess(heap.state, laid))))
    assert beside(rows, 1, 0) == pytest.approx(beside(heap.truth, 1, 0), abs=1e-5)
    side = heap.single(0).side(0)
    assert side is not None
    middle = transformed(beside(rows, 2, 0), heap.single(2).body.points.mean(0)[None])[0]
    assert middle == pytest.approx(side.points.mean(0), abs=1e-4)


# Reasons


def test_what_matches_nothing_fits_nowhere(heap: Heap) -> None:
    assert heap.notes(1, 0, 0) == ["", LATE, LATE]
    heap.begin()
    assert heap.notes(1, 0, 0) == ["", NOWHERE, NOWHERE]
    heap.fragments[1].found = [np.arange(len(heap.fragments[1].pyramid.levels[0])) < 5]
    heap.fragments[2].found = [np.ones(6, bool)]
    assert heap.notes(1, 0, 0) == ["", NO_BREAK, SMALL]


def test_equal_places_are_counted_once_each(heap: Heap) -> None:
    heap.begin()
    heap.learn(1, 0, 0.09)
    heap.learn(0, 1, 0.08)  # the same place, the other way round
    assert heap.notes(1, 0, 0)[1] == NOWHERE
    heap.learn(1, 2, 0.07)
    heap.learn(1, 0, 0.06, 0, 0, 0.5)
    heap.learn(1, 0, 0.02, 0, 0, 1.0)  # not nearly as good
    assert len(open_places(heap.state, heap.single(1))) == 3
    assert heap.notes(1, 0, 0)[1] == "fits 3 places about equally well"
    heap.begin()
    heap.learn(1, 0, 0.03)
    heap.learn(1, 0, 0.03, 0, 0, 0.5)
    assert heap.notes(1, 0, 0)[1] == NOWHERE


def test_pieces_that_are_joined_beside_the_rest(heap: Heap) -> None:
    heap.learn(1, 2, 0.8)
    heap.grow()
    assert heap.notes(1, 0, 0)[1:] == [f"joined to {other}, but together they fit nowhere" for other in "cb"]


def test_rival_places_are_free_and_about_as_good(heap: Heap) -> None:
    heap.learn(1, 0, 0.6)
    heap.learn(1, 0, 0.6, 0, 0, 0.02)  # the same
    middle, inside = heap.single(0).body.points.mean(0), beside(heap.truth, 1, 0)
    inside[9:] = middle - inside[:9].reshape(3, 3) @ heap.single(1).body.points.mean(0)
    heap.learn(1, 0, 0.5, *(inside - beside(heap.truth, 1, 0))[9:])  # taken
    heap.grow()
    assert heap.notes(1, 0.6, 0)[1] == LOOSE
    heap.state.pairs[1, 0].append(Match(beside(heap.truth, 1, 0, 0, 0, 2.0), 0.5, 0, 3, np.zeros(3, np.float32)))
    assert heap.notes(1, 0.6, 0)[1] == "fits 2 places about equally well"


def test_two_good_fits_are_reported_as_two_places(heap: Heap) -> None:
    heap.learn(1, 0, 0.97)
    heap.learn(1, 0, 0.96, 0, 0, 2.0)
    heap.grow(0.97)
    assert heap.state.confidence[1] < 0.6
    assert heap.notes(1, heap.state.confidence[1], 0)[1] == "fits 2 places about equally well"


def test_doubt_is_passed_on_and_adds_up(heap: Heap) -> None:
    heap.learn(1, 2, 0.95)
    heap.learn(1, 0, 0.6)
    heap.grow()
    assert heap.notes(1, 0.6, 0.57) == ["", LOOSE, "as sure as b, to which it was joined before"]
    heap.begin(-math.inf)
    heap.learn(1, 2, 0.92)
    heap.learn(1, 0, 0.93)
    heap.grow()
    assert heap.notes(1, 0.93, 0.85)[1:] == ["", "several joins lead from it to the largest fragment"]
