"""Which graph a network works on: complete, or sparse by its configuration or because the puzzle is large."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from diffassemble.compatibility.image import SIDES
from diffassemble.graph import DenseGraph, Graph, complete_edges, drop_edges, edge_graph, expander_edges, mate_edges
from diffassemble.model.batch import PuzzleBatch
from diffassemble.model.config import ModelConfig
from diffassemble.puzzle import Mates

SLOTS = SIDES * SIDES
# Where the configuration does not say how sparse a large graph is: neighbours in the expander, and mates of a side.
LARGE_DEGREE, LARGE_TOP = 16.0, 8


def wire(config: ModelConfig, batch: PuzzleBatch, generator: torch.Generator | None) -> Graph:
    """The graph of a batch: for learning if there is a generator, else for solving."""
    evidence = batch.mates if config.edge_features else None
    edges = _chosen_edges(config, batch.puzzle, batch.mates, generator)
    if edges is None:
        return DenseGraph.of(batch.puzzle, evidence, SLOTS, config.virtual_nodes)
    return edge_graph(edges, batch.puzzle, evidence, SLOTS, config.virtual_nodes)


def is_large(config: ModelConfig, puzzle: Int[Tensor, "n"]) -> bool:
    """Whether a puzzle of the batch is too large for a complete graph."""
    return int(torch.bincount(puzzle).max()) > config.complete_up_to


def _chosen_edges(
    config: ModelConfig, puzzle: Int[Tensor, "n"], mates: Mates | None, generator: torch.Generator | None
) -> Int[Tensor, "2 e"] | None:
    """The edges between pieces; none if the graph is complete."""
    large, thinned = is_large(config, puzzle), config.degree > 0 or config.dropped_edges > 0
    if not large and not (thinned and (generator is not None or config.sparse_solving)):
        return None
    # Solving draws the same graph for the same puzzle.
    generator = generator or torch.Generator().manual_seed(len(puzzle))
    if config.degree == 0 and not large:
        return drop_edges(complete_edges(puzzle), config.dropped_edges, generator)
    edges = [expander_edges(puzzle, config.degree or LARGE_DEGREE, generator)]
    top = config.top_k or (LARGE_TOP if large else 0)
    if mates is not None and top:
        edges.append(mate_edges(mates, top, SIDES))
    return torch.cat(edges, 1)
