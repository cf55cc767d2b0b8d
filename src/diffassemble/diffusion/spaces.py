"""The spaces that poses are noised and predicted in, and the way from noise back to poses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import Poses
from diffassemble.diffusion.schedule import Gaussian, Schedule, State
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


class Plane(Gaussian):
    """2D with free angles: (x, y, cos θ, sin θ), where noise turns a piece and leaves it a rigid one."""

    width = 4
    translation_width = 2

    def to_vector(self, poses: Poses) -> Float[Tensor, "n 4"]:
        return torch.cat([SPAN * poses.translation, poses.rotation[:, :, 0]], -1)

    def to_poses(self, vector: Float[Tensor, "n 4"]) -> Poses:
        cosine, sine = F.normalize(vector[:, 2:], dim=-1).unbind(-1)
        rotation = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
        return Poses(rotation, vector[:, :2] / SPAN)


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


class Rotations(NamedTuple):
    """The rotations of the plane or of space: their axes, the volume of the group, and the nearest one to a matrix."""

    axes: int
    volume: float
    nearest: Callable[[Float[Tensor, "n d d"]], Float[Tensor, "n d d"]]


def _nearest_in_plane(matrices: Float[Tensor, "n 2 2"]) -> Float[Tensor, "n 2 2"]:
    angle = torch.atan2(matrices[:, 1, 0] - matrices[:, 0, 1], matrices[:, 0, 0] + matrices[:, 1, 1])
    return torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1).view_as(matrices)


def _nearest_in_space(matrices: Float[Tensor, "n 3 3"]) -> Float[Tensor, "n 3 3"]:
    import roma

    return roma.special_procrustes(matrices)


ROTATIONS = {2: Rotations(1, 2 * math.pi, _nearest_in_plane), 3: Rotations(3, 8 * math.pi**2, _nearest_in_space)}
"""by dimension"""
Space = Gaussian | SO3
"""How poses become states, and how states are noised and denoised.

A state need not be an element of a vector space: only the space itself knows how to mix two of them.
"""
SPACES: dict[str, Space] = {
    "cos_sin": CosSin(),
    "plane": Plane(),
    "so3": SO3(),
    "six_d": SixD(),
    "quaternion": Quaternion(),
}


def sample(
    denoise: Callable[[State, int], State],
    start: State,
    space: Space,
    schedule: Schedule,
    steps: int,
    generator: torch.Generator,
    eta: float = 0.0,
) -> Iterator[tuple[State, State]]:
    """Yield (x_t, predicted x_0) after each reverse step; `denoise(x_t, t)` predicts x_0.

    eta = 0 is DDIM; eta = 1 is DDPM, whose mean over all T steps is the paper's Eq. 2.
    """
    current = start
    for time, earlier in pairwise(schedule.visited(steps)):
        clean = denoise(current, time)
        here, there = schedule.alpha_bar[time], schedule.alpha_bar[earlier]
        current = space.reverse(current, clean, here, there, eta, generator)
        yield current, clean
