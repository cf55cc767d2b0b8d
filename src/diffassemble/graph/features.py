"""What receivers know of senders in a complete graph, in two forms that give the same numbers.

Most pairs of pieces are no mates and have no features at all, so large graphs keep a list of those that do.
g is whatever asks at once: samples times heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


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
    """Only the pairs that have features: one row for each kind (`slot`) of mating; costs nothing for all others."""

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
        return logits.view(-1).index_add_(0, self._places(logits), told.flatten()).view(logits.shape)

    def hear(self, attention: Float[Tensor, "b g w w"]) -> Float[Tensor, "b w g e"]:
        """The features that each receiver hears, given its attention to every sender."""
        b, g, w, _ = attention.shape
        given = attention.view(-1)[self._places(attention)].view(-1, g, 1) * self.evidence[:, None].to(attention.dtype)
        place = (self.graph * w + self.receiver) * self.slots + self.slot
        heard = attention.new_zeros(b * w * self.slots, *given.shape[1:]).index_add(0, place, given)
        return heard.view(b, w, self.slots, g, -1).transpose(2, 3).flatten(3)

    def _places(self, pairs: Float[Tensor, "b g w w"]) -> Int[Tensor, "mg"]:
        """Where all g values of every listed pair stand in the flattened tensor."""
        _, g, w, _ = pairs.shape
        every = torch.arange(g, device=self.graph.device)
        return (((self.graph[:, None] * g + every) * w + self.receiver[:, None]) * w + self.sender[:, None]).flatten()


PairFeatures = DenseFeatures | ListedFeatures
# Above this many pieces the list is faster than products with a mostly empty tensor.
LISTED_ABOVE = 250


def pair_features(listed: ListedFeatures, b: int, w: int) -> PairFeatures:
    """The faster of the two forms."""
    if w > LISTED_ABOVE:
        return listed
    values = listed.evidence.new_zeros(b, w, w, listed.slots, listed.evidence.shape[-1])
    values[listed.graph, listed.receiver, listed.sender, listed.slot] = listed.evidence
    return DenseFeatures(values.flatten(-2))
