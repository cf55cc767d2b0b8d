"""The schedule, and the way back from noise with perfect denoisers."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core.seeds import seeded
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.spaces import CosSin, sample

TIMES = (1, 10, 100, 300, 1000)


@pytest.mark.parametrize("times", TIMES)
def test_beta_is_linear_and_alpha_bar_falls_from_one_to_noise(times: int) -> None:
    schedule = Schedule(times)
    assert schedule.alpha_bar[0] == 1
    assert 0 < schedule.alpha_bar[-1] < 1e-3
    assert len(schedule.alpha_bar) == times + 1
    assert (schedule.alpha_bar.diff() < 0).all()
    if times >= 100:
        beta = schedule.beta[1:]
        torch.testing.assert_close(beta.diff(), beta.diff().mean().expand(times - 1))
        assert beta[-1].item() == pytest.approx(0.02 * 1000 / times)


@pytest.mark.parametrize("time", [1, 30, 100, 300])
def test_draws_have_the_mean_and_variance_of_equation_1(time: int) -> None:
    schedule, count = Schedule(300), 100_000
    clean = torch.tensor([0.7, -1.0, 0.0, 1.0]).expand(count, 4)
    noise = torch.randn(count, 4, generator=torch.Generator().manual_seed(0))
    drawn = schedule.noisy(clean, torch.full((count,), time), noise).double()
    alpha_bar = float(schedule.alpha_bar[time])
    error = 5 * ((1 - alpha_bar) / count) ** 0.5
    torch.testing.assert_close(drawn.mean(0), alpha_bar**0.5 * clean[0].double(), rtol=0, atol=error)
    spread = torch.full((4,), 1 - alpha_bar, dtype=torch.double)
    torch.testing.assert_close(drawn.var(0), spread, rtol=5 * (2 / count) ** 0.5, atol=0)


@settings(deadline=None)
@given(st.integers(1, 1000), st.integers(1, 1500))
def test_visited_times_fall_from_the_last_to_zero_evenly_without_repeats(times: int, steps: int) -> None:
    visited = Schedule(times).visited(steps)
    taken = min(steps, times)
    assert visited[0] == times
    assert visited[-1] == 0
    assert len(visited) == taken + 1
    falls = [later - earlier for later, earlier in pairwise(visited)]
    assert min(falls) >= 1
    assert max(falls) - min(falls) <= 2
    assert all(abs(time - times * (1 - index / taken)) <= 0.5 + 1e-3 for index, time in enumerate(visited))


SPACE = CosSin()


def wobbly(noisy: Tensor, time: int) -> Tensor:
    """A denoiser that depends on all it is given."""
    return torch.tanh(noisy.flip(-1) + 0.3) * (1 + 0.01 * time)


@pytest.mark.parametrize("times", [20, 100, 300])
def test_ddpm_over_all_times_is_equation_2(times: int) -> None:
    """X̂_{t−1} = (X_t − (1 − α_t) / √(1 − ᾱ_t) ε) / √α_t, plus noise of the posterior's variance."""
    schedule = Schedule(times)
    alpha_bar = torch.cumprod(1 - schedule.beta, 0)
    current, draws = torch.randn(5, 4, generator=seeded(0)), seeded(1)
    chain = list(sample(wobbly, current, SPACE, schedule, times, seeded(1), eta=1.0))
    for time, (stepped, clean) in zip(range(times, 0, -1), chain, strict=True):
        torch.testing.assert_close(clean, wobbly(current, time))
        noise = (current - alpha_bar[time].sqrt() * clean) / (1 - alpha_bar[time]).sqrt()
        beta = schedule.beta[time]
        mean = (current - beta / (1 - alpha_bar[time]).sqrt() * noise) / (1 - beta).sqrt()
        variance = beta * (1 - alpha_bar[time - 1]) / (1 - alpha_bar[time])
        drawn = torch.randn(5, 4, generator=draws) if time > 1 else torch.zeros(5, 4)
        torch.testing.assert_close(stepped, (mean + variance.sqrt() * drawn).float(), rtol=1e-4, atol=1e-4)
        current = stepped
