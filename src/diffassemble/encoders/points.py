"""Features of fragments by points on their surface, exactly equivariant to rotations of space.

Features are `vectors` times three numbers, which turn with the fragment, then numbers that don't: for the equivariant
encoder only the fragment's extents. The invariant and plain variants, for the ablation, have no vectors.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.encoders.image import Symmetry
from diffassemble.encoders.neighbours import find_neighbours
from diffassemble.encoders.plain_points import DGCNN, PointNet
from diffassemble.encoders.vector_networks import LightNetwork, PublishedNetwork
from diffassemble.encoders.vector_neurons import Invariants
from diffassemble.puzzle import InputError

PointBackbone = Literal["vn_dgcnn", "vn_dgcnn_published", "dgcnn", "pointnet"]
VECTOR_NETWORKS: dict[str, type[LightNetwork] | type[PublishedNetwork]] = {
    "vn_dgcnn": LightNetwork,
    "vn_dgcnn_published": PublishedNetwork,
}
PLAIN_NETWORKS: dict[str, type[DGCNN] | type[PointNet]] = {"dgcnn": DGCNN, "pointnet": PointNet}
PointNetwork = LightNetwork | PublishedNetwork | DGCNN | PointNet
EXTENTS = 3
_EDGES = 16384
"""pairs of neighbours that are looked at together, so that they stay within the processor's cache"""


class PointEncoder(nn.Module):
    """Clouds (n, p, 3) about their origins → (n, width): 3 · `features` learnt numbers and three extents.

    Large clouds are thinned to their first points, which must be in random order. Nothing depends on other fragments.
    """

    def __init__(self, backbone: PointBackbone, symmetry: Symmetry, features: int) -> None:
        super().__init__()
        if (symmetry == "plain") == (backbone in VECTOR_NETWORKS):
            names = " or ".join(f"'{name}'" for name in (PLAIN_NETWORKS if symmetry == "plain" else VECTOR_NETWORKS))
            raise InputError(f"backbone '{backbone}' is not {symmetry}; use {names}")
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
        together = max(1, _EDGES // (few.shape[1] * max(1, self.network.neighbours)))
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
