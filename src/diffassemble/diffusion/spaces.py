"""Poses as the vectors that are noised and predicted."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.geometry import Poses


@runtime_checkable
class Space(Protocol):
    """A vector form of poses: `width` numbers a piece."""

    width: int
    translation_width: int

    def to_vector(self, poses: Poses) -> Float[Tensor, "n p"]: ...

    def to_poses(self, vector: Float[Tensor, "n p"]) -> Poses: ...


class CosSin:
    """2D: (x, y, cos θ, sin θ). The map to matrices is linear, so noisy vectors become noisy Poses."""

    width = 4
    translation_width = 2

    def to_vector(self, poses: Poses) -> Float[Tensor, "n 4"]:
        return torch.cat([poses.translation, poses.rotation[:, :, 0]], -1)

    def to_poses(self, vector: Float[Tensor, "n 4"]) -> Poses:
        cosine, sine = vector[:, 2], vector[:, 3]
        rotation = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
        return Poses(rotation, vector[:, :2])


SPACES: dict[str, Space] = {"cos_sin": CosSin()}
