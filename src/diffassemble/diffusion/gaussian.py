"""Spaces whose states are plain vectors: Gaussian noise, as in Eq. 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.diffusion.schedule import Schedule


class Gaussian:
    """The forward and reverse process of vectors; what the numbers mean is for the subclass to say."""

    width: int
    translation_width: int

    def prior(self, shape: Sequence[int], generator: torch.Generator) -> Float[Tensor, "*n p"]:
        return normal((*shape, self.width), generator)

    def noisy(
        self, clean: Float[Tensor, "*n p"], time: Int[Tensor, "*n"], schedule: Schedule, noise: Float[Tensor, "*n p"]
    ) -> Float[Tensor, "*n p"]:
        return schedule.noisy(clean, time, noise)

    def reverse(
        self,
        current: Float[Tensor, "*n p"],
        clean: Float[Tensor, "*n p"],
        here: Float[Tensor, ""],
        there: Float[Tensor, ""],
        eta: float,
        generator: torch.Generator,
    ) -> Float[Tensor, "*n p"]:
        return gaussian_step(current, clean, here, there, eta, generator)

    def clean(self, raw: Float[Tensor, "*n p"]) -> Float[Tensor, "*n p"]:
        """The numbers themselves: where several poses are possible, the best X₀ is their mean."""
        return raw


def gaussian_step(
    current: Float[Tensor, "*n p"],
    clean: Float[Tensor, "*n p"],
    here: Float[Tensor, ""],
    there: Float[Tensor, ""],
    eta: float,
    generator: torch.Generator,
) -> Float[Tensor, "*n p"]:
    """One reverse step of vectors; with eta = 1 over all T steps its mean is the paper's Eq. 2."""
    noise = (current - here.sqrt() * clean) / (1 - here).sqrt()
    spread = eta * ((1 - there) / (1 - here) * (1 - here / there)).clamp(min=0).sqrt()
    stepped = there.sqrt() * clean + (1 - there - spread**2).clamp(min=0).sqrt() * noise
    if eta > 0 and there < 1:
        stepped = stepped + spread * normal(stepped.shape, generator).to(stepped)
    return stepped


def normal(shape: Sequence[int], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Standard normal numbers, where the generator lives."""
    return torch.randn(tuple(shape), generator=generator, device=generator.device)
