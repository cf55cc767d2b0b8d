"""From noise back to poses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch

from diffassemble.diffusion.schedule import Schedule, State
from diffassemble.diffusion.spaces import Space


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
