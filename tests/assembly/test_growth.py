"""The growth engine on constraints small enough to know the best answer of."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from diffassemble.assembly.growth import Constraint, GrowthPolicy, best_first, grown
from diffassemble.assembly.paths import best_path


@dataclass
class Labels:
    """Groups of pieces by label."""

    label: list[int]


@dataclass
class Links(Constraint[Labels, int]):
    """Matches with fixed log odds; two pieces of one group can't be joined again."""

    count: int
    pairs: Sequence[tuple[int, int]]
    odds: Sequence[float]
    locked: tuple[int, ...] = ()

    def begin(self) -> Labels:
        return Labels([self.locked[0] if piece in self.locked else piece for piece in range(self.count)])

    def proposals(self, state: Labels) -> Iterable[int]:
        return range(len(self.pairs))

    def evidence(self, state: Labels, join: int) -> float:
        one, two = (state.label[piece] for piece in self.pairs[join])
        return self.odds[join] if one != two else -math.inf

    def join(self, state: Labels, join: int) -> Iterable[int]:
        one, two = (state.label[piece] for piece in self.pairs[join])
        state.label = [two if label == one else label for label in state.label]
        return ()

    def total(self, state: Labels) -> float:
        return sum(
            odds for pair, odds in zip(self.pairs, self.odds, strict=True) if len({state.label[p] for p in pair}) == 1
        )


@given(st.lists(st.floats(0.1, 9), min_size=15, max_size=15, unique=True))
def test_fixed_evidence_gives_the_maximum_spanning_tree(odds: list[float]) -> None:
    pairs = list(itertools.combinations(range(6), 2))
    found = grown(Links(6, pairs, odds), GrowthPolicy())
    graph = np.zeros((6, 6))
    graph[tuple(np.array(pairs).T)] = 10 - np.array(odds)
    tree = minimum_spanning_tree(graph).toarray()
    assert sorted(pairs[made.join] for made in found.joins) == sorted(map(tuple, np.argwhere(tree > 0).tolist()))
    assert [made.odds for made in found.joins] == sorted((made.odds for made in found.joins), reverse=True)


def test_joins_need_the_least_log_odds_and_locked_pieces_are_one_group() -> None:
    pairs = [(0, 1), (1, 2), (2, 3)]
    found = grown(Links(4, pairs, [3.0, 0.5, 2.0]), GrowthPolicy(least=1.0))
    assert [made.join for made in found.joins] == [0, 2]
    found = grown(Links(4, pairs, [3.0, 0.5, 2.0], locked=(0, 1)), GrowthPolicy(least=1.0))
    assert [made.join for made in found.joins] == [2]


def test_required_joins_come_first_and_joins_without_evidence_are_never_made() -> None:
    pairs, odds = [(0, 1), (1, 2), (0, 2)], [3.0, 2.0, -5.0]
    assert [made.join for made in grown(Links(3, pairs, odds), GrowthPolicy(), required=[2]).joins] == [2, 0]
    excluded = Links(3, pairs, [3.0, -math.inf, -math.inf])
    assert [made.join for made in grown(excluded, GrowthPolicy(), required=[1]).joins] == [0]


@dataclass
class Pairs(Constraint[set[int], int]):
    """Each piece is joined to one other at most; undo takes out joins below `poor`."""

    pairs: Sequence[tuple[int, int]]
    odds: Sequence[float]
    poor: float = -math.inf

    def begin(self) -> set[int]:
        return set()

    def proposals(self, state: set[int]) -> Iterable[int]:
        return range(len(self.pairs))

    def evidence(self, state: set[int], join: int) -> float:
        taken = {piece for made in state for piece in self.pairs[made]}
        return self.odds[join] if taken.isdisjoint(self.pairs[join]) else -math.inf

    def join(self, state: set[int], join: int) -> Iterable[int]:
        state.add(join)
        return ()

    def total(self, state: set[int]) -> float:
        return sum(self.odds[join] for join in state)

    def undo(self, state: set[int]) -> bool:
        poor = {join for join in state if self.odds[join] < self.poor}
        state -= poor
        return bool(poor)

    def contradicted(self, state: set[int]) -> Sequence[int]:
        return sorted(set(range(len(self.pairs))) - state, key=lambda join: -self.odds[join])


CHAIN, ODDS = [(1, 2), (0, 1), (2, 3)], [5.0, 4.0, 3.0]


def test_a_contradicted_join_begins_a_better_attempt() -> None:
    assert grown(Pairs(CHAIN, ODDS), GrowthPolicy()).state == {0}
    better = grown(Pairs(CHAIN, ODDS), GrowthPolicy(rivals=1))
    assert (better.state, better.total) == ({1, 2}, 7.0)
    assert [made.join for made in better.joins] == [1, 2]
    assert grown(Pairs(CHAIN, ODDS), GrowthPolicy(rivals=1, until=0.0)).state == {0}


@given(st.lists(st.floats(-2, 6), min_size=10, max_size=10), st.floats(-2, 6))
def test_undo_and_rivals_never_make_an_assembly_worse(odds: list[float], poor: float) -> None:
    constraint = Pairs(list(itertools.combinations(range(5), 2)), odds, poor)
    plain, more = (grown(constraint, policy) for policy in (GrowthPolicy(), GrowthPolicy(undo_rounds=2, rivals=3)))
    assert more.total >= plain.total
    assert more.total == pytest.approx(constraint.total(more.state))
    assert grown(constraint, GrowthPolicy(undo_rounds=2, rivals=3)).state == more.state


def test_the_engine_grows_states_given_to_it() -> None:
    constraint, state = Pairs(CHAIN, ODDS), {1}
    assert [made.odds for made in best_first(constraint, state, 0.0)] == [3.0]
    assert state == {1, 2}


def test_the_best_path_is_found() -> None:
    rng = np.random.default_rng(0)
    paths = np.array(
        [
            [2 * piece + side for piece, side in zip(order, sides, strict=True)]
            for order in itertools.permutations(range(5))
            for sides in itertools.product((0, 1), repeat=5)
        ]
    )
    for _ in range(5):
        worth = rng.normal(size=(10, 10))
        worth = worth + worth.T
        found = best_path(worth, rivals=24)
        values = worth[paths[:, :-1] ^ 1, paths[:, 1:]].sum(1)
        assert sorted(found // 2) == list(range(5))
        assert worth[found[:-1] ^ 1, found[1:]].sum() == pytest.approx(values.max())
