"""Both paths of message passing give PyG's numbers, and stacks of layers keep the symmetry of pieces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv, TransformerConv

from diffassemble.core import Matches, Poses
from diffassemble.network import graph as graphs
from diffassemble.network.graph import DenseGraph, EdgeGraph, complete_edges, drop_edges
from diffassemble.network.layers import UniMP
from diffassemble_research.parts import GCN

SLOTS, CHANNELS = 4, 3
EDGE_WIDTH = SLOTS * CHANNELS


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def random_matches(puzzle: Tensor) -> Matches:
    generator = torch.Generator().manual_seed(0)
    within = complete_edges(puzzle)
    first, second = within[:, torch.rand(within.shape[1], generator=generator) < 0.7]
    slot = torch.randint(0, SLOTS, first.shape, generator=generator)
    evidence = torch.rand(len(first), CHANNELS, generator=generator)
    return Matches(first, second, Poses.identity(len(first), 2), slot, evidence)


@pytest.fixture(params=[(5,), (3, 7, 1, 4)], ids=["one", "several"])
def puzzle(request: pytest.FixtureRequest) -> Tensor:
    sizes = torch.tensor(request.param)
    return torch.arange(len(sizes)).repeat_interleave(sizes)


def every_path(layer: UniMP | GCN, puzzle: Tensor, nodes: Tensor, matches: Matches | None) -> Iterator[Tensor]:
    """Complete graphs with dense and with listed features, and a list of edges."""
    for largest in (1000, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(graphs, "DEFAULT", graphs.LayoutConfig(largest))
            dense = DenseGraph.of(puzzle, matches, SLOTS)
        yield dense.gather(layer.message_passing(dense.spread(nodes), dense))
    listed = EdgeGraph.of(complete_edges(puzzle), puzzle, matches, SLOTS)
    yield listed.gather(layer.message_passing(listed.spread(nodes), listed))


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("kind", ["gcn", "unimp", "unimp with edges"])
def test_all_paths_hear_and_learn_alike(puzzle: Tensor, samples: int, kind: str) -> None:
    torch.manual_seed(0)
    edges = kind == "unimp with edges"
    layer = GCN(12, 16) if kind == "gcn" else UniMP(12, 16, heads=4, edge_width=EDGE_WIDTH if edges else None)
    nodes = random(len(puzzle), samples, 12).requires_grad_()
    first, *others = every_path(layer, puzzle, nodes, random_matches(puzzle) if edges else None)
    assert first.shape == (len(puzzle), samples, 16)
    wanted, aim = [nodes, *layer.parameters()], random(*first.shape, seed=1)
    slopes = torch.autograd.grad((first * aim).sum(), wanted)
    for other in others:
        torch.testing.assert_close(other, first, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(torch.autograd.grad((other * aim).sum(), wanted), slopes, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dropped", [0.0, 0.6])
def test_the_listed_path_gives_pygs_own_numbers(dropped: float) -> None:
    torch.manual_seed(0)
    layer, theirs = UniMP(12, 16, heads=4, edge_width=EDGE_WIDTH), TransformerConv(12, 4, heads=4, edge_dim=EDGE_WIDTH)
    theirs.load_state_dict(layer.state_dict())
    puzzle, nodes = torch.zeros(6, dtype=torch.long), random(6, 1, 12)
    matches = random_matches(puzzle)
    kept = drop_edges(complete_edges(puzzle), dropped, torch.Generator().manual_seed(1)).flip(1)
    graph, known = EdgeGraph.of(kept, puzzle, matches, SLOTS), DenseGraph.of(puzzle, matches, SLOTS).features
    sender, receiver = graph.edges
    expected = theirs(nodes[:, 0], graph.edges, known.values[0, receiver, sender])
    torch.testing.assert_close(layer.message_passing(nodes, graph)[:, 0], expected)
    convolution, their_convolution = GCN(12, 16), GCNConv(12, 16, add_self_loops=False)
    their_convolution.load_state_dict(convolution.state_dict())
    expected = their_convolution(nodes[:, 0], graph.edges)
    torch.testing.assert_close(convolution.message_passing(nodes, graph)[:, 0], expected)
