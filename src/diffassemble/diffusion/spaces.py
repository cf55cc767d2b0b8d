"""The spaces that poses are noised and predicted in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Poses
from diffassemble.diffusion.gaussian import Gaussian
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.so3 import SO3, SPAN


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


class SixD(Gaussian):
    """3D: translation, then the first two columns of the rotation (Zhou et al. 2019), the paper's "6DOF" ablation."""

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


class Quaternion(Gaussian):
    """3D: translation, then the unit quaternion, scalar first; of q and −q, the one whose scalar is not negative."""

    width = 7
    translation_width = 3

    def to_vector(self, poses: Poses) -> Float[Tensor, "n 7"]:
        import roma

        turned = roma.quat_xyzw_to_wxyz(roma.rotmat_to_unitquat(poses.rotation))
        turned = torch.where(turned[:, :1] < 0, -turned, turned)
        return torch.cat([SPAN * poses.translation, turned], -1)

    def to_poses(self, vector: Float[Tensor, "n 7"]) -> Poses:
        import roma

        unit = roma.quat_wxyz_to_xyzw(F.normalize(vector[:, 3:], dim=-1))
        return Poses(roma.unitquat_to_rotmat(unit), vector[:, :3] / SPAN)


@runtime_checkable
class Space(Protocol):
    """How poses become states of `width` numbers a piece, translations first, and how states are noised and denoised.

    A state need not be an element of a vector space: only the space itself knows how to mix two of them.
    """

    width: int
    translation_width: int

    def to_vector(self, poses: Poses) -> Float[Tensor, "n p"]:
        """Clean poses as states."""
        ...

    def to_poses(self, vector: Float[Tensor, "n p"]) -> Poses:
        """States, noisy ones too, as poses."""
        ...

    def prior(self, shape: Sequence[int], generator: torch.Generator) -> Float[Tensor, "*n p"]:
        """Draws of x_T, which are also the noise that `noisy` mixes in."""
        ...

    def noisy(
        self, clean: Float[Tensor, "*n p"], time: Int[Tensor, "*n"], schedule: Schedule, noise: Float[Tensor, "*n p"]
    ) -> Float[Tensor, "*n p"]:
        """x_t out of x_0 and a draw of the prior, distributed as q(x_t | x_0)."""
        ...

    def reverse(
        self,
        current: Float[Tensor, "*n p"],
        clean: Float[Tensor, "*n p"],
        here: Float[Tensor, ""],
        there: Float[Tensor, ""],
        eta: float,
        generator: torch.Generator,
    ) -> Float[Tensor, "*n p"]:
        """One step from ᾱ = `here` to the larger ᾱ = `there`, given x_0: eta 0 is DDIM and draws nothing, 1 is DDPM."""
        ...

    def clean(self, raw: Float[Tensor, "*n p"]) -> Float[Tensor, "*n p"]:
        """The predicted x_0 that the raw numbers of a network mean."""
        ...


SPACES: dict[str, Space] = {"cos_sin": CosSin(), "so3": SO3(), "six_d": SixD(), "quaternion": Quaternion()}
