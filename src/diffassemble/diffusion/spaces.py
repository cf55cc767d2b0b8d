"""The spaces that poses are noised and predicted in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.diffusion.cos_sin import CosSin
from diffassemble.diffusion.quaternion import Quaternion
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.six_d import SixD
from diffassemble.diffusion.so3 import SO3
from diffassemble.geometry import Poses


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
