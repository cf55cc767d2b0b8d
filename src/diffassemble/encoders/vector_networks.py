"""Two networks of vector neurons over a cloud: the published VN-DGCNN, and a light one for CPUs."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.encoders.neighbours import Neighbours
from diffassemble.encoders.vector_neurons import (
    EdgeConvolution,
    ReceiverConvolution,
    SoftMaximum,
    VectorLayer,
    unit_scale,
)

_SURFACE = 6


class Pooling(nn.Module):
    """Mean and soft maximum over the points, half of the vectors each."""

    def __init__(self, channels: int, vectors: int) -> None:
        super().__init__()
        self.layer = VectorLayer(channels, vectors - vectors // 2)
        self.maximum = SoftMaximum(vectors - vectors // 2)
        self.vectors = vectors

    def forward(self, vectors: Float[Tensor, "n p 3 c"]) -> Float[Tensor, "n 3 v"]:
        inner = unit_scale(self.layer(vectors))
        return torch.cat([inner.mean(1), self.maximum(inner)], -1)[..., : self.vectors]


class PublishedNetwork(nn.Module):
    """The published sizes: edge convolutions of 21/21, 21/21 and 21 vectors, joined; 128 a point, 256 in all."""

    points, neighbours = 1000, 20

    def __init__(self, vectors: int) -> None:
        super().__init__()
        self.first = EdgeConvolution(1, 21, layers=2, crosses=True)
        self.second = EdgeConvolution(21, 21, layers=2)
        self.third = EdgeConvolution(21, 21, layers=1)
        self.pooling = Pooling(63, vectors)

    def forward(self, points: Float[Tensor, "n p 3"], neighbours: Neighbours) -> Float[Tensor, "n 3 v"]:
        first = unit_scale(self.first(points[..., None], neighbours))
        second = unit_scale(self.second(first, neighbours))
        third = unit_scale(self.third(second, neighbours))
        return self.pooling(torch.cat([first, second, third], -1))


class LightNetwork(nn.Module):
    """Few points and neighbours; the first layer sees what the surface around each point looks like."""

    points, neighbours = 128, 8

    def __init__(self, vectors: int) -> None:
        super().__init__()
        self.first = VectorLayer(_SURFACE, 16)
        self.second = ReceiverConvolution(16, 16)
        self.third = ReceiverConvolution(16, 16)
        self.pooling = Pooling(16 + 16 + 16, vectors)

    def forward(self, points: Float[Tensor, "n p 3"], neighbours: Neighbours) -> Float[Tensor, "n 3 v"]:
        first = unit_scale(self.first(surface_vectors(points, neighbours)))
        second = unit_scale(self.second(first, neighbours))
        third = unit_scale(self.third(second, neighbours))
        return self.pooling(torch.cat([first, second, third], -1))


def surface_vectors(points: Float[Tensor, "n p 3"], neighbours: Neighbours) -> Float[Tensor, "n p 3 6"]:
    """Six vectors at each point x, with e the mean and C the covariance of its neighbours' offsets at unit scale.

    x, e, Cx, CCx, x × Cx, x × e: C is flat along the surface's normal, so Cx is what of x lies in the surface.
    """
    offsets = neighbours.numbers(points) - points[:, :, None]
    offsets = offsets * (3 * offsets.square().mean((1, 2, 3), keepdim=True) + 1e-12).rsqrt()
    mean = offsets.mean(2)
    covariance = offsets.mT @ offsets / offsets.shape[2]
    once = (covariance @ points[..., None])[..., 0]
    twice = (covariance @ once[..., None])[..., 0]
    crosses = [torch.linalg.cross(points, other, dim=-1) for other in (once, mean)]
    return unit_scale(torch.stack([points, mean, once, twice, *crosses], -1))
