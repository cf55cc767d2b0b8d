"""Attention heads that compare what pieces show along their sides, learnt with the rest of the network.

A node here is a piece in one of its four turns, a view. One comparison, "does view l of that piece continue view k of
this one to the right?", serves all four directions: below is to the right once both views are turned back by one.
So what is heard from below is what the views turned back hear from the right; turning a piece only shifts its views.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.network.encoders.image import PIECE_PIXELS, TURNS, four_views, piece_pixels
from diffassemble.network.graph.layout import EdgeGraph, Graph, Incidence, common, summed

_OWN = -1e4
"""logit of what is impossible, which half precision holds too"""


@dataclass(frozen=True)
class Sides:
    """Descriptors of the right and the left side of every view; their products are logits of being neighbours.

    `nobody` is the logit of there being no neighbour.
    """

    right: Float[Tensor, "v s"]
    left: Float[Tensor, "v s"]
    nobody: Float[Tensor, ""]

    def logits(self, puzzle: Int[Tensor, "v"]) -> list[Float[Tensor, "w w1"]]:
        """For each puzzle, of every view the logit of every other to lie on its right, then that of nobody."""
        counts, found = torch.bincount(puzzle).tolist(), []
        for right, left in zip(self.right.split(counts), self.left.split(counts), strict=True):
            score = _without_own(right @ left.T)
            found.append(torch.cat([score, self.nobody.expand(len(score), 1)], 1))
        return found


def _without_own(score: Float[Tensor, "*b w w"]) -> Float[Tensor, "*b w w"]:
    """No piece is its own neighbour, in whatever turn."""
    piece = torch.arange(score.shape[-1], device=score.device) // TURNS
    return score.masked_fill(piece[:, None] == piece, _OWN)


class SideDescriptors(nn.Module):
    """Describes the strips of pixels along the right and the left side of each view, given what the piece shows.

    Strips are `depth` lines of pixels wide; descriptors have `width` numbers.
    """

    def __init__(self, features: int, depth: int = 4, hidden: int = 192, width: int = 64) -> None:
        super().__init__()
        self.depth, seen = depth, PIECE_PIXELS * depth * 3 + features
        self.right = nn.Sequential(nn.Linear(seen, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.left = nn.Sequential(nn.Linear(seen, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.sharpness = nn.Parameter(torch.tensor(2.5))
        self.nobody = nn.Parameter(torch.tensor(2.0))

    def forward(self, pixels: Float[Tensor, "n 3 s s"], features: Float[Tensor, "v f"]) -> Sides:
        views = four_views((piece_pixels(pixels) - 0.5) / 0.25).flatten(0, 1)
        strips = views[..., -self.depth :].flip(-1), views[..., : self.depth]
        right, left = (
            F.normalize(describe(torch.cat([strip.flatten(1), features], 1)).float(), dim=-1)
            for describe, strip in zip((self.right, self.left), strips, strict=True)
        )
        return Sides(self.sharpness.exp() * right, left, self.nobody)


@dataclass(frozen=True)
class DenseNeighbours:
    """`weight[b, i, j]`: how surely view j of a complete graph lies to the right of view i."""

    weight: Float[Tensor, "b w w"]

    def hear(self, values: Float[Tensor, "b w c"]) -> Float[Tensor, "b w c"]:
        return self.weight.to(values.dtype) @ values


@dataclass(frozen=True)
class ListedNeighbours:
    """The same along the edges of a graph of `nodes` nodes, of which the views come first."""

    weight: Float[Tensor, "e"]
    incidence: Incidence
    nodes: int

    def hear(self, values: Float[Tensor, "v c"]) -> Float[Tensor, "v c"]:
        padded = F.pad(values, (0, 0, 0, self.nodes - len(values)))[:, None]
        return summed(self.weight[:, None], padded, self.incidence)[: len(values), 0].to(values.dtype)


Neighbours = DenseNeighbours | ListedNeighbours


def likely_neighbours(sides: Sides, graph: Graph) -> Neighbours:
    """Of every view, how surely each view that it hears lies on its right; the rest is nobody's."""
    if isinstance(graph, EdgeGraph):
        nodes = len(graph.incidence.starts) - 1
        right, left = (F.pad(part, (0, 0, 0, nodes - len(part)))[:, None] for part in (sides.right, sides.left))
        ends = torch.stack([graph.incidence.sender, graph.incidence.receiver])
        no_pair = (ends[0] // TURNS == ends[1] // TURNS) | (ends >= len(sides.right)).any(0)
        odds = (
            (common(right, left, graph.incidence)[:, 0] - sides.nobody).masked_fill(no_pair, _OWN).clamp(max=50).exp()
        )
        total = odds.new_ones(nodes).index_add(0, ends[1], odds)
        return ListedNeighbours(odds / total[ends[1]], graph.incidence, nodes)
    right, left = (graph.spread(part[:, None])[:, :, 0] for part in (sides.right, sides.left))
    absent = ~graph.present[:, None, : right.shape[1]]
    score = _without_own(right @ left.mT).masked_fill(absent, _OWN)
    score = torch.cat([score, sides.nobody.expand(*score.shape[:2], 1)], -1)
    return DenseNeighbours(score.softmax(-1)[..., :-1])


class SideHeads(nn.Module):
    """Messages of `each` numbers that every view gets from its likely neighbours in the four directions."""

    def __init__(self, width: int, each: int = 32) -> None:
        super().__init__()
        self.said = nn.Linear(width, TURNS * each)
        self.heard = nn.Linear(TURNS * each, width)

    def forward(self, views: Float[Tensor, "*b w k f"], neighbours: Neighbours) -> Float[Tensor, "*b w k f"]:
        said = self.said(views).unflatten(-1, (TURNS, -1))
        heard = neighbours.hear(_turned(said, -1).flatten(-3)).unflatten(-1, said.shape[-3:])
        return self.heard(_turned(heard, 1).flatten(-2))


def _turned(values: Float[Tensor, "*b w k 4 c"], by: int) -> Float[Tensor, "*b w k 4 c"]:
    """What is said in direction d moved on by `by` times d views."""
    pieces = values.unflatten(-4, (-1, TURNS))  # … pieces, views, k, directions, c
    return torch.stack([pieces[..., d, :].roll(by * d, -3) for d in range(TURNS)], -2).flatten(-5, -4)
