"""What every space promises: poses survive, noise is mixed in by time, and a perfect denoiser leads to the truth."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diffassemble.core import Board, Poses
from diffassemble.diffusion.samplers import sample
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.spaces import SPACES, Space

ALL = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def true_poses(space: Space) -> Poses:
    """Twelve poses in the space's own dimension."""
    if space.translation_width == 2:
        return Board(3, 4).poses(torch.arange(12), torch.arange(12) % 4)
    return space.to_poses(space.prior((12,), seeded(5)))


@ALL
def test_every_named_space_is_one(space: Space) -> None:
    assert isinstance(space, Space)
    assert 0 < space.translation_width < space.width


@ALL
def test_poses_survive_the_way_there_and_back(space: Space) -> None:
    poses = true_poses(space)
    again = space.to_poses(space.to_vector(poses))
    torch.testing.assert_close(again.rotation, poses.rotation, rtol=0, atol=1e-5)
    torch.testing.assert_close(again.translation, poses.translation, rtol=0, atol=1e-6)


@ALL
def test_in_three_dimensions_even_noise_is_a_true_rotation(space: Space) -> None:
    if space.translation_width == 2:
        return
    rotation = space.to_poses(space.prior((50,), seeded(0))).rotation
    torch.testing.assert_close(rotation @ rotation.mT, torch.eye(3).expand(50, 3, 3), rtol=0, atol=1e-5)
    torch.testing.assert_close(torch.linalg.det(rotation), torch.ones(50), rtol=0, atol=1e-5)


@ALL
def test_the_prior_is_drawn_by_the_generator_alone(space: Space) -> None:
    first, again, other = (space.prior((7, 3), seeded(seed)) for seed in (0, 0, 1))
    assert first.shape == (7, 3, space.width)
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


@ALL
def test_time_0_is_clean_and_the_last_time_is_noise(space: Space) -> None:
    schedule, clean, noise = Schedule(300), space.to_vector(true_poses(space)), space.prior((12,), seeded(1))
    begins, ends = (space.noisy(clean, torch.full((12,), time), schedule, noise) for time in (0, 300))
    torch.testing.assert_close(begins, clean, rtol=0, atol=1e-5)
    torch.testing.assert_close(ends, noise, rtol=0, atol=0.03)


@ALL
def test_every_piece_has_its_own_time(space: Space) -> None:
    """A state is noised by its own time, whatever the others' times are."""
    schedule, clean, noise = Schedule(50), space.to_vector(true_poses(space)), space.prior((12,), seeded(1))
    time = torch.arange(12) * 4
    together = space.noisy(clean, time, schedule, noise)
    for row in range(12):
        one = slice(row, row + 1)
        torch.testing.assert_close(together[one], space.noisy(clean[one], time[one], schedule, noise[one]))


@ALL
@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize(("times", "steps"), [(1, 30), (10, 3), (300, 1), (300, 7), (60, 60)])
def test_a_perfect_denoiser_leads_to_the_truth(space: Space, eta: float, times: int, steps: int) -> None:
    truth = space.to_vector(true_poses(space))[:, None].expand(-1, 2, -1)
    start = space.prior((12, 2), seeded(2))

    def oracle(noisy: Tensor, time: int) -> Tensor:
        return truth

    *_, (last, clean) = sample(oracle, start, space, Schedule(times), steps, seeded(1), eta)
    torch.testing.assert_close(last, truth, rtol=0, atol=1e-5)
    assert torch.equal(clean, truth)


@ALL
def test_what_a_network_says_may_be_any_numbers(space: Space) -> None:
    """Its meaning is a state of the space, and gradients stay finite where it is not unique."""
    raw = torch.randn(9, space.width, generator=seeded(0))
    raw[0], raw[1], raw[2, space.translation_width + 1 :] = 0, 1, 0
    raw.requires_grad_()
    meant = space.clean(raw)
    assert meant.shape == raw.shape
    torch.testing.assert_close(meant[:, : space.translation_width], raw[:, : space.translation_width])
    poses = space.to_poses(meant)
    weight = torch.randn(poses.rotation.shape, generator=seeded(1))
    ((weight * poses.rotation).sum() + poses.translation.sum()).backward()
    assert raw.grad is not None
    assert raw.grad.isfinite().all()
