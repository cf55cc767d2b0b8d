"""What receivers know of senders along the edges of a sparse graph: only where there is something to know."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.puzzle import Mates


@dataclass(frozen=True)
class EdgeEvidence:
    """One row for each kind (`slot`) of mating along an edge; n nodes, g as in `features`."""

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

    def features(self, edges: int) -> Float[Tensor, "e s"]:
        """The same as one row for every edge, most of it zero: what PyG's layers take."""
        rows = self.values.new_zeros(edges, self.slots, self.values.shape[-1])
        rows[self.edge, self.slot] = self.values
        return rows.flatten(-2)


def find_evidence(edges: Int[Tensor, "2 e"], count: int, mates: Mates, slots: int) -> EdgeEvidence:
    """The mates' evidence on edges among `count` nodes, which are sorted by receiver and sender."""
    key = edges[1] * count + edges[0]
    known = (mates.first < count) & (mates.second < count)
    wanted = torch.where(known, mates.first * count + mates.second, -1)
    edge = torch.searchsorted(key, wanted).clamp(max=len(key) - 1)
    heard = key[edge] == wanted
    return EdgeEvidence(edge[heard], mates.first[heard], mates.slot[heard], mates.evidence[heard], slots)
