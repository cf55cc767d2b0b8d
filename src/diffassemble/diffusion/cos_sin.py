"""2D poses as (x, y, cos θ, sin θ)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.diffusion.gaussian import Gaussian
from diffassemble.geometry import Poses


class CosSin(Gaussian):
    """2D: (x, y, cos θ, sin θ). The map to matrices is linear, so noisy vectors become noisy Poses."""

    width = 4
    translation_width = 2

    def to_vector(self, poses: Poses) -> Float[Tensor, "n 4"]:
        return torch.cat([poses.translation, poses.rotation[:, :, 0]], -1)

    def to_poses(self, vector: Float[Tensor, "n 4"]) -> Poses:
        cosine, sine = vector[:, 2], vector[:, 3]
        rotation = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
        return Poses(rotation, vector[:, :2])
