"""The answer is what samples say on the average."""

import math

import pytest
import roma
import torch

from diffassemble.core import Poses
from diffassemble.fragments.breaking import random_rotations
from diffassemble.network.sampling import average, twist


def samples() -> list[Poses]:
    """Three that nearly agree, and one that says something else about its last piece."""
    generator = torch.Generator().manual_seed(0)
    rotation, translation = random_rotations(5, generator), torch.randn(5, 3, generator=generator) / 4
    close = [Poses(rotation, translation + 0.01 * i) for i in range(3)]
    stray = translation.clone()
    stray[-1] += 0.5
    return [Poses(rotation, stray), *close]


def test_the_mean_is_the_answer_and_dissent_costs_confidence() -> None:
    all_samples = samples()
    mean, sure = average(all_samples)
    wanted = torch.stack([sample.translation for sample in all_samples]).mean(0)
    assert torch.allclose(mean.translation, wanted, atol=1e-6)
    assert torch.allclose(mean.rotation, all_samples[0].rotation, atol=1e-5)
    assert sure[:-1].tolist() == [1.0] * 4
    assert sure[-1] < 0.5


def test_the_mean_of_two_turns_is_half_way() -> None:
    ends = [roma.rotvec_to_rotmat(torch.tensor([[0.0, 0.0, angle]])) for angle in (0.2, 1.0)]
    mean, _ = average([Poses(end, torch.zeros(1, 3)) for end in ends])
    assert torch.allclose(roma.rotmat_to_rotvec(mean.rotation), torch.tensor([[0.0, 0.0, 0.6]]), atol=1e-5)


def test_one_sample_is_its_own_answer() -> None:
    only = samples()[0]
    chosen, sure = average([only])
    assert chosen is only
    assert sure.tolist() == [1.0] * 5


def test_the_twist_is_an_angle() -> None:
    quarter = roma.rotvec_to_rotmat(torch.tensor([[0.0, math.pi / 2, 0.0]]))
    still = Poses.identity(1, 3)
    assert float(twist(still, Poses(quarter, torch.zeros(1, 3)))) == pytest.approx(math.pi / 2, abs=1e-5)
