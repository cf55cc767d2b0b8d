"""Expanders: regular, simple, connected, within puzzles, and mixing as fast as such graphs can."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.linalg import eigsh
from torch import Tensor

from diffassemble.core import InputError
from diffassemble.network.graph.edges import complete_edges, expander_edges, neighbours_of, regular_expander


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def adjacency(edges: Tensor, count: int) -> np.ndarray:
    matrix = np.zeros((count, count))
    np.add.at(matrix, tuple(edges.numpy()), 1)
    return matrix


def second_eigenvalue(edges: Tensor, count: int) -> float:
    """The largest absolute value but the first: how slowly the graph mixes."""
    values = np.sort(np.abs(np.linalg.eigvalsh(adjacency(edges, count))))
    return float(values[-2])


def ring_lattice(count: int, degree: int) -> Tensor:
    """Everyone with the next on either side: what the published code took for an expander, relabelled."""
    order = torch.randperm(count, generator=seeded())
    place = torch.arange(count)
    steps = [step for step in range(-(degree // 2), degree // 2 + 1) if step]
    return torch.cat([torch.stack([order[place], order[(place + step) % count]]) for step in steps], 1)


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
    found = [second_eigenvalue(regular_expander(count, degree, seeded(seed)), count) for seed in range(3)]
    assert max(found) < 1.1 * best + 0.1


@pytest.mark.parametrize(("count", "degree"), [(300, 4), (500, 20), (200, 60)])
def test_a_ring_lattice_does_not_however_it_is_labelled(count: int, degree: int) -> None:
    assert second_eigenvalue(ring_lattice(count, degree), count) > 1.1 * 2 * math.sqrt(degree - 1) + 0.1


def test_the_gap_at_900_pieces_is_that_of_a_random_graph() -> None:
    edges = regular_expander(900, 180, seeded())
    matrix = coo_array((np.ones(edges.shape[1]), tuple(edges.numpy())), (900, 900)).tocsr()
    assert 180 - eigsh(matrix, 2, which="LA", return_eigenvectors=False)[0] > 150


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


@pytest.mark.parametrize("degree", [1.0, 100.0])
def test_everyone_is_heard_by_everyone_if_the_degree_allows(degree: float) -> None:
    puzzle = torch.arange(3).repeat_interleave(torch.tensor([4, 1, 7]))
    found, expected = (
        adjacency(edges, 12) for edges in (expander_edges(puzzle, degree, seeded()), complete_edges(puzzle))
    )
    assert (found == expected).all()


def test_degrees_are_shares_or_numbers() -> None:
    assert neighbours_of(0.2, 901) == 180
    assert neighbours_of(0.2, 900) == 180
    assert neighbours_of(0.2, 37) == 8  # 7.2 of 36 others, and one more: 37 pieces can't have 7 each
    assert neighbours_of(7.0, 36) == 7
    assert neighbours_of(7.0, 37) == 8
    assert neighbours_of(0.01, 36) == 2
    assert neighbours_of(50.0, 36) == 35
    assert neighbours_of(2.0, 1) == 0


def test_the_same_seed_gives_the_same_graph() -> None:
    first, again, other = (regular_expander(50, 4, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("count", "degree", "message"),
    [
        (10, 0, "degree 0 can't connect 10 pieces"),
        (10, 1, "degree 1 can't connect 10 pieces"),
        (10, 10, "degree 10 is more than 10 pieces allow; give at most 9"),
        (1, 2, "one piece has no neighbours"),
        (9, 3, "9 pieces can't have 3 neighbours each: both are odd; give 4"),
    ],
)
def test_impossible_graphs_are_refused(count: int, degree: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        regular_expander(count, degree, seeded())


@pytest.mark.parametrize(
    ("degree", "message"), [(0.0, "degree 0 joins no pieces"), (-2.0, "joins no"), (2.5, "neither")]
)
def test_impossible_degrees_are_refused(degree: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        expander_edges(torch.zeros(5, dtype=torch.long), degree, seeded())
