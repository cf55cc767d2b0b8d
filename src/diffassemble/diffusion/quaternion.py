"""3D rotations by unit quaternions."""

from __future__ import annotations

import roma
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from diffassemble.diffusion.gaussian import Gaussian
from diffassemble.diffusion.so3 import SPAN
from diffassemble.geometry import Poses


class Quaternion(Gaussian):
    """3D: translation, then the unit quaternion, scalar first; of q and −q, the one whose scalar is not negative."""

    width = 7
    translation_width = 3

    def to_vector(self, poses: Poses) -> Float[Tensor, "n 7"]:
        turned = roma.quat_xyzw_to_wxyz(roma.rotmat_to_unitquat(poses.rotation))
        turned = torch.where(turned[:, :1] < 0, -turned, turned)
        return torch.cat([SPAN * poses.translation, turned], -1)

    def to_poses(self, vector: Float[Tensor, "n 7"]) -> Poses:
        unit = roma.quat_wxyz_to_xyzw(F.normalize(vector[:, 3:], dim=-1))
        return Poses(roma.unitquat_to_rotmat(unit), vector[:, :3] / SPAN)
