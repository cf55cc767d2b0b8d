"""3D rotations by their first two columns (Zhou et al. 2019), the paper's "6DOF" ablation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from diffassemble.diffusion.gaussian import Gaussian
from diffassemble.diffusion.so3 import SPAN
from diffassemble.geometry import Poses


class SixD(Gaussian):
    """3D: translation, then the first and the second column of the rotation; any six numbers mean some rotation."""

    width = 9
    translation_width = 3

    def to_vector(self, poses: Poses) -> Float[Tensor, "n 9"]:
        return torch.cat([SPAN * poses.translation, poses.rotation[:, :, 0], poses.rotation[:, :, 1]], -1)

    def to_poses(self, vector: Float[Tensor, "n 9"]) -> Poses:
        """By Gram–Schmidt: the first column keeps its direction, the second its half-plane."""
        first = F.normalize(vector[:, 3:6], dim=-1)
        along = (first * vector[:, 6:]).sum(-1, keepdim=True)
        second = F.normalize(vector[:, 6:] - along * first, dim=-1)
        rotation = torch.stack([first, second, torch.linalg.cross(first, second)], -1)
        return Poses(rotation, vector[:, :3] / SPAN)
