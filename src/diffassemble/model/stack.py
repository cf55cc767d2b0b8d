"""Layers on layers: how the nodes of the graph come to agree."""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.graph import Graph
from diffassemble.model.config import ModelConfig
from diffassemble.model.unimp import GCN, UniMP


def _layer(config: ModelConfig, width_in: int, width_out: int, edge_width: int | None) -> UniMP | GCN:
    if config.layer == "gcn":
        return GCN(width_in, width_out)
    return UniMP(width_in, width_out, config.heads, edge_width)


class TransformerStack(nn.Module):
    """Normalised residual layers, each followed by a feed-forward part."""

    def __init__(self, config: ModelConfig, edge_width: int | None) -> None:
        super().__init__()
        width, depth = config.width, range(config.layers)
        self.layers = nn.ModuleList(_layer(config, width, width, edge_width) for _ in depth)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in depth)
        self.feed_forward = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in depth
        )
        self.last_norm = nn.LayerNorm(width)

    def forward(self, nodes: Float[Tensor, "*places k f"], graph: Graph) -> Float[Tensor, "*places k f"]:
        for layer, norm, feed_forward in zip(self.layers, self.norms, self.feed_forward, strict=True):
            nodes = nodes + layer.message_passing(norm(nodes), graph)  # type: ignore[operator]
            nodes = nodes + feed_forward(nodes)
        return self.last_norm(nodes)


class PublishedStack(nn.Module):
    """The paper's layers: width → hidden → … → width, one residual around them all."""

    def __init__(self, config: ModelConfig, edge_width: int | None) -> None:
        super().__init__()
        widths = [config.width, *[config.hidden] * (config.layers - 1), config.width]
        self.layers = nn.ModuleList(_layer(config, a, b, edge_width) for a, b in pairwise(widths))

    def forward(self, nodes: Float[Tensor, "*places k f"], graph: Graph) -> Float[Tensor, "*places k f"]:
        first, *others = self.layers
        inner = first.message_passing(nodes, graph)  # type: ignore[operator]
        for layer in others:
            inner = layer.message_passing(F.gelu(inner), graph)  # type: ignore[operator]
        return nodes + inner


STACKS = {"transformer": TransformerStack, "published": PublishedStack}
