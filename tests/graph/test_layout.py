"""The dense and the listed form of a graph say the same."""

from __future__ import annotations

import pytest
import torch

from diffassemble.core import Matches, Poses
from diffassemble.network.graph.edges import complete_edges, drop_edges
from diffassemble.network.graph.layout import DenseFeatures, DenseGraph, edge_graph

SIZES = (4, 1, 6, 3)
STARTS = (0, 4, 5, 11)
SLOTS, CHANNELS = 5, 2


@pytest.fixture
def puzzle() -> torch.Tensor:
    return torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))


@pytest.fixture
def matches(puzzle: torch.Tensor) -> Matches:
    """Random matings within the puzzles, each of a kind of its own."""
    generator = torch.Generator().manual_seed(0)
    within = complete_edges(puzzle)
    first, second = within[:, torch.randperm(within.shape[1], generator=generator)[:40]].repeat(1, 2)
    slot = torch.randint(0, SLOTS - 1, (40,), generator=generator)
    evidence = torch.rand(80, CHANNELS, generator=generator)
    return Matches(first, second, Poses.identity(80, 2), torch.cat([slot, slot + 1]), evidence)


def packed(count: int) -> torch.Tensor:
    return torch.randn(count, 2, 3, generator=torch.Generator().manual_seed(0))


def test_spreading_pads_and_gathering_takes_it_back(puzzle: torch.Tensor) -> None:
    graph = DenseGraph.of(puzzle, None, SLOTS)
    rows = packed(len(puzzle))
    padded = graph.spread(rows)
    assert padded.shape == (len(SIZES), max(SIZES), 2, 3)
    assert graph.present.sum(1).tolist() == list(SIZES)
    assert torch.equal(graph.gather(padded), rows)
    assert not padded[~graph.present].any()
    for index, (start, size) in enumerate(zip(STARTS, SIZES, strict=True)):
        assert torch.equal(padded[index, :size], rows[start : start + size])


def test_a_listed_graph_needs_no_padding(puzzle: torch.Tensor) -> None:
    graph = edge_graph(complete_edges(puzzle), puzzle, None, SLOTS)
    rows = packed(len(puzzle))
    assert graph.spread(rows) is rows
    assert torch.equal(graph.gather(rows), rows)


def test_without_matches_there_are_no_features(puzzle: torch.Tensor) -> None:
    assert DenseGraph.of(puzzle, None, SLOTS).features is None
    assert edge_graph(complete_edges(puzzle), puzzle, None, SLOTS).evidence is None


def test_features_are_the_matches_evidence_at_their_kind(puzzle: torch.Tensor, matches: Matches) -> None:
    features = DenseGraph.of(puzzle, matches, SLOTS).features
    assert isinstance(features, DenseFeatures)
    expected = torch.zeros(len(SIZES), max(SIZES), max(SIZES), SLOTS, CHANNELS)
    for first, second, slot, evidence in zip(
        matches.first, matches.second, matches.slot, matches.evidence, strict=True
    ):
        owner = int(puzzle[first])
        expected[owner, first - STARTS[owner], second - STARTS[owner], slot] = evidence
    assert torch.equal(features.values, expected.flatten(-2))


@pytest.mark.parametrize("dropped", [0.0, 0.6])
def test_both_forms_have_the_same_features_entry_by_entry(
    puzzle: torch.Tensor, matches: Matches, dropped: float
) -> None:
    edges = drop_edges(complete_edges(puzzle), dropped, torch.Generator().manual_seed(1))
    edges = edges[:, torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(2))]
    dense, graph = DenseGraph.of(puzzle, matches, SLOTS).features, edge_graph(edges, puzzle, matches, SLOTS)
    assert isinstance(dense, DenseFeatures)
    assert graph.evidence is not None
    listed = graph.evidence.features(graph.edges.shape[1])
    for (sender, receiver), features in zip(graph.edges.T.tolist(), listed, strict=True):
        owner = int(puzzle[sender])
        assert torch.equal(features, dense.values[owner, receiver - STARTS[owner], sender - STARTS[owner]])


def test_matches_of_pieces_that_the_edges_do_not_know_are_not_heard(matches: Matches) -> None:
    edges = complete_edges(torch.zeros(3, dtype=torch.long))
    graph = edge_graph(edges, torch.zeros(3, dtype=torch.long), matches, SLOTS)
    assert graph.evidence is not None
    known = matches[(matches.first < 3) & (matches.second < 3)]
    listed = graph.evidence.features(graph.edges.shape[1])
    assert listed.sum().item() == pytest.approx(known.evidence.sum().item(), rel=1e-5)


@pytest.mark.parametrize("virtual", [0, 3])
def test_virtual_nodes_are_joined_to_all_pieces_of_their_puzzle_and_to_no_others(
    puzzle: torch.Tensor, virtual: int
) -> None:
    count = len(puzzle)
    graph = edge_graph(torch.arange(count).expand(2, -1), puzzle, None, SLOTS, virtual)
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


def test_all_puzzles_get_the_same_virtual_nodes_behind_their_pieces(puzzle: torch.Tensor) -> None:
    rows, virtual = packed(len(puzzle)), torch.randn(2, 3, generator=torch.Generator().manual_seed(1))
    dense = DenseGraph.of(puzzle, None, SLOTS, 2)
    padded = dense.spread(rows, virtual)
    assert padded.shape == (len(SIZES), max(SIZES) + 2, 2, 3)
    assert torch.equal(padded[:, -2:], virtual[None, :, None].expand(len(SIZES), -1, 2, -1))
    assert dense.present[:, -2:].all()
    listed = edge_graph(complete_edges(puzzle), puzzle, None, SLOTS, 2)
    nodes = listed.spread(rows, virtual)
    assert torch.equal(nodes[len(puzzle) :, 0], virtual.repeat(len(SIZES), 1))
    for graph, spread in ((dense, padded), (listed, nodes)):
        assert torch.equal(graph.gather(spread), rows)


def test_edges_are_sorted_by_receiver_and_there_once(puzzle: torch.Tensor, matches: Matches) -> None:
    edges = torch.cat([complete_edges(puzzle), complete_edges(puzzle).flip(1)], 1)
    graph = edge_graph(edges, puzzle, matches, SLOTS)
    key = graph.edges[1] * 100 + graph.edges[0]
    assert (key.diff() > 0).all()
    assert graph.edges.shape[1] == sum(size**2 for size in SIZES)
    receivers = torch.arange(len(puzzle)).repeat_interleave(graph.incidence.starts.diff())
    assert torch.equal(receivers, graph.edges[1])
