"""Rigid motions of n things in d dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Poses:
    """Where each piece stands: x_assembled = rotation @ x_piece + translation.

    `rotation` need not be orthogonal: noisy poses are Poses too, and composition stays linear in them.
    """

    rotation: Float[Tensor, "n d d"]
    translation: Float[Tensor, "n d"]

    @staticmethod
    def identity(count: int, dimension: int) -> Poses:
        """`count` poses that move nothing."""
        return Poses(torch.eye(dimension).repeat(count, 1, 1), torch.zeros(count, dimension))

    def __len__(self) -> int:
        return len(self.translation)

    def __getitem__(self, index: Tensor | slice | list[int]) -> Poses:
        return Poses(self.rotation[index], self.translation[index])

    def __matmul__(self, other: Poses) -> Poses:
        """`(a @ b).apply(x) == a.apply(b.apply(x))`, pose by pose."""
        moved = (self.rotation @ other.translation[..., None])[..., 0]
        return Poses(self.rotation @ other.rotation, moved + self.translation)

    def inverse(self) -> Poses:
        """The motions that undo these; rotations must be orthogonal."""
        back = self.rotation.transpose(-1, -2)
        return Poses(back, -(back @ self.translation[..., None])[..., 0])

    def apply(self, points: Float[Tensor, "n p d"]) -> Float[Tensor, "n p d"]:
        """Move each piece's points from its own frame into the assembled frame."""
        return points @ self.rotation.transpose(-1, -2) + self.translation[:, None]
