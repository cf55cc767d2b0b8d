"""The two forms of a graph that message passing takes: dense for complete graphs, an edge list for all others."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch_geometric.utils import to_dense_batch

from diffassemble.graph.edges import sorted_edges, virtual_edges
from diffassemble.graph.evidence import EdgeEvidence, find_evidence
from diffassemble.graph.features import ListedFeatures, PairFeatures, pair_features
from diffassemble.graph.products import Incidence
from diffassemble.puzzle import Mates


@dataclass(frozen=True)
class DenseGraph:
    """Complete graphs side by side, padded to the largest, with what receivers know of senders.

    The last `virtual` nodes of each graph are no pieces.
    """

    puzzle: Int[Tensor, "n"]
    present: Bool[Tensor, "b w"]
    features: PairFeatures | None
    virtual: int = 0

    def spread(
        self, packed: Float[Tensor, "n k f"], virtual: Float[Tensor, "v f"] | None = None
    ) -> Float[Tensor, "b w k f"]:
        """Packed rows into the padded layout, and the same virtual nodes behind those of every graph."""
        padded = to_dense_batch(packed, self.puzzle, batch_size=len(self.present))[0]
        if virtual is None:
            return padded
        return torch.cat([padded, virtual[None, :, None].expand(len(padded), -1, packed.shape[1], -1)], 1)

    def gather(self, padded: Float[Tensor, "b w k f"]) -> Float[Tensor, "n k f"]:
        """Back from the padded layout."""
        width = self.present.shape[1] - self.virtual
        return padded[:, :width][self.present[:, :width]]

    @staticmethod
    def of(puzzle: Int[Tensor, "n"], mates: Mates | None, slots: int, virtual: int = 0) -> DenseGraph:
        """Complete graphs with the mates' evidence as edge features."""
        counts = torch.bincount(puzzle)
        width = int(counts.max())
        present = torch.arange(width, device=puzzle.device) < counts[:, None]
        present = torch.cat([present, present.new_ones(len(counts), virtual)], 1)
        if mates is None:
            return DenseGraph(puzzle, present, None, virtual)
        place = torch.arange(len(puzzle), device=puzzle.device) - (torch.cumsum(counts, 0) - counts)[puzzle]
        first, second = place[mates.first], place[mates.second]
        listed = ListedFeatures(puzzle[mates.first], first, second, mates.slot, mates.evidence, slots)
        return DenseGraph(puzzle, present, pair_features(listed, len(counts), width + virtual), virtual)


@dataclass(frozen=True)
class EdgeGraph:
    """Any graph as a list of edges (sender, receiver), sorted by receiver, with what is known along some of them.

    Nodes are the n pieces, and behind them the virtual nodes of the first puzzle, of the second, and so on.
    """

    edges: Int[Tensor, "2 e"]
    incidence: Incidence
    evidence: EdgeEvidence | None
    pieces: int

    def spread(
        self, packed: Float[Tensor, "n k f"], virtual: Float[Tensor, "v f"] | None = None
    ) -> Float[Tensor, "m k f"]:
        """The pieces, and behind them the same virtual nodes for every puzzle."""
        if virtual is None:
            return packed
        times = (len(self.incidence.starts) - 1 - self.pieces) // len(virtual)
        return torch.cat([packed, virtual.repeat(times, 1)[:, None].expand(-1, packed.shape[1], -1)])

    def gather(self, nodes: Float[Tensor, "m k f"]) -> Float[Tensor, "n k f"]:
        """The pieces alone."""
        return nodes[: self.pieces]


Graph = DenseGraph | EdgeGraph


def edge_graph(
    edges: Int[Tensor, "2 e"], puzzle: Int[Tensor, "n"], mates: Mates | None, slots: int, virtual: int = 0
) -> EdgeGraph:
    """A graph of these edges, with the mates' evidence on those that have some; mates without an edge are not heard.

    Virtual nodes hear all pieces of their puzzle and each other, and are heard by them.
    """
    count = len(puzzle) + virtual * (int(puzzle[-1]) + 1)
    edges = sorted_edges(torch.cat([edges, virtual_edges(puzzle, virtual)], 1), count)
    evidence = None if mates is None else find_evidence(edges, count, mates, slots)
    return EdgeGraph(edges, Incidence.of(edges, count), evidence, len(puzzle))
