"""From noise back to poses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.diffusion.schedule import Schedule

Denoise = Callable[[Float[Tensor, "*n p"], int], Float[Tensor, "*n p"]]


def sample(
    denoise: Denoise,
    start: Float[Tensor, "*n p"],
    schedule: Schedule,
    steps: int,
    generator: torch.Generator,
    eta: float = 0.0,
) -> Iterator[tuple[Float[Tensor, "*n p"], Float[Tensor, "*n p"]]]:
    """Yield (x_t, predicted x_0) after each reverse step; `denoise(x_t, t)` predicts x_0.

    eta = 0 is DDIM; eta = 1 is DDPM, whose mean over all T steps is the paper's Eq. 2.
    """
    current = start
    for time, earlier in pairwise(schedule.visited(steps)):
        clean = denoise(current, time)
        here, there = schedule.alpha_bar[time], schedule.alpha_bar[earlier]
        noise = (current - here.sqrt() * clean) / (1 - here).sqrt()
        spread = eta * ((1 - there) / (1 - here) * (1 - here / there)).clamp(min=0).sqrt()
        current = there.sqrt() * clean + (1 - there - spread**2).clamp(min=0).sqrt() * noise
        if eta > 0 and earlier > 0:
            drawn = torch.randn(current.shape, generator=generator, device=generator.device)
            current = current + spread * drawn.to(current)
        yield current, clean
