"""Layers whose neurons are vectors (Deng et al. 2021): when the input turns, so do all of them, exactly.

Features have an axis of space before the channels: (…, 3, c). Layers mix channels, or scale vectors by what does not
turn, such as inner products; there are no biases, since no direction is special. Which points of a cloud are near each
other is found once and used by every layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32, Int, Int64
from numba import njit
from torch import Tensor, nn


@dataclass(frozen=True)
class LeakConfig:
    """How vectors are cut against a direction."""

    slope: float = 0.2
    """share that is left of the part against the direction"""
    short: float = 1e-3
    """squared length of a direction that counts half, so that rounding can't turn it about"""


DEFAULT = LeakConfig()


@dataclass(frozen=True)
class Neighbours:
    """The k nearest points of every point, itself among them, in n clouds of p points each."""

    rows: Int[Tensor, "n p k"]
    """rows of the clouds' points listed one after the other"""

    def numbers(self, values: Float[Tensor, "n p c"]) -> Float[Tensor, "n p k c"]:
        """The numbers that belong to the neighbours of every point."""
        return values.flatten(0, 1).index_select(0, self.rows.flatten()).view(*self.rows.shape, -1)

    def vectors(self, values: Float[Tensor, "n p 3 c"]) -> Float[Tensor, "n p 3 k c"]:
        """The vectors that belong to the neighbours of every point."""
        rows = 3 * self.rows[:, :, None] + torch.arange(3, device=values.device)[:, None]
        return values.flatten(0, 2).index_select(0, rows.flatten()).view(*rows.shape, -1)


def find_neighbours(points: Float[Tensor, "n p 3"], count: int) -> Neighbours:
    """The `count` nearest points of every point; all of them in smaller clouds. Nothing is differentiated here."""
    clouds = points.detach().float().cpu().contiguous().numpy()
    nearest = torch.from_numpy(_nearest(clouds, min(count, clouds.shape[1]))).to(points.device)
    starts = torch.arange(len(points), device=points.device)[:, None, None] * points.shape[1]
    return Neighbours(nearest + starts)


@njit(cache=True)
@no_type_check
def _nearest(clouds: Float32[np.ndarray, "n p 3"], count: int) -> Int64[np.ndarray, "n p k"]:
    """By comparing all pairs: at this size quicker than any tree, and than sorting in torch."""
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
    """Each vector loses most of its part against a direction, which is itself a mixture of the vectors."""

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


class EdgeConvolution(nn.Module):
    """The published form: the layers see each neighbour's difference beside the point itself, then the mean is taken.

    With `crosses` they see the cross product of the two as well, which tells left from right.
    """

    def __init__(self, channels_in: int, channels_out: int, layers: int, crosses: bool = False) -> None:
        super().__init__()
        self.crosses = crosses
        self.first = VectorLayer((3 if crosses else 2) * channels_in, channels_out)
        self.others = nn.Sequential(*(VectorLayer(channels_out, channels_out) for _ in range(layers - 1)))

    def forward(self, vectors: Float[Tensor, "n p 3 c"], neighbours: Neighbours) -> Float[Tensor, "n p 3 d"]:
        own = vectors[:, :, :, None]
        difference = neighbours.vectors(vectors) - own
        own = own.expand_as(difference)
        parts = [difference, own]
        if self.crosses:
            parts.append(torch.linalg.cross(difference, own, dim=2))
        edges = torch.cat(parts, -1).transpose(2, 3)
        return self.others(self.first(edges)).mean(2)


class ReceiverConvolution(nn.Module):
    """The light form: what neighbours send is cut against a direction that the receiving point chooses.

    Mean over the neighbours j of the cut (A x_j + B x_i): all products of matrices are done once a point, not an edge.
    """

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
    """Pools each channel over the points, the more of a point the longer its vector is along a mixture of vectors."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.direction = nn.Linear(channels, channels, bias=False)

    def forward(self, vectors: Float[Tensor, "n p 3 c"]) -> Float[Tensor, "n 3 c"]:
        weight = F.softmax((vectors * self.direction(vectors)).sum(2), 1)
        return (weight[:, :, None] * vectors).sum(1)


class Invariants(nn.Module):
    """Vectors seen from a frame that turns with them: three mixtures of themselves. The numbers don't turn at all."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.frame = nn.Linear(channels, 3, bias=False)

    def forward(self, vectors: Float[Tensor, "n 3 c"]) -> Float[Tensor, "n f"]:
        seen = torch.einsum("nac,naf->ncf", vectors, self.frame(vectors)).flatten(1)
        return F.layer_norm(seen, seen.shape[1:])
