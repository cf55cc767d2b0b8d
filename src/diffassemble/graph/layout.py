"""The two forms of a graph that message passing takes: dense for complete graphs, an edge list for all others."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch_geometric.utils import to_dense_batch

from diffassemble.graph.features import ListedFeatures, PairFeatures, pair_features
from diffassemble.puzzle import Mates


@dataclass(frozen=True)
class DenseGraph:
    """Complete graphs side by side, padded to the largest, with what receivers know of senders."""

    puzzle: Int[Tensor, "n"]
    present: Bool[Tensor, "b w"]
    features: PairFeatures | None

    def spread(self, packed: Float[Tensor, "n k f"]) -> Float[Tensor, "b w k f"]:
        """Packed rows into the padded layout."""
        return to_dense_batch(packed, self.puzzle, batch_size=len(self.present))[0]

    def gather(self, padded: Float[Tensor, "b w k f"]) -> Float[Tensor, "n k f"]:
        """Back from the padded layout."""
        return padded[self.present]

    @staticmethod
    def of(puzzle: Int[Tensor, "n"], mates: Mates | None, slots: int) -> DenseGraph:
        """Complete graphs with the mates' evidence as edge features."""
        counts = torch.bincount(puzzle)
        width = int(counts.max())
        present = torch.arange(width, device=puzzle.device) < counts[:, None]
        if mates is None:
            return DenseGraph(puzzle, present, None)
        place = torch.arange(len(puzzle), device=puzzle.device) - (torch.cumsum(counts, 0) - counts)[puzzle]
        first, second = place[mates.first], place[mates.second]
        listed = ListedFeatures(puzzle[mates.first], first, second, mates.slot, mates.evidence, slots)
        return DenseGraph(puzzle, present, pair_features(listed, len(counts), width))


@dataclass(frozen=True)
class EdgeGraph:
    """Any graph as PyG's edge list, with optional features per edge."""

    edges: Int[Tensor, "2 e"]
    features: Float[Tensor, "e c"] | None

    def spread(self, packed: Float[Tensor, "n k f"]) -> Float[Tensor, "n k f"]:
        return packed

    def gather(self, packed: Float[Tensor, "n k f"]) -> Float[Tensor, "n k f"]:
        return packed


Graph = DenseGraph | EdgeGraph


def edge_graph(edges: Int[Tensor, "2 e"], mates: Mates | None, slots: int) -> EdgeGraph:
    """An edge list with the mates' evidence on the edges that have some; mates without an edge are not heard."""
    if mates is None:
        return EdgeGraph(edges, None)
    count = int(torch.cat([edges.flatten(), mates.first, mates.second]).max()) + 1
    key = edges[1] * count + edges[0]
    order = key.argsort()
    wanted = mates.first * count + mates.second
    found = torch.searchsorted(key[order], wanted).clamp(max=len(key) - 1)
    row = order[found]
    heard = key[row] == wanted
    features = mates.evidence.new_zeros(edges.shape[1], slots, mates.evidence.shape[-1])
    features[row[heard], mates.slot[heard]] = mates.evidence[heard]
    return EdgeGraph(edges, features.flatten(-2))
