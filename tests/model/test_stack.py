"""Layers on layers: both paths agree, and the published stack has the published sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diffassemble.network.config import ModelConfig
from diffassemble.network.graph.edges import complete_edges
from diffassemble.network.graph.layout import DenseGraph, edge_graph
from diffassemble.network.layers import STACKS

SETTINGS = {"width": 24, "hidden": 16, "layers": 3, "heads": 4}


@pytest.mark.parametrize("kind", STACKS)
@pytest.mark.parametrize("layer", ["unimp", "gcn"])
def test_dense_equals_listed(kind: Any, layer: Any) -> None:
    torch.manual_seed(0)
    stack = STACKS[kind](ModelConfig(**SETTINGS, stack=kind, layer=layer), None)
    puzzle = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2])
    nodes = torch.randn(8, 2, 24, generator=torch.Generator().manual_seed(0))
    dense, listed = DenseGraph.of(puzzle, None, 1), edge_graph(complete_edges(puzzle), puzzle, None, 1)
    torch.testing.assert_close(
        dense.gather(stack(dense.spread(nodes), dense)), stack(nodes, listed), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("kind", STACKS)
def test_pieces_hear_each_other_only_within_their_puzzle(kind: Any) -> None:
    torch.manual_seed(0)
    stack = STACKS[kind](ModelConfig(**SETTINGS, stack=kind), None)
    graph = DenseGraph.of(torch.tensor([0, 0, 1, 1]), None, 1)
    nodes = torch.randn(4, 1, 24, generator=torch.Generator().manual_seed(0), requires_grad=True)
    told = graph.gather(stack(graph.spread(nodes), graph))[0]
    heard = torch.autograd.grad(told.square().sum(), nodes)[0].flatten(1).norm(dim=1)
    assert (heard[:2] > 0).all()
    assert not heard[2:].any()


def test_the_published_stack_has_the_published_sizes() -> None:
    config = ModelConfig(width=1152, hidden=256, layers=4, heads=8, stack="published")
    stack = STACKS["published"](config, None)
    sizes = [(layer.in_channels, layer.heads * layer.out_channels) for layer in stack.layers]
    assert sizes == [(1152, 256), (256, 256), (256, 256), (256, 1152)]
    # Query, key, value and skip, each with a bias.
    expected = sum(4 * (wide + 1) * out for wide, out in sizes)
    assert sum(parameter.numel() for parameter in stack.parameters()) == expected
