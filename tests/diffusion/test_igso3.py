"""Both forms of the density agree, and draws follow it: each by a spread of its own."""

from __future__ import annotations

import math

import pytest
import roma
import torch

from diffassemble.diffusion.so3 import (
    UNIFORM,
    angle_density,
    angle_of,
    length_of,
    normal_of,
    rotation_of,
    series_density,
    small_density,
)

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


def test_every_angle_may_have_a_spread_of_its_own() -> None:
    epsilon = torch.linspace(0.05, 2, 40, dtype=torch.double)
    angle = torch.linspace(0.1, 3, 40, dtype=torch.double)
    alone = torch.stack([angle_density(a, e) for a, e in zip(angle, epsilon, strict=True)])
    torch.testing.assert_close(angle_density(angle, epsilon), alone)


def test_small_spreads_are_normal_vectors_and_large_ones_uniform() -> None:
    length = ANGLES / (math.sqrt(2) * 0.01)
    maxwell = math.sqrt(2 / math.pi) * length**2 * torch.exp(-(length**2) / 2) / (math.sqrt(2) * 0.01)
    torch.testing.assert_close(angle_density(ANGLES, number(0.01)), maxwell, rtol=0, atol=0.01)
    uniform = (1 - torch.cos(ANGLES)) / math.pi
    torch.testing.assert_close(angle_density(ANGLES, number(UNIFORM)), uniform, rtol=0, atol=1e-12)


@pytest.mark.parametrize("epsilon", SPREADS)
def test_draws_have_the_mean_angle_and_spread_of_the_density(epsilon: float) -> None:
    density = angle_density(ANGLES, number(epsilon))
    mean = torch.trapezoid(density * ANGLES, ANGLES)
    spread = torch.trapezoid(density * (ANGLES - mean) ** 2, ANGLES).sqrt()
    drawn = angles_of(draws(40_000, epsilon)).double()
    assert abs(drawn.mean() - mean) < 5 * spread / 200
    assert drawn.std().item() == pytest.approx(spread.item(), rel=0.02)


@pytest.mark.parametrize("epsilon", [0.2, 0.7, 1.5])
def test_draws_follow_the_whole_distribution(epsilon: float) -> None:
    below = torch.cumulative_trapezoid(angle_density(ANGLES, number(epsilon)), ANGLES)
    drawn = angles_of(draws(40_000, epsilon)).sort().values
    share = below[torch.searchsorted(ANGLES[1:], drawn.double()).clamp(max=len(below) - 1)]
    assert (share - torch.linspace(0, 1, 40_000, dtype=torch.double)).abs().max() < 0.01  # Kolmogorov and Smirnov


def test_the_mean_rotation_fades_as_the_heat_flow_says() -> None:
    for epsilon in (0.2, 0.6, 1.0):
        mean = draws(40_000, epsilon).mean(0)
        torch.testing.assert_close(mean, math.exp(-2 * epsilon**2) * torch.eye(3), rtol=0, atol=0.015)


def test_spreads_add_up_by_their_squares() -> None:
    both = draws(40_000, 0.4) @ draws(40_000, 0.3).flip(0)
    assert angles_of(both).mean().item() == pytest.approx(angles_of(draws(40_000, 0.5)).mean().item(), rel=0.01)


def test_in_one_batch_each_draw_has_its_own_spread() -> None:
    """Twice the same numbers: in a batch of mixed spreads, and among their like."""
    epsilon = torch.tensor([0.01, 0.3, 1.2, 3.0]).repeat(500)
    mixed = draws(2000, epsilon)
    for spread in epsilon[:4]:
        torch.testing.assert_close(mixed[epsilon == spread], draws(2000, spread)[epsilon == spread])
    means = angles_of(mixed).view(500, 4).mean(0)
    assert (means.diff() > 0.2).all()


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


@pytest.mark.parametrize("gap", [0.0, 1e-6, 1e-4, 1e-3, 0.1])
def test_near_half_turns_the_axis_is_right(gap: float) -> None:
    axis = torch.nn.functional.normalize(torch.randn(200, 3, generator=torch.Generator().manual_seed(0)), dim=-1)
    turn = (math.pi - gap) * axis
    rotation = roma.rotvec_to_rotmat(turn)
    again = roma.rotmat_to_rotvec(rotation)
    torch.testing.assert_close(roma.rotvec_to_rotmat(again), rotation, rtol=0, atol=2e-6)
    along = (again * axis).sum(-1) / again.norm(dim=-1)
    assert along.abs().min() > 1 - 1e-5
    normal = normal_of(rotation, torch.tensor(2.0))
    torch.testing.assert_close(normal.norm(dim=-1), (normal * axis).sum(-1).abs(), rtol=1e-3, atol=0)
