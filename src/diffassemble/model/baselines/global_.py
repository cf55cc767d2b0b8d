"""Global (Schor et al. 2019, Li et al. 2020, as in Breaking Bad): each piece beside the sum of all."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from diffassemble.model.baselines.perceptron import POSE, perceptron


class Global(nn.Module):
    """A pose from a piece's own features and the largest of all pieces' features."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.pose = perceptron(2 * features, width, POSE)

    def forward(self, features: Float[Tensor, "b w f"], present: Bool[Tensor, "b w"]) -> Float[Tensor, "b w 12"]:
        whole = features.masked_fill(~present[..., None], -torch.inf).amax(1, keepdim=True)
        return self.pose(torch.cat([features, whole.expand_as(features)], -1))
