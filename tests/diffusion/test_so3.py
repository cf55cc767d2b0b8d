"""The isotropic Gaussian on SO(3), and diffusion with it."""

from __future__ import annotations

import math

import pytest
import roma
import torch

from diffassemble.core.seeds import seeded
from diffassemble.diffusion.rotations import (
    angle_density,
    angle_of,
    length_of,
    normal_of,
    rotation_of,
    scale,
    series_density,
    small_density,
    spread_at,
)
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.spaces import SO3

ANGLES = torch.linspace(0, math.pi, 20_001, dtype=torch.double)
SPREADS = (0.01, 0.05, 0.2, 0.45, 0.55, 0.8, 1.0, 1.5, 3.0)


def number(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.double)


def draws(count: int, epsilon: torch.Tensor | float) -> torch.Tensor:
    normal = torch.randn(count, 3, generator=torch.Generator().manual_seed(0))
    return rotation_of(normal, torch.as_tensor(epsilon).expand(count))


def angles_of(rotation: torch.Tensor) -> torch.Tensor:
    return roma.rotmat_to_rotvec(rotation).norm(dim=-1)


@pytest.mark.parametrize("epsilon", SPREADS)
def test_the_density_is_one(epsilon: float) -> None:
    density = angle_density(ANGLES, number(epsilon))
    assert (density > -1e-12).all()
    assert torch.trapezoid(density, ANGLES).item() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 0.8])
def test_both_forms_agree(epsilon: float) -> None:
    series = series_density(ANGLES, number(epsilon), terms=200)
    torch.testing.assert_close(series, small_density(ANGLES, number(epsilon)), rtol=0, atol=1e-8)
    torch.testing.assert_close(series, angle_density(ANGLES, number(epsilon)), rtol=0, atol=1e-8)


@pytest.mark.parametrize("epsilon", SPREADS)
def test_draws_follow_the_whole_distribution(epsilon: float) -> None:
    below = torch.cumulative_trapezoid(angle_density(ANGLES, number(epsilon)), ANGLES)
    drawn = angles_of(draws(40_000, epsilon)).sort().values
    share = below[torch.searchsorted(ANGLES[1:], drawn.double()).clamp(max=len(below) - 1)]
    assert (share - torch.linspace(0, 1, 40_000, dtype=torch.double)).abs().max() < 0.01  # Kolmogorov and Smirnov


def test_the_mean_rotation_fades_as_the_heat_flow_says() -> None:
    for epsilon in (0.2, 0.6, 1.0):
        mean = draws(40_000, epsilon).mean(0)
        torch.testing.assert_close(mean, math.exp(-2 * epsilon**2) * torch.eye(3), rtol=0, atol=0.015)


@pytest.mark.parametrize("epsilon", SPREADS)
def test_angles_and_lengths_are_inverse(epsilon: float) -> None:
    length = torch.linspace(0, 4, 300)
    spread = torch.tensor(epsilon)
    angle = angle_of(length, spread)
    assert (angle.diff() >= 0).all()
    assert angle.max() <= math.pi
    torch.testing.assert_close(angle_of(length_of(angle, spread), spread), angle, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(length_of(angle, spread)[:200], length[:200], rtol=1e-3, atol=1e-3)


def test_without_spread_nothing_turns_and_far_outliers_stay_rotations() -> None:
    normal = torch.tensor([[0.0, 0, 0], [1, 2, 3], [50, 0, 0]])
    torch.testing.assert_close(rotation_of(normal, torch.zeros(3)), torch.eye(3).expand(3, 3, 3))
    torch.testing.assert_close(angles_of(rotation_of(normal, torch.full((3,), 0.3)))[2].item(), math.pi)
    far = normal_of(roma.rotvec_to_rotmat(torch.tensor([[2.0, 0, 0]])), torch.tensor(0.01))
    assert far[0, 0].item() == pytest.approx(2 / (0.01 * math.sqrt(2)), rel=1e-2)


SPACE = SO3()


def test_the_prior_is_uniform() -> None:
    """The mean of a uniform rotation is 0, of its angle π/2 + 2/π; turning all changes nothing."""
    drawn = SPACE._rotation(SPACE.prior((40_000,), seeded(0)))
    fixed = SPACE._rotation(SPACE.prior((1,), seeded(1)))
    for turned in (drawn, fixed @ drawn):
        angle = roma.rotmat_to_rotvec(turned).norm(dim=-1)
        assert angle.mean().item() == pytest.approx(math.pi / 2 + 2 / math.pi, abs=0.015)
        torch.testing.assert_close(turned.mean(0), torch.zeros(3, 3), rtol=0, atol=0.015)


@pytest.mark.parametrize("times", [1, 10, 300, 1000])
def test_the_chain_ends_uniform_in_angle_within_a_thousandth(times: int) -> None:
    angles = torch.linspace(0, math.pi, 5001, dtype=torch.double)
    last = spread_at(Schedule(times).alpha_bar[-1]).double()
    density = angle_density(angles, last)
    uniform = (1 - torch.cos(angles)) / math.pi
    assert torch.cumulative_trapezoid(density - uniform, angles).abs().max() < 1e-3


def test_little_noise_has_the_variance_of_equation_1_about_every_axis() -> None:
    schedule, count = Schedule(1000), 20_000
    clean = SPACE.prior((1,), seeded(0)).expand(count, -1)
    drawn = SPACE.noisy(clean, torch.full((count,), 20), schedule, SPACE.prior((count,), seeded(1)))
    alpha_bar = schedule.alpha_bar[20]
    mean = scale(SPACE._rotation(clean), alpha_bar.sqrt())
    turn = roma.rotmat_to_rotvec(mean.mT @ SPACE._rotation(drawn))
    torch.testing.assert_close(turn.var(0), (1 - alpha_bar).expand(3), rtol=0.05, atol=0)
    torch.testing.assert_close(turn.mean(0), torch.zeros(3), rtol=0, atol=0.005)
    torch.testing.assert_close(drawn[:, :3].var(0), (1 - alpha_bar).expand(3), rtol=0.05, atol=0)


def test_the_meaning_of_nine_numbers_is_the_nearest_rotation() -> None:
    raw = torch.randn(30, 12, generator=seeded(0))
    meant = SPACE._rotation(SPACE.clean(raw))
    torch.testing.assert_close(torch.linalg.det(meant), torch.ones(30))
    best = (meant - SPACE._rotation(raw)).flatten(1).norm(dim=-1)
    for seed in range(1, 20):
        rival = SPACE._rotation(SPACE.prior((30,), seeded(seed)))
        assert (best <= (rival - SPACE._rotation(raw)).flatten(1).norm(dim=-1) + 1e-5).all()
    torch.testing.assert_close(SPACE.clean(SPACE.clean(raw)), SPACE.clean(raw), rtol=0, atol=1e-5)
