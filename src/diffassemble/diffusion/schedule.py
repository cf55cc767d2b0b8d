"""How much noise at which time (Eq. 1), and the way there and back of states that are plain vectors (Eq. 2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Poses

State = Float[Tensor, "*n p"]
"""a pose in some space, as p numbers"""
Level = Float[Tensor, ""]
"""ᾱ at some time"""


class Schedule:
    """Linear β over `times` steps, ᾱ_t = Π (1 − β_c); time 0 is clean, time T is noise.

    β runs from 1e-4 to 0.02 for 1000 steps and is scaled by 1000 / T for fewer, so that the chain
    really ends in noise (ᾱ_T < 1e-3) whatever T is. T = 1 is the "no diffusion" variant.
    """

    def __init__(self, times: int) -> None:
        scale = 1000 / times
        beta = torch.linspace(1e-4 * scale, 0.02 * scale, times + 1, dtype=torch.double)[1:].clamp(max=0.9999)
        self.times = times
        self.beta = torch.cat([torch.zeros(1, dtype=torch.double), beta])
        self.alpha_bar = torch.cumprod(1 - self.beta, 0).float()

    def noisy(self, clean: State, time: Int[Tensor, "*n"], noise: State) -> State:
        """Eq. 1, a draw from q(x_t | x_0)."""
        alpha_bar = self.alpha_bar.to(clean.device)[time][..., None]
        return alpha_bar.sqrt() * clean + (1 - alpha_bar).sqrt() * noise

    def visited(self, steps: int) -> list[int]:
        """The times that a sampler with `steps` steps visits: from T down to 0, evenly, without repeats."""
        evenly = torch.linspace(self.times, 0, min(steps, self.times) + 1)
        return [int(time) for time in evenly.round()]


class Gaussian(ABC):
    """The forward and reverse process of vectors; subclasses map them to poses.

    A state has `width` numbers a piece, translations first.
    """

    width: ClassVar[int]
    translation_width: ClassVar[int]

    @abstractmethod
    def to_vector(self, poses: Poses) -> Float[Tensor, "n p"]:
        """Clean poses as states."""

    @abstractmethod
    def to_poses(self, vector: Float[Tensor, "n p"]) -> Poses:
        """States, noisy ones too, as poses."""

    def prior(self, shape: Sequence[int], generator: torch.Generator) -> State:
        """Draws of x_T, which are also the noise that `noisy` mixes in."""
        return normal((*shape, self.width), generator)

    def noisy(self, clean: State, time: Int[Tensor, "*n"], schedule: Schedule, noise: State) -> State:
        """x_t out of x_0 and a draw of the prior, distributed as q(x_t | x_0)."""
        return schedule.noisy(clean, time, noise)

    @staticmethod
    def turn_variance(alpha_bar: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        """How far noise turns a rotation about an axis, where there is little of it."""
        return (1 - alpha_bar) / alpha_bar

    @staticmethod
    def reverse(
        current: State, clean: State, here: Level, there: Level, eta: float, generator: torch.Generator
    ) -> State:
        """One step from ᾱ = `here` to the larger ᾱ = `there`, given x_0: eta 0 is DDIM and draws nothing, 1 is DDPM.

        With eta = 1 over all T steps its mean is the paper's Eq. 2.
        """
        noise = (current - here.sqrt() * clean) / (1 - here).sqrt()
        spread = eta * ((1 - there) / (1 - here) * (1 - here / there)).clamp(min=0).sqrt()
        stepped = there.sqrt() * clean + (1 - there - spread**2).clamp(min=0).sqrt() * noise
        if eta > 0 and there < 1:
            stepped = stepped + spread * normal(stepped.shape, generator).to(stepped)
        return stepped

    def clean(self, raw: State) -> State:
        """The predicted x_0 that a network's numbers mean: themselves, the mean where several poses are possible."""
        return raw


def normal(shape: Sequence[int], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Standard normal numbers, where the generator lives."""
    return torch.randn(tuple(shape), generator=generator, device=generator.device)
