"""The paper's ablation: graph convolution instead of attention."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from torch_geometric.nn import GCNConv

from diffassemble.network.graph.layout import EdgeGraph, Graph


class GCN(GCNConv):
    """The paper's ablation: a plain graph convolution with an all-ones adjacency, so every piece hears the mean."""

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__(width_in, width_out, add_self_loops=False)
        # The library writes a module for this class into the temporary folder, loads it, and leaves it there.
        for name, module in tuple(sys.modules.items()):
            if name.startswith(f"{__name__}_{type(self).__name__}_") and module.__file__:
                Path(module.__file__).unlink(missing_ok=True)

    def message_passing(self, nodes: Float[Tensor, "*places k f"], graph: Graph) -> Float[Tensor, "*places k g"]:
        """Nodes (b, w, k, f) on dense graphs, (n, k, f) on edge lists."""
        if isinstance(graph, EdgeGraph):
            samples = nodes.unbind(1)
            return torch.stack([super(GCN, self).forward(x, graph.edges) for x in samples], 1)
        present = graph.present[:, :, None, None]
        mean = (self.lin(nodes) * present).sum(1, keepdim=True) / present.sum(1, keepdim=True)
        return (mean + self.bias).expand(-1, nodes.shape[1], -1, -1)
