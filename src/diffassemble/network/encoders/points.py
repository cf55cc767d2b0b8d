"""Features of pieces by points on their surface (section 3.1), exactly equivariant to rotations of space.

Features are `vectors` times three numbers, which turn with the piece, then numbers that don't: for the equivariant
encoder only the piece's extents. The invariant and plain variants, for the ablation and the baselines, have no vectors.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.network.encoders.image import Symmetry
from diffassemble.network.encoders.vector_neurons import (
    EdgeConvolution,
    Invariants,
    Neighbours,
    ReceiverConvolution,
    SoftMaximum,
    VectorLayer,
    find_neighbours,
    unit_scale,
)

EXTENTS = 3


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


PointBackbone = Literal["vn_dgcnn", "vn_dgcnn_published", "dgcnn", "pointnet"]
VECTOR_NETWORKS: dict[str, type[LightNetwork] | type[PublishedNetwork]] = {
    "vn_dgcnn": LightNetwork,
    "vn_dgcnn_published": PublishedNetwork,
}
PLAIN_NETWORKS: dict[str, type[DGCNN] | type[PointNet]] = {"dgcnn": DGCNN, "pointnet": PointNet}
PointNetwork = LightNetwork | PublishedNetwork | DGCNN | PointNet


class PointEncoder(nn.Module):
    """Clouds (n, p, 3) about their origins → (n, width): 3 · `features` learnt numbers and three extents.

    Large clouds are thinned to their first points, which must be in random order. Nothing depends on other fragments.
    So many pairs of neighbours are looked at together that they stay within the processor's cache.
    """

    def __init__(self, backbone: PointBackbone, symmetry: Symmetry, features: int, pairs: int = 16384) -> None:
        super().__init__()
        self.pairs = pairs
        self.symmetry = symmetry
        self.features = features
        if symmetry == "plain":
            self.network: PointNetwork = PLAIN_NETWORKS[backbone](3 * features)
        else:
            self.network = VECTOR_NETWORKS[backbone](features)
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
        seen = torch.cat([self._encode(part) for part in few.split(together)])
        return torch.cat([seen, extents(points).to(seen)], -1)

    def _encode(self, points: Float[Tensor, "n p 3"]) -> Float[Tensor, "n f"]:
        radius = points.square().sum(-1).mean(-1).sqrt()[:, None, None]
        points = points / radius.clamp(min=1e-6)
        encoded = self.network(points, find_neighbours(points, self.network.neighbours))
        if self.symmetry == "plain":
            return F.layer_norm(encoded, encoded.shape[1:])
        # All vectors of a fragment together, which keeps the symmetry; of one without any direction, little is made.
        vectors = encoded * (encoded.square().mean((1, 2), keepdim=True) + 1e-3).rsqrt()
        return vectors.mT.flatten(1) if self.invariants is None else self.invariants(vectors)

    def turned(self, features: Float[Tensor, "*n f"], rotation: Float[Tensor, "*n 3 3"]) -> Float[Tensor, "*n f"]:
        """The features of the fragments turned by these rotations, without encoding them anew."""
        vectors, others = features.split([3 * self.vectors, features.shape[-1] - 3 * self.vectors], -1)
        moved = vectors.unflatten(-1, (self.vectors, 3)) @ rotation.mT.to(features)
        return torch.cat([moved.flatten(-2), others], -1)


def extents(points: Float[Tensor, "n p 3"]) -> Float[Tensor, "n 3"]:
    """How large fragments are along their principal axes: logarithms of the root mean squares, about unit scale."""
    covariance = points.mT.double() @ points.double() / points.shape[1]
    return torch.linalg.eigvalsh(covariance).clamp(min=1e-6).log().float() / 2 + 2.5
