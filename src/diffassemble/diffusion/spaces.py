"""The spaces that poses are noised and predicted in, and the way from noise back to poses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Poses
from diffassemble.diffusion.rotations import UNIFORM, normal_of, rotation_of, scale, spread_at
from diffassemble.diffusion.schedule import Gaussian, Level, Schedule, State, normal

SPAN = 2.0
"""whole objects have longest side 1; in a state they span [−1, 1], as boards do"""


@dataclass(frozen=True)
class CosSin(Gaussian):
    """2D: (x, y, cos θ, sin θ), places multiplied by `span`.

    The map to matrices is linear, so that noisy vectors are noisy Poses; with `rigid`, cos θ and sin θ are normalised.
    """

    span: float = 1.0
    rigid: bool = False
    width: ClassVar[int] = 4
    translation_width: ClassVar[int] = 2

    def to_vector(self, poses: Poses) -> Float[Tensor, "n 4"]:
        return torch.cat([self.span * poses.translation, poses.rotation[:, :, 0]], -1)

    def to_poses(self, vector: Float[Tensor, "n 4"]) -> Poses:
        cosine, sine = (F.normalize(vector[:, 2:], dim=-1) if self.rigid else vector[:, 2:]).unbind(-1)
        rotation = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
        return Poses(rotation, vector[:, :2] / self.span)


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


class SO3:
    """3D: translation, then the rotation matrix row by row. Every state, also a noisy one, holds a true rotation.

    Forward: R_t = λ(√ᾱ_t, R₀) E with E of spread ε_t, where λ(γ, R) = exp(γ log R) and ε_t² = −½ ln ᾱ_t. For little
    noise that is the variance 1 − ᾱ_t an axis of Eq. 1. With ε_t² = 1 − ᾱ_t the chain would end at ε = 1, whose mean
    rotation is still e⁻² of the identity; so it ends within 1.3 ᾱ_T of uniform (distribution of the angle), and all
    that a step of E adds is its own β_t.

    Reverse: E^ = λ(√ᾱ_t, R̂₀)ᵀ R_t keeps its axis and goes to the angle that is as probable at ε_s as its own is at
    ε_t: plain scaling by ε_s / ε_t if both are small. So with a perfect R̂₀ every step is a draw of the forward process.
    """

    width = 12
    translation_width = 3

    def to_vector(self, poses: Poses) -> Float[Tensor, "n 12"]:
        return torch.cat([SPAN * poses.translation, poses.rotation.flatten(1)], -1)

    def to_poses(self, vector: Float[Tensor, "n 12"]) -> Poses:
        return Poses(self._rotation(vector), vector[:, :3] / SPAN)

    def prior(self, shape: Sequence[int], generator: torch.Generator) -> Float[Tensor, "*n 12"]:
        translation, turn = normal((*shape, 6), generator).split(3, -1)
        return _joined(translation, rotation_of(turn, turn.new_tensor(UNIFORM)))

    def noisy(self, clean: State, time: Int[Tensor, "*n"], schedule: Schedule, noise: State) -> State:
        alpha_bar = schedule.alpha_bar.to(clean.device)[time]
        translation = schedule.noisy(clean[..., :3], time, noise[..., :3])
        turn = normal_of(self._rotation(noise), noise.new_tensor(UNIFORM))
        mean = scale(self._rotation(clean), alpha_bar.sqrt())
        return _joined(translation, mean @ rotation_of(turn, spread_at(alpha_bar)))

    @staticmethod
    def turn_variance(alpha_bar: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        """How far noise turns a rotation about an axis, where there is little of it."""
        return 2 * spread_at(alpha_bar) ** 2

    def reverse(
        self, current: State, clean: State, here: Level, there: Level, eta: float, generator: torch.Generator
    ) -> State:
        """As for vectors; spreads add up by their squares, so old and fresh noise together have spread ε_s."""
        translation = Gaussian.reverse(current[..., :3], clean[..., :3], here, there, eta, generator)
        target = self._rotation(clean)
        old, new = (spread_at(bar.to(current)) for bar in (here, there))
        noise = scale(target, here.sqrt()).transpose(-1, -2) @ self._rotation(current)
        fresh = eta * new * (1 - (new / old) ** 2).clamp(min=0).sqrt()
        kept = (new**2 - fresh**2).clamp(min=0).sqrt()
        rotation = scale(target, there.sqrt()) @ rotation_of(normal_of(noise, old), kept)
        if eta > 0 and there < 1:
            rotation = rotation @ rotation_of(normal(translation.shape, generator).to(current), fresh)
        return _joined(translation, rotation)

    def clean(self, raw: Float[Tensor, "*n 12"]) -> Float[Tensor, "*n 12"]:
        """The rotation nearest to nine numbers; gradients are bounded where several are equally near."""
        import roma

        raw = raw.float()
        return _joined(raw[..., :3], roma.special_procrustes(self._rotation(raw), gradient_eps=1e-2))

    @staticmethod
    def _rotation(state: Float[Tensor, "*n 12"]) -> Float[Tensor, "*n 3 3"]:
        return state[..., 3:].unflatten(-1, (3, 3))


def _joined(translation: Float[Tensor, "*n 3"], rotation: Float[Tensor, "*n 3 3"]) -> Float[Tensor, "*n 12"]:
    return torch.cat([translation, rotation.flatten(-2)], -1)


Space = Gaussian | SO3
"""How poses become states, and how states are noised and denoised.

A state need not be an element of a vector space: only the space itself knows how to mix two of them.
"""
SPACES: dict[str, Space] = {
    "cos_sin": CosSin(),
    "plane": CosSin(SPAN, rigid=True),
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
