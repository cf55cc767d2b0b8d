"""The spaces that poses are noised and predicted in."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diffassemble.core import Board, Poses
from diffassemble.core.seeds import seeded
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.spaces import SPACES, Space, sample

ALL = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())


def true_poses(space: Space) -> Poses:
    """Twelve poses in the space's own dimension."""
    if space.translation_width == 2:
        return Board(3, 4).poses(torch.arange(12), torch.arange(12) % 4)
    return space.to_poses(space.prior((12,), seeded(5)))


@ALL
def test_poses_survive_the_way_there_and_back(space: Space) -> None:
    poses = true_poses(space)
    vector, first = space.to_vector(poses), space.translation_width
    # Lengths of columns and of quaternions do not matter, nor do signs of quaternions.
    scaled = torch.cat([vector[:, :first], (-3 if space is SPACES["quaternion"] else 3) * vector[:, first:]], 1)
    for given in (vector, scaled) if space in (SPACES["six_d"], SPACES["quaternion"], SPACES["plane"]) else (vector,):
        again = space.to_poses(given)
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
    time = torch.arange(12) * 4  # every piece has its own
    together = space.noisy(clean, time, schedule, noise)
    torch.testing.assert_close(together[5:6], space.noisy(clean[5:6], time[5:6], schedule, noise[5:6]))
    begins, ends = (space.noisy(clean, torch.full((12,), time), schedule, noise) for time in (0, 300))
    torch.testing.assert_close(begins, clean, rtol=0, atol=1e-5)
    torch.testing.assert_close(ends, noise, rtol=0, atol=0.03)


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
@pytest.mark.parametrize("steps", [3, 20, 300])
def test_ddim_steps_follow_the_forward_process(space: Space, steps: int) -> None:
    """With a perfect x₀, x_t stays what the forward process makes of x₀ and the noise it began with."""
    schedule, truth, noise = Schedule(300), space.prior((200,), seeded(0)), space.prior((200,), seeded(1))
    start = space.noisy(truth, torch.full((200,), 300), schedule, noise)
    chain = sample(lambda noisy, time: truth, start, space, schedule, steps, seeded(2))
    for time, (current, _) in zip(schedule.visited(steps)[1:], chain, strict=True):
        expected = space.noisy(truth, torch.full((200,), time), schedule, noise)
        # Half turns have two axes: a few go the other way.
        assert (current - expected).norm(dim=-1).quantile(0.95) < 7e-3


@ALL
@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("steps", [7, 30])
def test_chains_have_the_forward_process_spread_at_every_time(space: Space, eta: float, steps: int) -> None:
    schedule, count = Schedule(100), 10_000
    truth = space.to_vector(true_poses(space))[:1].expand(count, -1)
    chain = sample(lambda noisy, time: truth, space.prior((count,), seeded(0)), space, schedule, steps, seeded(1), eta)
    other = space.prior((count,), seeded(2))
    for time, (current, _) in zip(schedule.visited(steps)[1:-1], chain, strict=False):
        drawn = space.noisy(truth, torch.full((count,), time), schedule, other)
        torch.testing.assert_close(current.mean(0), drawn.mean(0), rtol=0, atol=0.05)
        torch.testing.assert_close(current.std(0), drawn.std(0), rtol=0.06, atol=0.01)


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
    assert raw.grad.isfinite().all()
