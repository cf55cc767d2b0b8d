"""Fragments seen as they stand in a noisy pose, and turned on from there by their own vectors."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.encoders.making import Encoder
from diffassemble.encoders.points import PointEncoder
from diffassemble.encoders.vector_neurons import Invariants
from diffassemble.puzzle import InputError


class Standing(nn.Module):
    """What turns with a fragment is used as such, instead of being learnt for every rotation anew.

    A row of the wanted rotation is an axis of the whole as the fragment sees it: a mixture of the fragment's vectors,
    by weights that the network says. If the weights don't change when the fragment is turned, the answer turns with it.
    """

    def __init__(self, encoder: Encoder, width: int) -> None:
        super().__init__()
        if not isinstance(encoder, PointEncoder) or not encoder.vectors:
            raise InputError("model.posed needs features that turn freely: use an equivariant encoder of points")
        self.vectors = encoder.vectors
        self.invariants = Invariants(encoder.vectors)
        self.weights = nn.Linear(width, 3 * encoder.vectors)
        nn.init.zeros_(self.weights.weight)
        nn.init.zeros_(self.weights.bias)

    @property
    def width(self) -> int:
        """Numbers that `shape` gives for a fragment."""
        return 3 * self.vectors

    def shape(self, features: Float[Tensor, "n f"]) -> Float[Tensor, "n s"]:
        """What fragments are like, however they are turned."""
        return self.invariants(self._vectors(features).mT)

    def axes(self, nodes: Float[Tensor, "n k w"], features: Float[Tensor, "n k f"]) -> Float[Tensor, "n k 3 3"]:
        """Mixtures of vectors, one for each axis of the whole."""
        weights = self.weights(nodes).unflatten(-1, (3, self.vectors))
        return weights.float() @ self._vectors(features).float() / self.vectors**0.5

    def _vectors(self, features: Float[Tensor, "*n f"]) -> Float[Tensor, "*n v 3"]:
        return features[..., : self.width].unflatten(-1, (self.vectors, 3))
