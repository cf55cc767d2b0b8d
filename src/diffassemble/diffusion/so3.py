"""3D rotations as what they are: diffusion on SO(3) (Leach et al. 2022, supplementary of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

import roma
import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.diffusion.gaussian import gaussian_step, normal
from diffassemble.diffusion.igso3 import UNIFORM, normal_of, rotation_of
from diffassemble.diffusion.schedule import Schedule
from diffassemble.geometry import Poses

SPAN = 2.0
"""whole objects have longest side 1; in a state they span [−1, 1], as boards do"""
_DAMPING = 1e-2


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
        return Poses(rotations(vector), vector[:, :3] / SPAN)

    def prior(self, shape: Sequence[int], generator: torch.Generator) -> Float[Tensor, "*n 12"]:
        translation, turn = normal((*shape, 6), generator).split(3, -1)
        return join(translation, rotation_of(turn, turn.new_tensor(UNIFORM)))

    def noisy(
        self, clean: Float[Tensor, "*n 12"], time: Int[Tensor, "*n"], schedule: Schedule, noise: Float[Tensor, "*n 12"]
    ) -> Float[Tensor, "*n 12"]:
        alpha_bar = schedule.alpha_bar.to(clean.device)[time]
        translation = schedule.noisy(clean[..., :3], time, noise[..., :3])
        turn = normal_of(rotations(noise), noise.new_tensor(UNIFORM))
        mean = scale(rotations(clean), alpha_bar.sqrt())
        return join(translation, mean @ rotation_of(turn, spread_at(alpha_bar)))

    def reverse(
        self,
        current: Float[Tensor, "*n 12"],
        clean: Float[Tensor, "*n 12"],
        here: Float[Tensor, ""],
        there: Float[Tensor, ""],
        eta: float,
        generator: torch.Generator,
    ) -> Float[Tensor, "*n 12"]:
        """As for vectors; spreads add up by their squares, so old and fresh noise together have spread ε_s."""
        translation = gaussian_step(current[..., :3], clean[..., :3], here, there, eta, generator)
        target = rotations(clean)
        old, new = (spread_at(bar.to(current)) for bar in (here, there))
        noise = scale(target, here.sqrt()).transpose(-1, -2) @ rotations(current)
        fresh = eta * new * (1 - (new / old) ** 2).clamp(min=0).sqrt()
        kept = (new**2 - fresh**2).clamp(min=0).sqrt()
        rotation = scale(target, there.sqrt()) @ rotation_of(normal_of(noise, old), kept)
        if eta > 0 and there < 1:
            rotation = rotation @ rotation_of(normal(translation.shape, generator).to(current), fresh)
        return join(translation, rotation)

    def clean(self, raw: Float[Tensor, "*n 12"]) -> Float[Tensor, "*n 12"]:
        """The rotation nearest to nine numbers; gradients are bounded where several are equally near."""
        raw = raw.float()
        return join(raw[..., :3], roma.special_procrustes(rotations(raw), gradient_eps=_DAMPING))


def spread_at(alpha_bar: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """ε_t of the rotation noise: Brownian motion that has gained variance Σ −ln(1 − β) an axis."""
    return (-0.5 * torch.log(alpha_bar)).clamp(min=0).sqrt()


def scale(rotation: Float[Tensor, "*n 3 3"], share: Float[Tensor, "*#n"]) -> Float[Tensor, "*n 3 3"]:
    """λ(γ, R) = exp(γ log R), the geodesic from the identity to R."""
    return roma.rotvec_to_rotmat(share[..., None] * roma.rotmat_to_rotvec(rotation))


def rotations(state: Float[Tensor, "*n 12"]) -> Float[Tensor, "*n 3 3"]:
    """The nine numbers after the translation, as matrices."""
    return state[..., 3:].unflatten(-1, (3, 3))


def join(translation: Float[Tensor, "*n 3"], rotation: Float[Tensor, "*n 3 3"]) -> Float[Tensor, "*n 12"]:
    """States out of their two parts."""
    return torch.cat([translation, rotation.flatten(-2)], -1)
