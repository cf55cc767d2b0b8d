"""Which graph a batch gets."""

from __future__ import annotations

import torch

from diffassemble.core import Puzzle
from diffassemble.network.batch import pack
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import is_large, wire
from diffassemble.network.graph.layout import DenseGraph, EdgeGraph
from diffassemble.squares.edge_model import find_matches


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_without_wishes_graphs_are_complete(puzzles: list[Puzzle]) -> None:
    batch = pack(puzzles, find_matches)
    for generator in (None, seeded()):
        graph = wire(ModelConfig(), batch, generator)
        assert isinstance(graph, DenseGraph)
        assert graph.virtual == 0


def test_large_puzzles_get_matches_and_an_expander_and_never_more(puzzles: list[Puzzle]) -> None:
    batch = pack(puzzles, find_matches)
    assert batch.matches is not None
    config = ModelConfig(complete_up_to=5, degree=2.0, top_k=1, virtual_nodes=2)
    assert is_large(config, batch.puzzle)
    graph = wire(config, batch, None)
    assert isinstance(graph, EdgeGraph)
    pieces = graph.edges[:, (graph.edges < 13).all(0)]
    assert torch.equal(batch.puzzle[pieces[0]], batch.puzzle[pieces[1]])
    best = batch.matches[batch.matches.weight.argsort(descending=True, stable=True)[:1]]
    found = set(zip(*pieces.tolist(), strict=True))
    assert (int(best.first), int(best.second)) in found
    assert (int(best.second), int(best.first)) in found
    assert torch.equal(graph.edges, wire(config, batch, None).edges)


def test_large_puzzles_are_sparse_whatever_the_configuration_says(puzzles: list[Puzzle]) -> None:
    batch = pack(puzzles)
    assert isinstance(wire(ModelConfig(complete_up_to=5, dropped_edges=0.5), batch, None), EdgeGraph)
    assert isinstance(wire(ModelConfig(complete_up_to=6), batch, None), DenseGraph)
    dropped = wire(ModelConfig(dropped_edges=0.5, sparse_solving=True), batch, None)
    assert isinstance(dropped, EdgeGraph)
    assert dropped.edges.shape[1] < 6**2 + 6**2 + 1
