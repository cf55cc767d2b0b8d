"""Pieces whose places somebody knows already."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from diffassemble.geometry import Poses


@dataclass(frozen=True)
class Locks:
    """Where `held`, the pose of a piece is settled and solvers leave it as it is; the other poses mean nothing."""

    held: Bool[Tensor, "n"]
    poses: Poses

    def __getitem__(self, index: Int[Tensor, "m"]) -> Locks:
        return Locks(self.held[index], self.poses[index])

    def applied(self, poses: Poses) -> Poses:
        """The same poses, with the settled ones as they are settled."""
        return Poses(
            torch.where(self.held[:, None, None], self.poses.rotation, poses.rotation),
            torch.where(self.held[:, None], self.poses.translation, poses.translation),
        )
