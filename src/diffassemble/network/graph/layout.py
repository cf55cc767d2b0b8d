"""The two forms of a graph that message passing takes: dense for complete graphs, an edge list for all others.

Most pairs of pieces are no matches and have no features at all, so large graphs keep a list of those that do. Along the
edges of sparse graphs, torch's products of sparse matrices need no copy of the nodes for every edge; they are computed
with 32 bits. In all shapes g is whatever asks at once: samples times heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.core import Matches
from diffassemble.network.graph.edges import sorted_edges, virtual_edges

Nodes = Float[Tensor, "n k f"]
Rows = Float[Tensor, "n g c"]


@dataclass(frozen=True)
class LayoutConfig:
    """How evidence of pairs is laid out."""

    listed_above: int = 250
    """pieces from which on a list of pairs is faster than products with a mostly empty tensor"""


DEFAULT = LayoutConfig()


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
    def of(edges: Int[Tensor, "2 e"], count: int) -> Incidence:
        """Edges (sender, receiver) among `count` nodes, sorted by receiver and then by sender."""
        sender, receiver = edges
        starts, back_starts = _starts(receiver, count), _starts(sender, count)
        return Incidence(starts, sender, receiver, back_starts, sender.argsort(stable=True))

    def forth(self, values: Float[Tensor, "e"]) -> Tensor:
        """A sparse matrix, receivers down, senders across."""
        return _matrix(self.starts, self.sender, values)

    def reversed(self, values: Float[Tensor, "e"]) -> Tensor:
        """Its transpose."""
        return _matrix(self.back_starts, self.receiver[self.back], values[self.back])


def _matrix(starts: Int[Tensor, "n_and_one"], cols: Int[Tensor, "e"], values: Float[Tensor, "e"]) -> Tensor:
    shape = len(starts) - 1, len(starts) - 1
    return torch.sparse_csr_tensor(starts, cols, values, shape, device=values.device, check_invariants=False)


def _starts(ends: Int[Tensor, "e"], count: int) -> Int[Tensor, "n_and_one"]:
    return torch.cat([ends.new_zeros(1), torch.bincount(ends, minlength=count).cumsum(0)])


def _common(one: Tensor, other: Tensor, incidence: Incidence) -> Float[Tensor, "e g"]:
    pattern = incidence.forth(one.new_zeros(len(incidence.sender)))
    parts = zip(_apart(one), _apart(other), strict=True)
    return torch.stack([torch.sparse.sampled_addmm(pattern, a, b.T, beta=0).values() for a, b in parts], 1)


def _summed(weights: Tensor, values: Tensor, incidence: Incidence, back: bool) -> Rows:
    matrix = incidence.reversed if back else incidence.forth
    parts = zip(weights.T.contiguous(), _apart(values), strict=True)
    return torch.stack([matrix(weight) @ part for weight, part in parts], 1)


def _apart(values: Float[Tensor, "n g c"]) -> Float[Tensor, "g n c"]:
    return values.transpose(0, 1).contiguous()


class _Common(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, one: Tensor, other: Tensor, incidence: Incidence) -> Tensor:
        ctx.save_for_backward(one, other)
        ctx.incidence = incidence
        return _common(one, other, incidence)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        one, other = ctx.saved_tensors
        (gradient,) = gradients
        forth, back = (_summed(gradient, part, ctx.incidence, way) for part, way in ((other, False), (one, True)))
        return forth, back, None


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, values: Tensor, incidence: Incidence) -> Tensor:
        ctx.save_for_backward(weights, values)
        ctx.incidence = incidence
        return _summed(weights, values, incidence, back=False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        weights, values = ctx.saved_tensors
        (gradient,) = gradients
        return _common(gradient, values, ctx.incidence), _summed(weights, gradient, ctx.incidence, back=True), None


def common(receivers: Rows, senders: Rows, incidence: Incidence) -> Float[Tensor, "e g"]:
    """The scalar product of what stands at the two ends of every edge."""
    with torch.autocast(receivers.device.type, enabled=False):
        return _Common.apply(receivers.float(), senders.float(), incidence)


def summed(weights: Float[Tensor, "e g"], senders: Rows, incidence: Incidence) -> Rows:
    """For every receiver the sum over its senders, weighed edge by edge."""
    with torch.autocast(senders.device.type, enabled=False):
        return _Summed.apply(weights.float(), senders.float(), incidence)


@dataclass(frozen=True)
class EdgeEvidence:
    """One row for each kind (`slot`) of contact along an edge; n nodes."""

    edge: Int[Tensor, "m"]
    receiver: Int[Tensor, "m"]
    slot: Int[Tensor, "m"]
    values: Float[Tensor, "m c"]
    slots: int

    def ask(self, logits: Float[Tensor, "e g"], asked: Float[Tensor, "n g s"]) -> Float[Tensor, "e g"]:
        """Logits plus the evidence along every edge, weighed by what each receiver asks for."""
        wanted = asked.unflatten(-1, (self.slots, -1))[self.receiver, :, self.slot]
        return logits.index_add(0, self.edge, (wanted * self.values[:, None]).sum(-1).to(logits.dtype))

    def hear(self, attention: Float[Tensor, "e g"], count: int) -> Float[Tensor, "n g s"]:
        """The evidence that each of `count` receivers hears, given its attention to every edge."""
        given = attention[self.edge][..., None] * self.values[:, None].to(attention.dtype)
        place = self.receiver * self.slots + self.slot
        heard = attention.new_zeros(count * self.slots, *given.shape[1:]).index_add(0, place, given)
        return heard.unflatten(0, (count, self.slots)).transpose(1, 2).flatten(2)


def find_evidence(edges: Int[Tensor, "2 e"], count: int, matches: Matches, slots: int) -> EdgeEvidence:
    """The matches' evidence on edges among `count` nodes, which are sorted by receiver and sender."""
    key = edges[1] * count + edges[0]
    known = (matches.first < count) & (matches.second < count)
    wanted = torch.where(known, matches.first * count + matches.second, -1)
    edge = torch.searchsorted(key, wanted).clamp(max=len(key) - 1)
    heard = key[edge] == wanted
    return EdgeEvidence(edge[heard], matches.first[heard], matches.slot[heard], matches.evidence[heard], slots)


@dataclass(frozen=True)
class DenseFeatures:
    """`values[b, i, j]` is what receiver i knows of sender j; fastest for small graphs."""

    values: Float[Tensor, "b w w e"]

    def ask(self, logits: Float[Tensor, "b g w w"], asked: Float[Tensor, "b w g e"]) -> Float[Tensor, "b g w w"]:
        """Logits (receiver, sender) plus the features of every sender, weighed by what each receiver asks for."""
        return logits + (asked @ self.values.transpose(-1, -2)).transpose(1, 2)

    def hear(self, attention: Float[Tensor, "b g w w"]) -> Float[Tensor, "b w g e"]:
        """The features that each receiver hears, given its attention to every sender."""
        return attention.transpose(1, 2) @ self.values


@dataclass(frozen=True)
class ListedFeatures:
    """Only the pairs that have features: one row for each kind (`slot`) of contact; costs nothing for all others."""

    graph: Int[Tensor, "m"]
    receiver: Int[Tensor, "m"]
    sender: Int[Tensor, "m"]
    slot: Int[Tensor, "m"]
    evidence: Float[Tensor, "m c"]
    slots: int

    def ask(self, logits: Float[Tensor, "b g w w"], asked: Float[Tensor, "b w g e"]) -> Float[Tensor, "b g w w"]:
        """Logits (receiver, sender) plus the features of every sender, weighed by what each receiver asks for."""
        wanted = asked.unflatten(-1, (self.slots, -1))[self.graph, self.receiver, :, self.slot]
        told = (wanted * self.evidence[:, None]).sum(-1).to(logits.dtype)
        # Only these few places change: no second tensor of that size is made.
        logits.permute(0, 2, 3, 1).index_put_((self.graph, self.receiver, self.sender), told, accumulate=True)
        return logits

    def hear(self, attention: Float[Tensor, "b g w w"]) -> Float[Tensor, "b w g e"]:
        """The features that each receiver hears, given its attention to every sender."""
        b, g, w, _ = attention.shape
        heeded = attention.permute(0, 2, 3, 1)[self.graph, self.receiver, self.sender]
        given = heeded[..., None] * self.evidence[:, None].to(attention.dtype)
        place = (self.graph * w + self.receiver) * self.slots + self.slot
        heard = attention.new_zeros(b * w * self.slots, *given.shape[1:]).index_add(0, place, given)
        return heard.view(b, w, self.slots, g, -1).transpose(2, 3).flatten(3)


PairFeatures = DenseFeatures | ListedFeatures


def pair_features(listed: ListedFeatures, b: int, w: int) -> PairFeatures:
    """The faster of the two forms."""
    if w > DEFAULT.listed_above:
        return listed
    values = listed.evidence.new_zeros(b, w, w, listed.slots, listed.evidence.shape[-1])
    values[listed.graph, listed.receiver, listed.sender, listed.slot] = listed.evidence
    return DenseFeatures(values.flatten(-2))


@dataclass(frozen=True)
class DenseGraph:
    """Complete graphs side by side, padded to the largest, with what receivers know of senders.

    The last `virtual` nodes of each graph are no pieces.
    """

    puzzle: Int[Tensor, "n"]
    present: Bool[Tensor, "b w"]
    features: PairFeatures | None
    virtual: int = 0

    def spread(self, packed: Nodes, virtual: Float[Tensor, "v f"] | None = None) -> Float[Tensor, "b w k f"]:
        """Packed rows into the padded layout, and the same virtual nodes behind those of every graph."""
        width = self.present.shape[1] - self.virtual
        padded = packed.new_zeros(len(self.present), width, *packed.shape[1:])
        padded[self.present[:, :width]] = packed
        if virtual is None:
            return padded
        return torch.cat([padded, virtual[None, :, None].expand(len(padded), -1, packed.shape[1], -1)], 1)

    def gather(self, padded: Float[Tensor, "b w k f"]) -> Nodes:
        """Back from the padded layout."""
        width = self.present.shape[1] - self.virtual
        return padded[:, :width][self.present[:, :width]]

    def pieces_of(self, padded: Float[Tensor, "b w k f"]) -> Float[Tensor, "b p k f"]:
        """All nodes but the virtual ones, still padded."""
        return padded[:, : self.present.shape[1] - self.virtual]

    def add(self, padded: Float[Tensor, "b w k f"], more: Float[Tensor, "b p k f"]) -> Float[Tensor, "b w k f"]:
        """The same with something added to the nodes that are pieces."""
        return padded + (more if self.virtual == 0 else F.pad(more, (0, 0, 0, 0, 0, self.virtual)))

    @staticmethod
    def of(puzzle: Int[Tensor, "n"], matches: Matches | None, slots: int, virtual: int = 0) -> DenseGraph:
        """Complete graphs with the matches' evidence as edge features."""
        counts = torch.bincount(puzzle)
        width = int(counts.max())
        present = torch.arange(width, device=puzzle.device) < counts[:, None]
        present = torch.cat([present, present.new_ones(len(counts), virtual)], 1)
        if matches is None:
            return DenseGraph(puzzle, present, None, virtual)
        place = torch.arange(len(puzzle), device=puzzle.device) - (torch.cumsum(counts, 0) - counts)[puzzle]
        first, second = place[matches.first], place[matches.second]
        listed = ListedFeatures(puzzle[matches.first], first, second, matches.slot, matches.evidence, slots)
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

    def spread(self, packed: Nodes, virtual: Float[Tensor, "v f"] | None = None) -> Float[Tensor, "m k f"]:
        """The pieces, and behind them the same virtual nodes for every puzzle."""
        if virtual is None:
            return packed
        times = (len(self.incidence.starts) - 1 - self.pieces) // len(virtual)
        return torch.cat([packed, virtual.repeat(times, 1)[:, None].expand(-1, packed.shape[1], -1)])

    def gather(self, nodes: Float[Tensor, "m k f"]) -> Nodes:
        """The pieces alone."""
        return nodes[: self.pieces]

    def pieces_of(self, nodes: Float[Tensor, "m k f"]) -> Nodes:
        """All nodes but the virtual ones."""
        return self.gather(nodes)

    def add(self, nodes: Float[Tensor, "m k f"], more: Nodes) -> Float[Tensor, "m k f"]:
        """The same with something added to the nodes that are pieces."""
        return nodes + F.pad(more, (0, 0, 0, 0, 0, len(nodes) - len(more)))


Graph = DenseGraph | EdgeGraph


def edge_graph(
    edges: Int[Tensor, "2 e"], puzzle: Int[Tensor, "n"], matches: Matches | None, slots: int, virtual: int = 0
) -> EdgeGraph:
    """A graph of these edges, with the matches' evidence on those that have some; others are not heard.

    Virtual nodes hear all pieces of their puzzle and each other, and are heard by them.
    """
    count = len(puzzle) + virtual * (int(puzzle[-1]) + 1)
    edges = sorted_edges(torch.cat([edges, virtual_edges(puzzle, virtual)], 1), count)
    evidence = None if matches is None else find_evidence(edges, count, matches, slots)
    return EdgeGraph(edges, Incidence.of(edges, count), evidence, len(puzzle))
