"""SE(3)-Equiv (Wu et al. 2023): rotations from equivariant features, translations from invariant ones.

Its adversarial and its reconstruction loss are left out.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from diffassemble.encoders.points import EXTENTS
from diffassemble.model.baselines.perceptron import perceptron

RANK = 16


class Symmetric(nn.Module):
    """A piece's pose turns with it exactly, and does not change when other pieces are turned.

    The features are vectors (three numbers each) and the three extents. Inner products of vectors are blind to turns;
    the mean of all pieces' products, which says what the whole is like, mixes a piece's own vectors into the rows of
    its rotation.
    """

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        vectors = (features - EXTENTS) // 3
        self.frame = nn.Linear(vectors, RANK, bias=False)
        self.blind = perceptron(RANK * RANK + EXTENTS, width, width)
        self.mixing = perceptron(2 * width, width, 3 * vectors)
        self.translation = perceptron(2 * width, width, 3)

    def forward(self, features: Float[Tensor, "b w f"], present: Bool[Tensor, "b w"]) -> Float[Tensor, "b w 12"]:
        turning, extents = features.split([features.shape[-1] - EXTENTS, EXTENTS], -1)
        vectors = turning.unflatten(-1, (-1, 3))
        frame = self.frame(vectors.transpose(-1, -2))
        products = (frame.transpose(-1, -2) @ frame).flatten(-2)
        own = self.blind(torch.cat([products, extents], -1))
        mask = present[..., None]
        whole = (own * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
        known = torch.cat([own, whole.expand_as(own)], -1)
        rows = self.mixing(known).unflatten(-1, (3, -1)) @ vectors / vectors.shape[-2] ** 0.5
        return torch.cat([self.translation(known), rows.flatten(-2)], -1)
