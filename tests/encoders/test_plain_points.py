"""Plain networks see clouds as sets."""

from __future__ import annotations

import torch
from torch import nn

from diffassemble.network.encoders.points import DGCNN, PointNet
from diffassemble.network.encoders.vector_neurons import find_neighbours

POINTS = torch.randn(2, 60, 3, generator=torch.Generator().manual_seed(0))


def encode(network: nn.Module, points: torch.Tensor) -> torch.Tensor:
    return network(points, find_neighbours(points, 8))


@torch.no_grad()
def test_the_order_of_points_does_not_matter_but_their_places_do() -> None:
    torch.manual_seed(0)
    for network in (DGCNN(6), PointNet(6)):
        features = encode(network, POINTS)
        assert features.shape == (2, 6)
        shuffled = POINTS[:, torch.randperm(60)]
        torch.testing.assert_close(encode(network, shuffled), features, rtol=1e-4, atol=1e-5)
        assert (encode(network, POINTS.flip(-1)) - features).abs().mean() > 1e-3
