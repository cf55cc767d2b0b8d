"""Message passing layers (section 3.2), and attention heads that compare what pieces show along their sides.

Layers have two paths that give the same numbers: dense for complete graphs, sparse for edge lists. Dense nodes are
(b, w, k, f): puzzles, padded pieces, samples, features. For side heads a node is a view, a piece in one of its four
turns. One comparison, "does view l of that piece continue view k of this one to the right?", serves all four
directions, since what is below a view is to the right of it turned back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.extensions import Registry
from diffassemble.network.config import ModelConfig
from diffassemble.network.encoders.image import PIECE_PIXELS, TURNS, four_views, piece_pixels
from diffassemble.network.graph import DenseGraph, EdgeGraph, Graph, edge_products, edge_sums
from diffassemble.network.pretrained import stored_as

_OWN = -1e4
"""logit of what is impossible, which half precision holds too"""


@dataclass(frozen=True)
class Sides:
    """Descriptors of the right and left side of every view; their products are logits of being neighbours."""

    right: Float[Tensor, "v s"]
    left: Float[Tensor, "v s"]
    no_neighbour: Float[Tensor, ""]

    def logits(self, puzzle: Int[Tensor, "v"]) -> list[Float[Tensor, "w w1"]]:
        """For each puzzle, of every view the logit of every other to be on its right, then that of no neighbour."""
        counts, found = torch.bincount(puzzle).tolist(), []
        for right, left in zip(self.right.split(counts), self.left.split(counts), strict=True):
            score = _without_own(right @ left.T)
            found.append(torch.cat([score, self.no_neighbour.expand(len(score), 1)], 1))
        return found


def _without_own(score: Float[Tensor, "*b w w"]) -> Float[Tensor, "*b w w"]:
    """No piece is its own neighbour, in whatever turn."""
    piece = torch.arange(score.shape[-1], device=score.device) // TURNS
    return score.masked_fill(piece[:, None] == piece, _OWN)


class SideDescriptors(nn.Module):
    """Describes strips of `depth` lines of pixels along the right and left side of each view, given its features."""

    def __init__(self, features: int, depth: int = 4, hidden: int = 192, width: int = 64) -> None:
        super().__init__()
        self.depth, inputs = depth, PIECE_PIXELS * depth * 3 + features
        self.right = nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.left = nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.sharpness = nn.Parameter(torch.tensor(2.5))
        self.no_neighbour = nn.Parameter(torch.tensor(2.0))
        stored_as(self, no_neighbour="nobody")

    def forward(self, pixels: Float[Tensor, "n 3 s s"], features: Float[Tensor, "v f"]) -> Sides:
        views = four_views((piece_pixels(pixels) - 0.5) / 0.25).flatten(0, 1)
        strips = views[..., -self.depth :].flip(-1), views[..., : self.depth]
        right, left = (
            F.normalize(describe(torch.cat([strip.flatten(1), features], 1)).float(), dim=-1)
            for describe, strip in zip((self.right, self.left), strips, strict=True)
        )
        return Sides(self.sharpness.exp() * right, left, self.no_neighbour)


Neighbours = Callable[[Float[Tensor, "*b v c"]], Float[Tensor, "*b v c"]]
"""gives every view the expected values of its right neighbour"""


def likely_neighbours(sides: Sides, graph: Graph) -> Neighbours:
    """Weights each of a view's senders by the probability that it is on its right; the rest is that of no neighbour."""
    if isinstance(graph, EdgeGraph):
        ends, views = graph.incidence, len(sides.right)
        nodes = len(ends.starts) - 1
        right, left = (F.pad(part, (0, 0, 0, nodes - views))[:, None] for part in (sides.right, sides.left))
        same = ends.sender // TURNS == ends.receiver // TURNS
        no_pair = same | (torch.maximum(ends.sender, ends.receiver) >= views)
        logits = (edge_products(right, left, ends)[:, 0] - sides.no_neighbour).masked_fill(no_pair, _OWN)
        odds = logits.clamp(max=50).exp()
        weight = odds / odds.new_ones(nodes).index_add(0, ends.receiver, odds)[ends.receiver]

        def along_edges(values: Float[Tensor, "v c"]) -> Float[Tensor, "v c"]:
            padded = F.pad(values, (0, 0, 0, nodes - views))[:, None]
            return edge_sums(weight[:, None], padded, ends)[:views, 0].to(values.dtype)

        return along_edges
    right, left = (graph.spread(part[:, None])[:, :, 0] for part in (sides.right, sides.left))
    absent = ~graph.present[:, None, : right.shape[1]]
    score = _without_own(right @ left.mT).masked_fill(absent, _OWN)
    score = torch.cat([score, sides.no_neighbour.expand(*score.shape[:2], 1)], -1)
    dense = score.softmax(-1)[..., :-1]
    return lambda values: dense.to(values.dtype) @ values


class SideHeads(nn.Module):
    """Messages of `each` numbers that every view receives from its likely neighbours in the four directions."""

    def __init__(self, width: int, each: int = 32) -> None:
        super().__init__()
        self.send = nn.Linear(width, TURNS * each)
        self.receive = nn.Linear(TURNS * each, width)
        stored_as(self, send="said", receive="heard")

    def forward(self, views: Float[Tensor, "*b w k f"], neighbours: Neighbours) -> Float[Tensor, "*b w k f"]:
        sent = self.send(views).unflatten(-1, (TURNS, -1))
        received = neighbours(_turned(sent, -1).flatten(-3)).unflatten(-1, sent.shape[-3:])
        return self.receive(_turned(received, 1).flatten(-2))


def _turned(values: Float[Tensor, "*b w k 4 c"], by: int) -> Float[Tensor, "*b w k 4 c"]:
    """Messages of direction d moved on by `by` times d views."""
    pieces = values.unflatten(-4, (-1, TURNS))  # … pieces, views, k, directions, c
    return torch.stack([pieces[..., d, :].roll(by * d, -3) for d in range(TURNS)], -2).flatten(-5, -4)


class UniMP(nn.Module):
    """UniMP (Shi et al. 2021), multi-head attention over the neighbours j of node i, with PyG's parameters:

        x'_i = W_s x_i + Σ_j α_ij (W_v x_j + W_e e_ij),   α_ij = softmax_j (W_q x_i)ᵀ (W_k x_j + W_e e_ij) / √c

    PyG's TransformerConv gathers query, key and value for every edge. Here W_e is applied to queries and to Σ α e, so
    that no tensor of edges × features is made.
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

    def _by_head(self, nodes: Float[Tensor, "*places k f"]) -> tuple[Float[Tensor, "*places k h c"], ...]:
        linear = self.lin_query, self.lin_key, self.lin_value
        return tuple(one(nodes).unflatten(-1, (self.heads, self.out_channels)) for one in linear)

    @property
    def _edge_weight(self) -> Float[Tensor, "h c e"]:
        assert self.lin_edge is not None
        return self.lin_edge.weight.view(self.heads, self.out_channels, -1)

    def _sparse(self, nodes: Float[Tensor, "n k f"], graph: EdgeGraph) -> Float[Tensor, "n k g"]:
        samples = nodes.shape[1]
        query, key, value = (part.flatten(1, 2) for part in self._by_head(nodes))
        query = query / self.out_channels**0.5
        logits = edge_products(query, key, graph.incidence)
        if graph.features is None:
            messages = edge_sums(softmax(logits, graph.incidence.starts), value, graph.incidence)
        else:
            edge_query = torch.einsum("nkhc,hce->nkhe", query.unflatten(1, (samples, -1)), self._edge_weight)
            logits = graph.features.biased(logits, edge_query.flatten(1, 2))
            attention = softmax(logits, graph.incidence.starts)
            features = graph.features.received(attention).unflatten(1, (samples, -1))
            along_edges = torch.einsum("nkhe,hce->nkhc", features, self._edge_weight).flatten(1, 2)
            messages = edge_sums(attention, value, graph.incidence) + along_edges
        return messages.unflatten(1, (samples, -1)).flatten(2).to(nodes.dtype) + self.lin_skip(nodes)

    def _dense(self, nodes: Float[Tensor, "b w k f"], graph: DenseGraph) -> Float[Tensor, "b w k g"]:
        query, key, value = (part.permute(0, 2, 3, 1, 4) for part in self._by_head(nodes))  # b k h w c
        mask = graph.present[:, None, None, None, :]
        if graph.features is None:
            messages = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        else:
            query = query / self.out_channels**0.5
            edge_query = torch.einsum("bkhwc,hce->bwkhe", query, self._edge_weight).flatten(2, 3)
            logits = graph.features.biased((query @ key.transpose(-1, -2)).flatten(1, 2), edge_query)
            if not mask.all():
                logits = logits.masked_fill(~mask[:, 0], -torch.inf)
            attention = logits.softmax(-1)
            features = graph.features.received(attention).unflatten(2, query.shape[1:3])
            along_edges = torch.einsum("bwkhe,hce->bkhwc", features, self._edge_weight)
            messages = attention.unflatten(1, query.shape[1:3]) @ value + along_edges
        return messages.permute(0, 3, 1, 2, 4).flatten(-2) + self.lin_skip(nodes)


def softmax(logits: Float[Tensor, "e f"], starts: Int[Tensor, "m"]) -> Float[Tensor, "e f"]:
    """Softmax over the edges of each receiver, which are sorted by receiver and begin at `starts`."""
    counts = starts.diff()
    largest = torch.segment_reduce(logits.detach(), "max", offsets=starts)
    largest = torch.where(largest.isinf(), 0, largest)
    out = (logits - largest.repeat_interleave(counts, 0, output_size=len(logits))).exp()
    total = torch.segment_reduce(out, "sum", offsets=starts) + 1e-16
    return out / total.repeat_interleave(counts, 0, output_size=len(logits))


LAYERS: Mapping[str, type[nn.Module]] = Registry("parts", {"unimp": UniMP})


class TransformerStack(nn.Module):
    """Normalised residual layers, each followed by a feed-forward part.

    Where nodes are views of pieces, each layer also adds the mean over the views of a piece, and messages from likely
    neighbours.
    """

    def __init__(self, config: ModelConfig, edge_width: int | None) -> None:
        super().__init__()
        width, depth, layer = config.width, range(config.layers), LAYERS[config.layer]
        self.layers = nn.ModuleList(layer(width, width, config.heads, edge_width) for _ in depth)
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
        parts = zip(self.layers, self.norms, self.feed_forward, strict=True)
        for number, (layer, norm, feed_forward) in enumerate(parts):
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


STACKS: Mapping[str, type[nn.Module]] = Registry("parts", {"transformer": TransformerStack})
