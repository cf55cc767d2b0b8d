"""Spaces whose states are plain vectors: Gaussian noise, as in Eq. 1 and 2."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Poses
from diffassemble.diffusion.schedule import Schedule


class Gaussian(ABC):
    """The forward and reverse process of vectors; what the numbers mean is for the subclass to say.

    A state has `width` numbers a piece, translations first.
    """

    width: int
    translation_width: int

    @abstractmethod
    def to_vector(self, poses: Poses) -> Float[Tensor, "n p"]:
        """Clean poses as states."""

    @abstractmethod
    def to_poses(self, vector: Float[Tensor, "n p"]) -> Poses:
        """States, noisy ones too, as poses."""

    def prior(self, shape: Sequence[int], generator: torch.Generator) -> Float[Tensor, "*n p"]:
        """Draws of x_T, which are also the noise that `noisy` mixes in."""
        return normal((*shape, self.width), generator)

    def noisy(
        self, clean: Float[Tensor, "*n p"], time: Int[Tensor, "*n"], schedule: Schedule, noise: Float[Tensor, "*n p"]
    ) -> Float[Tensor, "*n p"]:
        """x_t out of x_0 and a draw of the prior, distributed as q(x_t | x_0)."""
        return schedule.noisy(clean, time, noise)

    @staticmethod
    def reverse(
        current: Float[Tensor, "*n p"],
        clean: Float[Tensor, "*n p"],
        here: Float[Tensor, ""],
        there: Float[Tensor, ""],
        eta: float,
        generator: torch.Generator,
    ) -> Float[Tensor, "*n p"]:
        """One step from ᾱ = `here` to the larger ᾱ = `there`, given x_0: eta 0 is DDIM and draws nothing, 1 is DDPM.

        With eta = 1 over all T steps its mean is the paper's Eq. 2.
        """
        noise = (current - here.sqrt() * clean) / (1 - here).sqrt()
        spread = eta * ((1 - there) / (1 - here) * (1 - here / there)).clamp(min=0).sqrt()
        stepped = there.sqrt() * clean + (1 - there - spread**2).clamp(min=0).sqrt() * noise
        if eta > 0 and there < 1:
            stepped = stepped + spread * normal(stepped.shape, generator).to(stepped)
        return stepped

    def clean(self, raw: Float[Tensor, "*n p"]) -> Float[Tensor, "*n p"]:
        """The predicted x_0 that a network's numbers mean: themselves, the mean where several poses are possible."""
        return raw


def normal(shape: Sequence[int], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Standard normal numbers, where the generator lives."""
    return torch.randn(tuple(shape), generator=generator, device=generator.device)
