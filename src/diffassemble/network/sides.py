"""Attention heads that compare what pieces show along their sides, learned with the rest of the network.

A node here is a view, a piece in one of its four turns. One comparison, "does view l of that piece continue view k of
this one to the right?", serves all four directions, since what is below a view is to the right of it turned back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.network.encoders.image import PIECE_PIXELS, TURNS, four_views, piece_pixels
from diffassemble.network.graph import EdgeGraph, Graph, edge_products, edge_sums
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
