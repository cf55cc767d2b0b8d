"""The chain ends in noise, and its draws have the mean and variance of Eq. 1."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffassemble.diffusion.schedule import Schedule

TIMES = (1, 10, 100, 300, 1000)


@pytest.mark.parametrize("times", TIMES)
def test_the_chain_ends_in_noise(times: int) -> None:
    schedule = Schedule(times)
    assert schedule.alpha_bar[0] == 1
    assert 0 < schedule.alpha_bar[-1] < 1e-3
    assert len(schedule.alpha_bar) == times + 1
    assert (schedule.alpha_bar[1:] < schedule.alpha_bar[:-1]).all()


@pytest.mark.parametrize("times", TIMES)
def test_alpha_bar_is_the_product_of_what_each_step_leaves(times: int) -> None:
    schedule, left = Schedule(times), 1.0
    for time in range(1, times + 1):
        beta = float(schedule.beta[time])
        assert 0 < beta < 1
        left *= 1 - beta
        assert schedule.alpha_bar[time].item() == pytest.approx(left, rel=1e-5)


@pytest.mark.parametrize("times", [100, 300, 1000])
def test_beta_is_linear_and_grows_to_two_percent_of_a_thousand_steps(times: int) -> None:
    beta = Schedule(times).beta[1:]
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


def test_every_piece_has_its_own_time() -> None:
    schedule = Schedule(50)
    clean, noise = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(0))
    time = torch.arange(15).view(3, 5)
    together = schedule.noisy(clean, time, noise)
    assert torch.equal(together[0, 0], clean[0, 0])  # time 0 is clean
    for row in range(3):
        for col in range(5):
            alone = schedule.noisy(clean[row, col], time[row, col], noise[row, col])
            assert torch.equal(together[row, col], alone)


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
