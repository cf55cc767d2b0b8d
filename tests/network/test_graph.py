"""Graphs: edge lists, expanders, and the forms in which layers take them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Matches, Poses
from diffassemble.core.seeds import seeded
from diffassemble.network.graph import (
    EdgeGraph,
    complete_edges,
    drop_edges,
    expander_edges,
    match_edges,
    neighbours_of,
    regular_expander,
)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.8, 1.0])
def test_the_share_is_lost_but_nobody_stops_hearing_itself(share: float) -> None:
    edges = complete_edges(torch.arange(4).repeat_interleave(40))
    kept = drop_edges(edges, share, torch.Generator().manual_seed(0))
    loops, others = kept[0] == kept[1], (edges[0] != edges[1]).sum().item()
    assert loops.sum() == 160
    deviation = (others * share * (1 - share)) ** 0.5
    assert abs((~loops).sum().item() - (1 - share) * others) <= 5 * deviation
    assert set(zip(*kept.tolist(), strict=True)) <= set(zip(*edges.tolist(), strict=True))


def test_the_most_probable_matches_of_every_side_are_joined_both_ways() -> None:
    first, second = torch.tensor([0, 0, 0, 0, 2]), torch.tensor([1, 2, 3, 1, 3])
    slot, weight = torch.tensor([0, 1, 2, 4, 5]), torch.tensor([0.1, 0.9, 0.5, 0.2, 0.3])
    matches = Matches(first, second, Poses.identity(5, 2), slot, weight[:, None])
    for top, expected in ((1, {(2, 0), (1, 0), (3, 2)}), (2, {(2, 0), (3, 0), (1, 0), (3, 2)}), (0, set())):
        found = set(zip(*match_edges(matches, top, 16).tolist(), strict=True))
        assert found == expected | {(b, a) for a, b in expected}
    assert match_edges(matches[torch.tensor([], dtype=torch.long)], 2, 16).shape == (2, 0)


def adjacency(edges: Tensor, count: int) -> np.ndarray:
    matrix = np.zeros((count, count))
    np.add.at(matrix, tuple(edges.numpy()), 1)
    return matrix


@settings(deadline=None, max_examples=60)
@given(st.integers(3, 40), st.integers(2, 39), st.integers(0, 10))
def test_everyone_has_as_many_different_neighbours_and_all_are_connected(count: int, degree: int, seed: int) -> None:
    degree = min(degree, count - 1)
    degree -= count * degree % 2
    if degree < 2:
        return
    matrix = adjacency(regular_expander(count, degree, seeded(seed)), count)
    assert (matrix.sum(0) == degree).all()
    assert (matrix == matrix.T).all()
    assert matrix.max() == 1
    assert not matrix.diagonal().any()
    reached = np.linalg.matrix_power(matrix + np.eye(count), count) > 0
    assert reached.all()


@pytest.mark.parametrize(("count", "degree"), [(300, 4), (300, 7), (301, 10), (500, 20), (200, 60), (120, 90)])
def test_random_graphs_mix_as_fast_as_such_graphs_can(count: int, degree: int) -> None:
    # Of a graph and what it leaves out, the second eigenvalues differ by at most 1.
    best = 2 * math.sqrt(min(degree, count - 1 - degree) - 1) + (1 if 2 * degree > count else 0)
    for seed in range(3):
        matrix = adjacency(regular_expander(count, degree, seeded(seed)), count)
        second = np.sort(np.abs(np.linalg.eigvalsh(matrix)))[-2]  # how slowly the graph mixes
        assert second < 1.1 * best + 0.1


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=5), st.sampled_from([0.01, 0.2, 0.6, 1.0, 2.0, 5.0, 40.0]))
def test_edges_stay_within_puzzles(sizes: list[int], degree: float) -> None:
    puzzle = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    edges = expander_edges(puzzle, degree, seeded())
    assert torch.equal(puzzle[edges[0]], puzzle[edges[1]])
    matrix = adjacency(edges, len(puzzle))
    assert matrix.max() == 1
    assert (matrix.diagonal() == 1).all()
    expected = [neighbours_of(degree, size) for size in sizes]
    assert (matrix.sum(0) - 1).tolist() == torch.tensor(expected)[puzzle].tolist()


SIZES = (4, 1, 6, 3)
SLOTS = 5


@pytest.fixture
def puzzle() -> torch.Tensor:
    return torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))


@pytest.mark.parametrize("virtual", [0, 3])
def test_virtual_nodes_are_joined_to_all_pieces_of_their_puzzle_and_to_no_others(
    puzzle: torch.Tensor, virtual: int
) -> None:
    count = len(puzzle)
    graph = EdgeGraph.of(torch.arange(count).expand(2, -1), puzzle, None, SLOTS, virtual)
    owner = torch.cat([puzzle, torch.arange(len(SIZES)).repeat_interleave(virtual)])
    found = set(zip(*graph.edges.tolist(), strict=True))
    expected = {
        (a, b)
        for a in range(len(owner))
        for b in range(len(owner))
        if owner[a] == owner[b] and (a == b or max(a, b) >= count)
    }
    assert found == expected
    assert graph.edges.shape[1] == len(expected)
