"""Vectors are noised by Eq. 1, and what a network says is taken as it is."""

from __future__ import annotations

import torch

from diffassemble.diffusion.gaussian import gaussian_step
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.spaces import CosSin


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_noise_is_standard_normal_and_mixed_in_by_equation_1() -> None:
    space, schedule = CosSin(), Schedule(100)
    noise = space.prior((3, 5), seeded(0))
    assert torch.equal(noise, torch.randn(3, 5, 4, generator=seeded(0)))
    clean, time = torch.randn(3, 5, 4, generator=seeded(1)), torch.arange(15).view(3, 5)
    assert torch.equal(space.noisy(clean, time, schedule, noise), schedule.noisy(clean, time, noise))


def test_a_step_to_the_same_noise_level_stays_where_it_is() -> None:
    current, clean = torch.randn(2, 6, 4, generator=seeded(0))
    level = torch.tensor(0.3)
    torch.testing.assert_close(gaussian_step(current, clean, level, level, 0.0, seeded(1)), current)


def test_the_last_step_gives_the_prediction_and_draws_nothing() -> None:
    current, clean = torch.randn(2, 6, 4, generator=seeded(0))
    generator = seeded(1)
    last = gaussian_step(current, clean, torch.tensor(0.9), torch.tensor(1.0), 1.0, generator)
    assert torch.equal(last, clean)
    assert torch.equal(generator.get_state(), seeded(1).get_state())


def test_what_a_network_says_is_the_mean_of_what_it_believes() -> None:
    raw = torch.randn(6, 4, generator=seeded(0))
    assert torch.equal(CosSin().clean(raw), raw)
