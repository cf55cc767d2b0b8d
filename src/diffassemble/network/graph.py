"""Graphs of nodes for message passing: complete graphs padded side by side, or edge lists (sender, receiver).

Edge lists are in PyG's form, row 0 the sender, row 1 the receiver, each node also with itself. Large puzzles are solved
on expanders: random regular graphs, on which messages mix fast. In shapes g is samples times heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.core import Matches

Nodes = Float[Tensor, "n k f"]
Rows = Float[Tensor, "n g c"]
Edges = Int[Tensor, "2 e"]


@dataclass(frozen=True)
class LayoutConfig:
    """How features of pairs are stored."""

    listed_above: int = 250
    """nodes from which on a list of pairs is faster than products with a mostly empty tensor"""


DEFAULT = LayoutConfig()


def complete_edges(puzzle: Int[Tensor, "n"]) -> Edges:
    """Every piece with every piece of the same puzzle; `puzzle` is sorted."""
    return (puzzle[:, None] == puzzle).nonzero().T.flip(0)


def drop_edges(edges: Edges, share: float, generator: torch.Generator) -> Int[Tensor, "2 kept"]:
    """Lose a random `share` of the edges between different pieces: the paper's comparison to expanders."""
    kept = torch.rand(edges.shape[1], generator=generator, device=generator.device).to(edges.device) >= share
    return edges[:, kept | (edges[0] == edges[1])]


def lifted(edges: Edges, each: int) -> Int[Tensor, "2 f"]:
    """Edges between pieces as edges between all their nodes; piece i has the nodes from each · i on."""
    number = torch.arange(each, device=edges.device)
    pair = torch.stack([number.repeat_interleave(each), number.repeat(each)])
    return (each * edges[..., None] + pair[:, None]).flatten(1)


def virtual_edges(puzzle: Int[Tensor, "n"], virtual: int) -> Edges:
    """Edges of `virtual` nodes a puzzle, numbered after all n pieces, with their puzzle's pieces and each other."""
    pieces, puzzles = torch.arange(len(puzzle), device=puzzle.device), int(puzzle[-1]) + 1
    number = torch.arange(virtual, device=puzzle.device)
    own = len(puzzle) + puzzle[:, None] * virtual + number
    piece = pieces[:, None].expand_as(own)
    first = len(puzzle) + virtual * torch.arange(puzzles, device=puzzle.device)[:, None, None]
    among = (first + number[:, None]).expand(-1, -1, virtual), (first + number).expand(-1, virtual, -1)
    sender = torch.cat([own.flatten(), piece.flatten(), among[0].flatten()])
    receiver = torch.cat([piece.flatten(), own.flatten(), among[1].flatten()])
    return torch.stack([sender, receiver])


def match_edges(matches: Matches, top: int, slots: int) -> Edges:
    """Every piece with the `top` most probable matches of each of its sides, both ways; pairs may come twice."""
    sides = math.isqrt(slots)
    side = matches.first * sides + matches.slot // sides
    order = matches.probability.argsort(descending=True, stable=True)
    order = order[side[order].argsort(stable=True)]
    counts = torch.bincount(side)
    start = torch.cumsum(counts, 0) - counts
    rank = torch.arange(len(order), device=order.device) - start[side[order]]
    chosen = order[rank < top]
    pairs = torch.stack([matches.second[chosen], matches.first[chosen]])
    return torch.cat([pairs, pairs.flip(0)], 1)


def expander_edges(puzzle: Int[Tensor, "n"], degree: float, generator: torch.Generator) -> Edges:
    """An expander within each puzzle, complete if small, and every piece with itself; `puzzle` is sorted."""
    parts, start = [], 0
    for count in torch.bincount(puzzle).tolist():
        neighbours = neighbours_of(degree, count)
        if neighbours == count - 1:
            own = complete_edges(torch.zeros(count, dtype=torch.long, device="cpu"))
        else:
            loops = torch.arange(count, device="cpu").expand(2, -1)
            own = torch.cat([regular_expander(count, neighbours, generator), loops], 1)
        parts.append(own + start)
        start += count
    return torch.cat(parts, 1).to(puzzle.device)


def neighbours_of(degree: float, count: int) -> int:
    """How many neighbours each piece gets, at least two: `degree` is a share of the others up to 1, a number above."""
    wanted = max(2, round(degree * (count - 1)) if degree <= 1 else int(degree))
    return min(wanted + count * wanted % 2, count - 1)


def regular_expander(count: int, degree: int, generator: torch.Generator) -> Edges:
    """A connected random graph in which every node has `degree` different neighbours; each edge both ways."""
    import networkx  # takes long to import, and only large puzzles need it

    random = Random(int(torch.randint(2**62, (), generator=generator, device=generator.device)))
    graph = networkx.empty_graph(count)
    while not networkx.is_connected(graph):
        graph = networkx.random_regular_graph(min(degree, count - 1 - degree), count, random)
        # A graph of more than half of all pairs is the complement of a sparse one.
        graph = networkx.complement(graph) if 2 * degree > count - 1 else graph
    pairs = torch.tensor(list(graph.edges), device="cpu").T
    return torch.cat([pairs, pairs.flip(0)], 1)


@dataclass(frozen=True)
class Incidence:
    """Edges listed by receiver, and the same edges listed by sender.

    The edges of receiver i are those from `starts[i]` to `starts[i + 1]`; `back` takes values per edge to the order
    by sender.
    """

    starts: Int[Tensor, "n_and_one"]
    sender: Int[Tensor, "e"]
    receiver: Int[Tensor, "e"]
    back_starts: Int[Tensor, "n_and_one"]
    back: Int[Tensor, "e"]

    @staticmethod
    def of(edges: Edges, count: int) -> Incidence:
        """Edges among `count` nodes, sorted by receiver and then by sender."""
        starts = [F.pad(torch.bincount(ends, minlength=count).cumsum(0), (1, 0)) for ends in edges]
        return Incidence(starts[1], edges[0], edges[1], starts[0], edges[0].argsort(stable=True))

    def matrix(self, values: Float[Tensor, "e"], transposed: bool = False) -> Tensor:
        """A sparse matrix, receivers down, senders across; or its transpose."""
        parts = self.starts, self.sender, values
        if transposed:
            parts = self.back_starts, self.receiver[self.back], values[self.back]
        shape = (len(self.starts) - 1,) * 2
        return torch.sparse_csr_tensor(*parts, shape, device=values.device, check_invariants=False)


def _by_attention(values: Float[Tensor, "n g c"]) -> Float[Tensor, "g n c"]:
    return values.transpose(0, 1).contiguous()


def _products(one: Tensor, other: Tensor, incidence: Incidence) -> Float[Tensor, "e g"]:
    pattern = incidence.matrix(one.new_zeros(len(incidence.sender)))
    parts = zip(_by_attention(one), _by_attention(other), strict=True)
    return torch.stack([torch.sparse.sampled_addmm(pattern, a, b.T, beta=0).values() for a, b in parts], 1)


def _sums(weights: Tensor, values: Tensor, incidence: Incidence, transposed: bool) -> Rows:
    parts = zip(weights.T.contiguous(), _by_attention(values), strict=True)
    return torch.stack([incidence.matrix(weight, transposed) @ part for weight, part in parts], 1)


class _EdgeProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, one: Tensor, other: Tensor, incidence: Incidence) -> Tensor:
        ctx.save_for_backward(one, other)
        ctx.incidence = incidence
        return _products(one, other, incidence)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        one, other = ctx.saved_tensors
        forth = _sums(gradients[0], other, ctx.incidence, transposed=False)
        return forth, _sums(gradients[0], one, ctx.incidence, transposed=True), None


class _EdgeSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, values: Tensor, incidence: Incidence) -> Tensor:
        ctx.save_for_backward(weights, values)
        ctx.incidence = incidence
        return _sums(weights, values, incidence, transposed=False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        weights, values = ctx.saved_tensors
        products = _products(gradients[0], values, ctx.incidence)
        return products, _sums(weights, gradients[0], ctx.incidence, transposed=True), None


def edge_products(receivers: Rows, senders: Rows, incidence: Incidence) -> Float[Tensor, "e g"]:
    """The scalar product of the values at the two ends of every edge."""
    with torch.autocast(receivers.device.type, enabled=False):
        return _EdgeProducts.apply(receivers.float(), senders.float(), incidence)


def edge_sums(weights: Float[Tensor, "e g"], senders: Rows, incidence: Incidence) -> Rows:
    """For every receiver the sum over its senders, weighted edge by edge."""
    with torch.autocast(senders.device.type, enabled=False):
        return _EdgeSums.apply(weights.float(), senders.float(), incidence)


@dataclass(frozen=True)
class DenseFeatures:
    """`values[b, i, j]` are the features of the pair of receiver i and sender j; fastest for small graphs."""

    values: Float[Tensor, "b w w e"]

    def biased(self, logits: Float[Tensor, "b g w w"], query: Float[Tensor, "b w g e"]) -> Float[Tensor, "b g w w"]:
        """Logits (receiver, sender) plus the products of features with each receiver's query."""
        return logits + (query @ self.values.transpose(-1, -2)).transpose(1, 2)

    def received(self, attention: Float[Tensor, "b g w w"]) -> Float[Tensor, "b w g e"]:
        """Σ_j α_ij e_ij for every receiver i."""
        return attention.transpose(1, 2) @ self.values


@dataclass(frozen=True)
class ListedFeatures:
    """The same for the pairs that have features alone: one row for each kind (`slot`) of contact.

    `pair` indexes the pairs in logits whose last axis is g: (graph, receiver, sender), or (edge,) of an edge list.
    `row` is the receiver, counted over all graphs; `shape` is (b, w), or (n,) for edge lists.
    """

    pair: tuple[Int[Tensor, "m"], ...]
    row: Int[Tensor, "m"]
    slot: Int[Tensor, "m"]
    values: Float[Tensor, "m c"]
    slots: int
    shape: tuple[int, ...]

    def biased(self, logits: Float[Tensor, "*pairs"], query: Float[Tensor, "*n g s"]) -> Float[Tensor, "*pairs"]:
        """As for dense features; changes the given logits, so that no second tensor of that size is made."""
        wanted = query.flatten(0, -3).unflatten(-1, (self.slots, -1))[self.row, :, self.slot]
        products = (wanted * self.values[:, None]).sum(-1).to(logits.dtype)
        self._by_pair(logits).index_put_(self.pair, products, accumulate=True)
        return logits

    def received(self, attention: Float[Tensor, "*pairs"]) -> Float[Tensor, "*n g s"]:
        """Σ_j α_ij e_ij for every receiver i."""
        given = self._by_pair(attention)[self.pair][..., None] * self.values[:, None].to(attention.dtype)
        rows = math.prod(self.shape) * self.slots
        sums = attention.new_zeros(rows, *given.shape[1:]).index_add(0, self.row * self.slots + self.slot, given)
        return sums.unflatten(0, (-1, self.slots)).transpose(1, 2).flatten(2).unflatten(0, self.shape)

    @staticmethod
    def _by_pair(values: Tensor) -> Tensor:
        return values.permute(0, 2, 3, 1) if values.dim() == 4 else values


@dataclass(frozen=True)
class DenseGraph:
    """Complete graphs side by side, padded to the largest; the last `virtual` nodes of each are no pieces."""

    puzzle: Int[Tensor, "n"]
    present: Bool[Tensor, "b w"]
    features: DenseFeatures | ListedFeatures | None
    virtual: int = 0

    @property
    def width(self) -> int:
        """Nodes of the largest graph that are pieces."""
        return self.present.shape[1] - self.virtual

    def spread(self, packed: Nodes, virtual: Float[Tensor, "v f"] | None = None) -> Float[Tensor, "b w k f"]:
        """Packed rows in the padded layout, with the same virtual nodes after those of every graph."""
        padded = packed.new_zeros(len(self.present), self.width, *packed.shape[1:])
        padded[self.present[:, : self.width]] = packed
        if virtual is None:
            return padded
        return torch.cat([padded, virtual[None, :, None].expand(len(padded), -1, packed.shape[1], -1)], 1)

    def gather(self, padded: Float[Tensor, "b w k f"]) -> Nodes:
        """Back from the padded layout, without virtual nodes."""
        return self.pieces_of(padded)[self.present[:, : self.width]]

    def pieces_of(self, padded: Float[Tensor, "b w k f"]) -> Float[Tensor, "b p k f"]:
        """All nodes but the virtual ones, still padded."""
        return padded[:, : self.width]

    def add(self, padded: Float[Tensor, "b w k f"], more: Float[Tensor, "b p k f"]) -> Float[Tensor, "b w k f"]:
        """The nodes with something added to those that are pieces."""
        return padded + (more if self.virtual == 0 else F.pad(more, (0, 0, 0, 0, 0, self.virtual)))

    @staticmethod
    def of(puzzle: Int[Tensor, "n"], matches: Matches | None, slots: int, virtual: int = 0) -> DenseGraph:
        """Complete graphs with the matches' evidence as edge features, in the faster of the two forms."""
        counts = torch.bincount(puzzle)
        width = int(counts.max())
        present = torch.arange(width, device=puzzle.device) < counts[:, None]
        present = torch.cat([present, present.new_ones(len(counts), virtual)], 1)
        if matches is None:
            return DenseGraph(puzzle, present, None, virtual)
        place = torch.arange(len(puzzle), device=puzzle.device) - (torch.cumsum(counts, 0) - counts)[puzzle]
        pair, (b, w) = (puzzle[matches.first], place[matches.first], place[matches.second]), present.shape
        features: DenseFeatures | ListedFeatures
        if w > DEFAULT.listed_above:
            row = pair[0] * w + pair[1]
            features = ListedFeatures(pair, row, matches.slot, matches.evidence, slots, (b, w))
        else:
            values = matches.evidence.new_zeros(b, w, w, slots, matches.evidence.shape[-1])
            values[(*pair, matches.slot)] = matches.evidence
            features = DenseFeatures(values.flatten(-2))
        return DenseGraph(puzzle, present, features, virtual)


@dataclass(frozen=True)
class EdgeGraph:
    """A graph as a list of edges (sender, receiver), sorted by receiver, with the features of some of them.

    Nodes are the n pieces, and after them the virtual nodes of the first puzzle, of the second, and so on.
    """

    edges: Edges
    incidence: Incidence
    features: ListedFeatures | None
    pieces: int

    @staticmethod
    def of(edges: Edges, puzzle: Int[Tensor, "n"], matches: Matches | None, slots: int, virtual: int = 0) -> EdgeGraph:
        """Each of these edges once, and those of virtual nodes, with the evidence of the matches along them."""
        count = len(puzzle) + virtual * (int(puzzle[-1]) + 1)
        sender, receiver = torch.cat([edges, virtual_edges(puzzle, virtual)], 1)
        key = (receiver * count + sender).unique()
        edges = torch.stack([key % count, key // count])
        features = None
        if matches is not None:
            wanted = matches.first * count + matches.second
            edge = torch.searchsorted(key, wanted).clamp(max=len(key) - 1)
            found = key[edge] == wanted
            parts = (edge[found],), matches.first[found], matches.slot[found], matches.evidence[found]
            features = ListedFeatures(*parts, slots, (count,))
        return EdgeGraph(edges, Incidence.of(edges, count), features, len(puzzle))

    def spread(self, packed: Nodes, virtual: Float[Tensor, "v f"] | None = None) -> Float[Tensor, "m k f"]:
        """The pieces, and after them the same virtual nodes for every puzzle."""
        if virtual is None:
            return packed
        times = (len(self.incidence.starts) - 1 - self.pieces) // len(virtual)
        return torch.cat([packed, virtual.repeat(times, 1)[:, None].expand(-1, packed.shape[1], -1)])

    def gather(self, nodes: Float[Tensor, "m k f"]) -> Nodes:
        """The pieces alone."""
        return nodes[: self.pieces]

    pieces_of = gather

    def add(self, nodes: Float[Tensor, "m k f"], more: Nodes) -> Float[Tensor, "m k f"]:
        """The nodes with something added to those that are pieces."""
        return nodes + F.pad(more, (0, 0, 0, 0, 0, len(nodes) - len(more)))


Graph = DenseGraph | EdgeGraph
