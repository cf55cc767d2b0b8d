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

from diffassemble.assembly.growth import Constraint, GrowthPolicy, grow, grown


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
    joins = [made.join for made in grow(Links(4, pairs, [3.0, 0.5, 2.0]), GrowthPolicy(least=1.0))]
    assert joins == [0, 2]
    found = grown(Links(4, pairs, [3.0, 0.5, 2.0], locked=(0, 1)), GrowthPolicy(least=1.0))
    assert [made.join for made in found.joins] == [2]


def test_required_joins_come_first_and_joins_without_evidence_are_never_made() -> None:
    pairs, odds = [(0, 1), (1, 2), (0, 2)], [3.0, 2.0, -5.0]
    assert [made.join for made in grown(Links(3, pairs, odds), GrowthPolicy(), required=[2]).joins] == [2, 0]
    excluded = Links(3, pairs, [3.0, -math.inf, -math.inf])
    assert [made.join for made in grown(excluded, GrowthPolicy(), required=[1]).joins] == [0]


@dataclass
class Line:
    """Cells of a line and the piece in each."""

    at: dict[int, int]


class Chain(Constraint[Line, tuple[int, int]]):
    """Pieces 1, 2, … are put into cells beside piece 0 in cell 0; evidence is for neighbours in the line.

    Joins are (piece, cell).
    """

    def __init__(self, worth: dict[tuple[int, int], float], count: int) -> None:
        self.worth, self.count = worth, count

    def begin(self) -> Line:
        return Line({0: 0})

    def proposals(self, state: Line) -> Iterable[tuple[int, int]]:
        cells = {cell + 1 for cell in state.at} - state.at.keys()
        return [(piece, cell) for cell in sorted(cells) for piece in range(self.count)]

    def evidence(self, state: Line, join: tuple[int, int]) -> float:
        piece, cell = join
        if cell in state.at or piece in state.at.values():
            return -math.inf
        left, right = state.at.get(cell - 1), state.at.get(cell + 1)
        return sum(
            self.worth.get(pair, -4.0)
            for pair in ((left, piece), (piece, right))
            if None not in pair  # type: ignore[comparison-overlap]
        )

    def join(self, state: Line, join: tuple[int, int]) -> Iterable[tuple[int, int]]:
        state.at[join[1]] = join[0]
        return self.proposals(state)

    def total(self, state: Line) -> float:
        return sum(
            self.worth.get((state.at[cell], state.at[cell + 1]), -4.0) for cell in state.at if cell + 1 in state.at
        )

    def undo(self, state: Line) -> bool:
        poor = [
            c for c in state.at if c and c - 1 in state.at and self.worth.get((state.at[c - 1], state.at[c]), -4) < 2
        ]
        for cell in [cell for cell in state.at if poor and cell >= min(poor)]:
            del state.at[cell]
        return bool(poor)

    def contradicted(self, state: Line) -> Sequence[tuple[int, int]]:
        shown = {(state.at[cell], state.at[cell + 1]) for cell in state.at if cell + 1 in state.at}
        left = sorted((-odds, pair) for pair, odds in self.worth.items() if pair not in shown and odds > 0)
        return [(pair[1], 1) for _, pair in left if pair[0] == 0]


def test_a_contradicted_join_begins_a_better_attempt() -> None:
    # Greedily 0-2 comes first, and nothing follows 2; 0-1-2-3 has more evidence.
    worth = {(0, 2): 3.0, (0, 1): 2.5, (1, 2): 5.0, (2, 3): 1.0}
    alone = grown(Chain(worth, 4), GrowthPolicy(least=0.5))
    assert alone.state.at == {0: 0, 1: 2, 2: 3}
    assert alone.total == pytest.approx(4.0)
    better = grown(Chain(worth, 4), GrowthPolicy(least=0.5, rivals=3))
    assert better.state.at == {0: 0, 1: 1, 2: 2, 3: 3}
    assert better.total == pytest.approx(8.5)
    late = grown(Chain(worth, 4), GrowthPolicy(least=0.5, rivals=3, until=0.0))
    assert late.state.at == alone.state.at


def test_undo_never_makes_an_assembly_worse() -> None:
    worth = {(0, 1): 3.0, (1, 2): 1.0}
    plain = grown(Chain(worth, 3), GrowthPolicy(least=0.5))
    rounds = grown(Chain(worth, 3), GrowthPolicy(least=0.5, undo_rounds=3))
    assert rounds.total >= plain.total
    assert rounds.state.at == plain.state.at
