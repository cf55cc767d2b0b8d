"""Message passing layers (section 3.2) and stacks of them.

Layers have two paths that give the same numbers: dense for complete graphs, sparse for edge lists. Dense nodes are
(b, w, k, f): puzzles, padded pieces, samples, features. Samples of one puzzle share its graph.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from diffassemble.network.config import ModelConfig
from diffassemble.network.encoders.image import TURNS
from diffassemble.network.graph.layout import DenseGraph, EdgeGraph, Graph, PairFeatures, common, summed
from diffassemble.network.sides import Neighbours, SideHeads

Heads = Float[Tensor, "b k h w c"]
"""c numbers of w nodes for each of h heads, in k samples of b graphs"""


class UniMP(nn.Module):
    """UniMP (Shi et al. 2021): multi-head attention over the neighbours, with PyG's parameters and numbers.

    PyG's own way (TransformerConv) gathers a copy of query, key and value for every edge; neither of the two here does.
    """

    def __init__(self, width_in: int, width_out: int, heads: int, edge_width: int | None) -> None:
        super().__init__()
        self.heads, self.out_channels = heads, width_out // heads
        self.lin_key = nn.Linear(width_in, width_out)
        self.lin_query = nn.Linear(width_in, width_out)
        self.lin_value = nn.Linear(width_in, width_out)
        self.lin_edge = nn.Linear(edge_width or 0, width_out, bias=False) if edge_width else None
        self.lin_skip = nn.Linear(width_in, width_out)

    def message_passing(self, nodes: Float[Tensor, "*places k f"], graph: Graph) -> Float[Tensor, "*places k g"]:
        """Nodes (b, w, k, f) on dense graphs, (n, k, f) on edge lists."""
        return self._sparse(nodes, graph) if isinstance(graph, EdgeGraph) else self._dense(nodes, graph)

    def _sparse(self, nodes: Float[Tensor, "n k f"], graph: EdgeGraph) -> Float[Tensor, "n k g"]:
        count, samples = nodes.shape[:2]

        def by_head(linear: torch.nn.Module) -> Float[Tensor, "n kh c"]:
            return linear(nodes).unflatten(-1, (self.heads, self.out_channels)).flatten(1, 2)

        query, key, value = by_head(self.lin_query), by_head(self.lin_key), by_head(self.lin_value)
        query = query / self.out_channels**0.5
        logits = common(query, key, graph.incidence)
        if graph.evidence is None:
            heard = summed(softmax(logits, graph.incidence.starts), value, graph.incidence)
        else:  # as in the dense path, W_e is applied to q and to Σ α e
            assert self.lin_edge is not None
            weight = self.lin_edge.weight.view(self.heads, self.out_channels, -1)
            asked = torch.einsum("nkhc,hce->nkhe", query.unflatten(1, (samples, -1)), weight).flatten(1, 2)
            attention = softmax(graph.evidence.ask(logits, asked), graph.incidence.starts)
            evidence = graph.evidence.hear(attention, count).unflatten(1, (samples, -1))
            told = torch.einsum("nkhe,hce->nkhc", evidence, weight).flatten(1, 2)
            heard = summed(attention, value, graph.incidence) + told
        return heard.unflatten(1, (samples, -1)).flatten(2).to(nodes.dtype) + self.lin_skip(nodes)

    def _dense(self, nodes: Float[Tensor, "b w k f"], graph: DenseGraph) -> Float[Tensor, "b w k g"]:
        def by_head(linear: torch.nn.Module) -> Heads:
            return linear(nodes).unflatten(-1, (self.heads, self.out_channels)).permute(0, 2, 3, 1, 4)

        query, key, value = by_head(self.lin_query), by_head(self.lin_key), by_head(self.lin_value)
        mask = graph.present[:, None, None, None, :]
        if graph.features is None:
            heard = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        else:
            heard = self._with_edges(query, key, value, mask, graph.features)
        return heard.permute(0, 3, 1, 2, 4).flatten(-2) + self.lin_skip(nodes)

    def _with_edges(
        self, query: Heads, key: Heads, value: Heads, mask: Bool[Tensor, "b 1 1 1 w"], features: PairFeatures
    ) -> Heads:
        """Keys and values gain W_e e_ij, without ever making a (w, w, f) tensor: W_e is applied to q and to Σ α e."""
        b, k, h, w, c = query.shape
        assert self.lin_edge is not None
        weight = self.lin_edge.weight.view(h, c, -1)
        query = query / c**0.5
        asked = torch.einsum("bkhwc,hce->bwkhe", query, weight).flatten(2, 3)
        logits = features.ask((query @ key.transpose(-1, -2)).flatten(1, 2), asked)
        if not mask.all():
            logits = logits.masked_fill(~mask[:, 0], -torch.inf)
        attention = logits.softmax(-1)
        evidence = features.hear(attention).view(b, w, k, h, -1)
        told = torch.einsum("bwkhe,hce->bkhwc", evidence, weight)
        return attention.unflatten(1, (k, h)) @ value + told


def softmax(logits: Float[Tensor, "e f"], starts: Int[Tensor, "m"]) -> Float[Tensor, "e f"]:
    """Softmax over the edges of each receiver, which are sorted by receiver and begin at `starts`."""
    counts = starts.diff()
    largest = torch.segment_reduce(logits.detach(), "max", offsets=starts)
    largest = torch.where(largest.isinf(), 0, largest)
    out = (logits - largest.repeat_interleave(counts, 0, output_size=len(logits))).exp()
    total = torch.segment_reduce(out, "sum", offsets=starts) + 1e-16
    return out / total.repeat_interleave(counts, 0, output_size=len(logits))


def _layer(config: ModelConfig, width_in: int, width_out: int, edge_width: int | None) -> nn.Module:
    if config.layer == "gcn":
        # PyG takes longer to load than most puzzles take to solve; only this ablation needs it.
        from diffassemble.network.gcn import GCN

        return GCN(width_in, width_out)
    return UniMP(width_in, width_out, config.heads, edge_width)


class TransformerStack(nn.Module):
    """Normalised residual layers, each followed by a feed-forward part.

    Where nodes are views of pieces, the views of a piece tell each other what they found, and hear from their likely
    neighbours.
    """

    def __init__(self, config: ModelConfig, edge_width: int | None) -> None:
        super().__init__()
        width, depth = config.width, range(config.layers)
        self.layers = nn.ModuleList(_layer(config, width, width, edge_width) for _ in depth)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in depth)
        self.side_heads = nn.ModuleList(SideHeads(width) for _ in depth if config.side_heads)
        exchanges = depth if config.nodes_each > 1 else ()
        self.exchanges = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), ViewMean(), nn.Linear(width, width)) for _ in exchanges
        )
        self.feed_forward = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in depth
        )
        self.last_norm = nn.LayerNorm(width)

    def forward(
        self, nodes: Float[Tensor, "*places k f"], graph: Graph, neighbours: Neighbours | None = None
    ) -> Float[Tensor, "*places k f"]:
        for number, (layer, norm, feed_forward) in enumerate(
            zip(self.layers, self.norms, self.feed_forward, strict=True)
        ):
            normal = norm(nodes)
            nodes = nodes + layer.message_passing(normal, graph)  # type: ignore[operator]
            if neighbours is not None:
                pieces = graph.pieces_of(normal)
                nodes = graph.add(nodes, self.side_heads[number](pieces, neighbours))
            if self.exchanges:
                nodes = graph.add(nodes, self.exchanges[number](graph.pieces_of(nodes)))
            nodes = nodes + feed_forward(nodes)
        return self.last_norm(nodes)


class ViewMean(nn.Module):
    """The mean over the views of a piece, for each of its views."""

    def forward(self, nodes: Float[Tensor, "*b w k f"]) -> Float[Tensor, "*b w k f"]:
        views = nodes.unflatten(-3, (-1, TURNS))
        return views.mean(-3, keepdim=True).expand_as(views).flatten(-4, -3)


class PublishedStack(nn.Module):
    """The paper's layers: width → hidden → … → width, one residual around them all."""

    def __init__(self, config: ModelConfig, edge_width: int | None) -> None:
        super().__init__()
        widths = [config.width, *[config.hidden] * (config.layers - 1), config.width]
        self.layers = nn.ModuleList(_layer(config, a, b, edge_width) for a, b in pairwise(widths))

    def forward(
        self, nodes: Float[Tensor, "*places k f"], graph: Graph, neighbours: None = None
    ) -> Float[Tensor, "*places k f"]:
        first, *others = self.layers
        inner = first.message_passing(nodes, graph)  # type: ignore[operator]
        for layer in others:
            inner = layer.message_passing(F.gelu(inner), graph)  # type: ignore[operator]
        return nodes + inner


STACKS = {"transformer": TransformerStack, "published": PublishedStack}
