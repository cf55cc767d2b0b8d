"""DGL (Huang et al. 2020, as in Breaking Bad): a graph whose edges are weighed anew by every guess of the poses."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from diffassemble.model.baselines.perceptron import POSE, perceptron

ROUNDS = 3


class DynamicGraph(nn.Module):
    """Rounds of: how much do two pieces concern each other, what do they tell each other, where does each stand."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.start = nn.Linear(features, width)
        self.relation = nn.ModuleList(perceptron(2 * (width + POSE), width // 2, 1) for _ in range(ROUNDS))
        self.message = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(ROUNDS))
        self.update = nn.ModuleList(nn.GRUCell(width, width) for _ in range(ROUNDS))
        self.pose = nn.ModuleList(perceptron(width + features + POSE, width, POSE) for _ in range(ROUNDS))

    def forward(self, features: Float[Tensor, "b w f"], present: Bool[Tensor, "b w"]) -> Float[Tensor, "b w 12"]:
        nodes = self.start(features)
        poses = features.new_zeros(*features.shape[:2], POSE)
        for relation, message, update, pose in zip(self.relation, self.message, self.update, self.pose, strict=True):
            weight = relation(pairs(torch.cat([nodes, poses], -1))).squeeze(-1).sigmoid() * present[:, None]
            told = message(pairs(nodes)).relu()
            heard = torch.einsum("bij,bijf->bif", weight, told) / weight.sum(-1, keepdim=True).clamp(min=1e-6)
            nodes = update(heard.flatten(0, 1), nodes.flatten(0, 1)).view_as(nodes)
            poses = pose(torch.cat([nodes, features, poses], -1))
        return poses


def pairs(nodes: Float[Tensor, "b w f"]) -> Float[Tensor, "b w w g"]:
    """Every node beside every other."""
    wide = nodes[:, None].expand(-1, nodes.shape[1], -1, -1)
    return torch.cat([wide.transpose(1, 2), wide], -1)
