"""Reverse chains with a denoiser that knows the truth, against closed forms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diffassemble.core import Poses
from diffassemble.diffusion.gaussian import Gaussian
from diffassemble.diffusion.samplers import sample
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.spaces import CosSin

SPACE = CosSin()
TRUTH = torch.tensor([[0.5, -0.5, 0.0, 1.0], [-0.25, 0.75, -1.0, 0.0], [0.0, 0.0, 1.0, 0.0]])


class Line(Gaussian):
    """One number a piece."""

    width = 1
    translation_width = 1

    def to_vector(self, poses: Poses) -> Tensor:
        return poses.translation

    def to_poses(self, vector: Tensor) -> Poses:
        return Poses(torch.ones(len(vector), 1, 1), vector)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def oracle(noisy: Tensor, time: int) -> Tensor:
    return TRUTH.expand_as(noisy)


def wobbly(noisy: Tensor, time: int) -> Tensor:
    """A denoiser that depends on all it is given."""
    return torch.tanh(noisy.flip(-1) + 0.3) * (1 + 0.01 * time)


@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize("times", [1, 10, 300, 1000])
@pytest.mark.parametrize("steps", [1, 2, 7, 5000])
def test_a_perfect_denoiser_leads_to_the_truth(eta: float, times: int, steps: int) -> None:
    start = torch.randn(3, 4, generator=seeded(0))
    chain = list(sample(oracle, start, SPACE, Schedule(times), steps, seeded(1), eta))
    assert len(chain) == min(steps, times)
    torch.testing.assert_close(chain[-1][0], TRUTH, rtol=0, atol=1e-6)


@pytest.mark.parametrize("steps", [3, 17, 300])
def test_ddim_steps_follow_the_forward_process(steps: int) -> None:
    """With a perfect x₀, x_t stays √ᾱ_t x₀ + √(1 − ᾱ_t) ε with the ε it began with: without it, the mean."""
    schedule = Schedule(300)
    for noise in (torch.zeros(3, 4), torch.randn(3, 4, generator=seeded(0))):
        start = schedule.noisy(TRUTH, torch.full((3,), 300), noise)
        chain = sample(oracle, start, SPACE, schedule, steps, seeded(1))
        for time, (current, clean) in zip(schedule.visited(steps)[1:], chain, strict=True):
            torch.testing.assert_close(current, schedule.noisy(TRUTH, torch.full((3,), time), noise))
            assert torch.equal(clean, TRUTH)


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


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("steps", [7, 40])
def test_chains_have_the_forward_process_spread_at_every_time(eta: float, steps: int) -> None:
    schedule, count = Schedule(100), 20_000
    start = torch.randn(count, 1, generator=seeded(0))
    chain = sample(lambda noisy, time: torch.full_like(noisy, 0.8), start, Line(), schedule, steps, seeded(1), eta)
    for time, (current, _) in zip(schedule.visited(steps)[1:-1], chain, strict=False):
        alpha_bar = float(schedule.alpha_bar[time])
        assert current.mean().item() == pytest.approx(0.8 * alpha_bar**0.5, abs=0.04)
        assert current.var().item() == pytest.approx(1 - alpha_bar, rel=0.06)


def test_samples_differ_with_their_noise_and_only_with_it() -> None:
    schedule = Schedule(50)
    starts = [torch.randn(3, 4, generator=seeded(seed)) for seed in (0, 0, 1)]

    def end(start: Tensor, seed: int, eta: float) -> Tensor:
        return list(sample(wobbly, start, SPACE, schedule, 10, seeded(seed), eta))[-1][0]

    for eta in (0.0, 1.0):
        assert torch.equal(end(starts[0], 5, eta), end(starts[1], 5, eta))
        assert not torch.allclose(end(starts[0], 5, eta), end(starts[2], 5, eta))
    assert torch.equal(end(starts[0], 5, 0.0), end(starts[0], 6, 0.0))  # DDIM draws nothing on its way
    assert not torch.allclose(end(starts[0], 5, 1.0), end(starts[0], 6, 1.0))


def test_without_diffusion_one_step_gives_the_prediction() -> None:
    start = torch.randn(3, 4, generator=seeded(0))
    ((current, clean),) = sample(wobbly, start, SPACE, Schedule(1), 30, seeded(1))
    torch.testing.assert_close(current, wobbly(start, 1))
    assert torch.equal(clean, wobbly(start, 1))
