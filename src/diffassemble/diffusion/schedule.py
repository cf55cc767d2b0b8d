"""How much noise at which time."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


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

    def noisy(
        self, clean: Float[Tensor, "*n p"], time: Int[Tensor, "*n"], noise: Float[Tensor, "*n p"]
    ) -> Float[Tensor, "*n p"]:
        """Eq. 1, a draw from q(x_t | x_0)."""
        alpha_bar = self.alpha_bar.to(clean.device)[time][..., None]
        return alpha_bar.sqrt() * clean + (1 - alpha_bar).sqrt() * noise

    def visited(self, steps: int) -> list[int]:
        """The times that a sampler with `steps` steps visits: from T down to 0, evenly, without repeats."""
        evenly = torch.linspace(self.times, 0, min(steps, self.times) + 1)
        return [int(time) for time in evenly.round()]
