"""Features of pieces by points on their surface (section 3.1), exactly equivariant to rotations of space.

Features are `vectors` times three numbers, which turn with the piece, then its extents, which do not. Layers are those
of vector neurons (Deng et al. 2021) on (…, 3, channels); the graph of neighbours of a cloud is found once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, no_type_check

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32, Int, Int64
from numba import njit
from torch import Tensor, nn

from diffassemble.extensions import Registry
from diffassemble.network.encoders.image import Symmetry

EXTENTS = 3


@dataclass(frozen=True)
class LeakConfig:
    """How the part of vectors against a direction is reduced."""

    slope: float = 0.2
    """factor of the part against the direction"""
    short: float = 1e-3
    """added to the squared length of a direction, so that rounding cannot reverse a short one"""


DEFAULT = LeakConfig()


@dataclass(frozen=True)
class Neighbours:
    """The k nearest points of every point, itself among them, in n clouds of p points each."""

    rows: Int[Tensor, "n p k"]
    """rows of the clouds' points listed one after the other"""

    def numbers(self, values: Float[Tensor, "n p c"]) -> Float[Tensor, "n p k c"]:
        """The values of the neighbours of every point."""
        return values.flatten(0, 1).index_select(0, self.rows.flatten()).view(*self.rows.shape, -1)

    def vectors(self, values: Float[Tensor, "n p 3 c"]) -> Float[Tensor, "n p 3 k c"]:
        """The vectors of the neighbours of every point."""
        rows = 3 * self.rows[:, :, None] + torch.arange(3, device=values.device)[:, None]
        return values.flatten(0, 2).index_select(0, rows.flatten()).view(*rows.shape, -1)


def find_neighbours(points: Float[Tensor, "n p 3"], count: int) -> Neighbours:
    """The `count` nearest points of every point, all of them in smaller clouds; without gradients."""
    clouds = points.detach().float().cpu().contiguous().numpy()
    nearest = torch.from_numpy(_nearest(clouds, min(count, clouds.shape[1]))).to(points.device)
    starts = torch.arange(len(points), device=points.device)[:, None, None] * points.shape[1]
    return Neighbours(nearest + starts)


@njit(cache=True)
@no_type_check
def _nearest(clouds: Float32[np.ndarray, "n p 3"], count: int) -> Int64[np.ndarray, "n p k"]:
    """By comparing all pairs: at this size faster than a tree, and than sorting in torch."""
    number, size, _ = clouds.shape
    nearest = np.empty((number, size, count), np.int64)
    best, distances = np.empty(count, np.float32), np.empty(size, np.float32)
    for n in range(number):
        x, y, z = clouds[n, :, 0].copy(), clouds[n, :, 1].copy(), clouds[n, :, 2].copy()
        for i in range(size):
            for j in range(size):
                distances[j] = (x[j] - x[i]) ** 2 + (y[j] - y[i]) ** 2 + (z[j] - z[i]) ** 2
            found = nearest[n, i]
            best[:] = np.inf
            for j in range(size):
                distance = distances[j]
                if distance < best[count - 1]:
                    place = count - 1
                    while place > 0 and best[place - 1] > distance:
                        best[place], found[place] = best[place - 1], found[place - 1]
                        place -= 1
                    best[place], found[place] = distance, j
    return nearest


class VectorLeakyReLU(nn.Module):
    """Reduces the part of each vector against a direction, which is itself a mixture of the vectors."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.direction = nn.Linear(channels, channels, bias=False)

    def forward(self, vectors: Float[Tensor, "*n 3 c"]) -> Float[Tensor, "*n 3 c"]:
        direction = self.direction(vectors)
        against = (vectors * direction).sum(-2, keepdim=True).clamp(max=0)
        length = direction.square().sum(-2, keepdim=True) + DEFAULT.short
        return vectors - (1 - DEFAULT.slope) * (against / length) * direction


class VectorLayer(nn.Sequential):
    """A linear map of vectors, then the non-linearity."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__(nn.Linear(channels_in, channels_out, bias=False), VectorLeakyReLU(channels_out))


class ReceiverConvolution(nn.Module):
    """The light form: the mean over the neighbours j of A x_j + B x_i, reduced against a direction C x_i."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.send = nn.Linear(channels_in, channels_out, bias=False)
        self.receive = nn.Linear(channels_in, 2 * channels_out, bias=False)

    def forward(self, vectors: Float[Tensor, "n p 3 c"], neighbours: Neighbours) -> Float[Tensor, "n p 3 d"]:
        own, direction = self.receive(vectors).chunk(2, -1)
        direction = direction / (direction.square().sum(-2, keepdim=True) + DEFAULT.short).sqrt()
        sent = neighbours.vectors(self.send(vectors))
        along = (sent * direction[:, :, :, None]).sum(2) + (own * direction).sum(2)[:, :, None]
        against = along.clamp(max=0).mean(2)[:, :, None]
        return sent.mean(3) + own - (1 - DEFAULT.slope) * against * direction


def unit_scale(vectors: Float[Tensor, "n p 3 c"]) -> Float[Tensor, "n p 3 c"]:
    """Every channel at unit root mean square over the points of its cloud."""
    return vectors * (vectors.square().mean((1, 2), keepdim=True) + 1e-6).rsqrt()


class SoftMaximum(nn.Module):
    """Pools each channel over the points, weighted by softmax of the products with a mixture of the vectors."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.direction = nn.Linear(channels, channels, bias=False)

    def forward(self, vectors: Float[Tensor, "n p 3 c"]) -> Float[Tensor, "n 3 c"]:
        weight = F.softmax((vectors * self.direction(vectors)).sum(2), 1)
        return (weight[:, :, None] * vectors).sum(1)


class Invariants(nn.Module):
    """Vectors in a frame of three of their mixtures, which turns with them, so that the numbers do not change."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.frame = nn.Linear(channels, 3, bias=False)

    def forward(self, vectors: Float[Tensor, "n 3 c"]) -> Float[Tensor, "n f"]:
        seen = torch.einsum("nac,naf->ncf", vectors, self.frame(vectors)).flatten(1)
        return F.layer_norm(seen, seen.shape[1:])


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


class LightNetwork(nn.Module):
    """Few points and neighbours; the input of the first layer describes the surface around each point."""

    points, neighbours = 128, 8

    def __init__(self, vectors: int) -> None:
        super().__init__()
        self.first = VectorLayer(6, 16)  # as many as `surface_vectors` gives
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
    with torch.autocast(points.device.type, enabled=False):  # differences of near points need all digits
        offsets = neighbours.numbers(points) - points[:, :, None]
        offsets = offsets * (3 * offsets.square().mean((1, 2, 3), keepdim=True) + 1e-12).rsqrt()
        mean = offsets.mean(2)
        covariance = offsets.mT @ offsets / offsets.shape[2]
        once = (covariance @ points[..., None])[..., 0]
        twice = (covariance @ once[..., None])[..., 0]
        crosses = [torch.linalg.cross(points, other, dim=-1) for other in (once, mean)]
        return unit_scale(torch.stack([points, mean, once, twice, *crosses], -1))


VectorBackbone = Literal["vn_dgcnn", "vn_dgcnn_published"]
PlainBackbone = Literal["dgcnn", "pointnet"]
PointBackbone = Literal[VectorBackbone, PlainBackbone]
NETWORKS: Mapping[str, Any] = Registry("parts", {"vn_dgcnn": LightNetwork})


class PointEncoder(nn.Module):
    """Clouds (n, p, 3) about their origins → (n, width): 3 · `features` learned numbers and three extents."""

    def __init__(self, backbone: PointBackbone, symmetry: Symmetry, features: int, pairs: int = 16384) -> None:
        super().__init__()
        self.pairs = pairs
        self.symmetry = symmetry
        self.features = features
        self.network = NETWORKS[backbone](3 * features if symmetry == "plain" else features)
        self.invariants = Invariants(features) if symmetry == "invariant" else None

    @property
    def width(self) -> int:
        """Numbers a fragment."""
        return 3 * self.features + EXTENTS

    @property
    def vectors(self) -> int:
        """How many vectors lead the features."""
        return self.features if self.symmetry == "equivariant" else 0

    def forward(self, points: Float[Tensor, "n p 3"]) -> Float[Tensor, "n f"]:
        few = points[:, : self.network.points]
        together = max(1, self.pairs // (few.shape[1] * max(1, self.network.neighbours)))
        learned = torch.cat([self._encode(part) for part in few.split(together)])
        return torch.cat([learned, extents(points).to(learned)], -1)

    def _encode(self, points: Float[Tensor, "n p 3"]) -> Float[Tensor, "n f"]:
        radius = points.square().sum(-1).mean(-1).sqrt()[:, None, None]
        points = points / radius.clamp(min=1e-6)
        encoded = self.network(points, find_neighbours(points, self.network.neighbours))
        if self.symmetry == "plain":
            return F.layer_norm(encoded, encoded.shape[1:])
        # All vectors of a fragment together, which keeps the symmetry; those without any direction stay short.
        vectors = encoded * (encoded.square().mean((1, 2), keepdim=True) + 1e-3).rsqrt()
        return vectors.mT.flatten(1) if self.invariants is None else self.invariants(vectors)

    def turned(self, features: Float[Tensor, "*n f"], rotation: Float[Tensor, "*n 3 3"]) -> Float[Tensor, "*n f"]:
        """The features of the fragments turned by these rotations, without encoding them anew."""
        moved = leading_vectors(features, self.vectors) @ rotation.mT.to(features)
        return torch.cat([moved.flatten(-2), features[..., 3 * self.vectors :]], -1)


def extents(points: Float[Tensor, "n p 3"]) -> Float[Tensor, "n 3"]:
    """Logarithms of the root mean squares along the principal axes of fragments, about unit scale."""
    covariance = points.mT.double() @ points.double() / points.shape[1]
    return torch.linalg.eigvalsh(covariance).clamp(min=1e-6).log().float() / 2 + 2.5


def leading_vectors(features: Float[Tensor, "*n f"], count: int) -> Float[Tensor, "*n v 3"]:
    """The vectors that lead the features of a piece."""
    return features[..., : 3 * count].unflatten(-1, (count, 3))
