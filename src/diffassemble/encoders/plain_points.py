"""Networks over clouds that know nothing of rotations, for the ablation and the baselines."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.encoders.neighbours import Neighbours


class DGCNN(nn.Module):
    """Edge convolutions with a maximum over the neighbours (Wang et al. 2019), on one graph found in space."""

    points, neighbours = 128, 8

    def __init__(self, features: int) -> None:
        super().__init__()
        widths = (3, 32, 32, 64)
        self.send = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairwise(widths))
        self.receive = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths[1:])
        self.join = nn.Linear(sum(widths[1:]), 128)
        self.summary = nn.Linear(256, features)

    def forward(self, points: Float[Tensor, "n p 3"], neighbours: Neighbours) -> Float[Tensor, "n f"]:
        values, seen = points, []
        for send, receive, norm in zip(self.send, self.receive, self.norms, strict=True):
            # max over j of leaky(A x_j + B x_i): the non-linearity grows, so it can follow the maximum.
            values = F.leaky_relu(norm(neighbours.numbers(send(values)).amax(2) + receive(values)), 0.2)
            seen.append(values)
        inner = F.leaky_relu(self.join(torch.cat(seen, -1)), 0.2)
        return self.summary(torch.cat([inner.amax(1), inner.mean(1)], -1))


class PointNet(nn.Module):
    """Every point by itself, then a maximum over all (Qi et al. 2017)."""

    points, neighbours = 128, 0

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(3, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 128), nn.LayerNorm(128), nn.ReLU()
        )
        self.join = nn.Linear(128, 256)
        self.summary = nn.Linear(256, features)

    def forward(self, points: Float[Tensor, "n p 3"], neighbours: Neighbours) -> Float[Tensor, "n f"]:
        return self.summary(F.relu(self.join(self.layers(points)).amax(1)))
