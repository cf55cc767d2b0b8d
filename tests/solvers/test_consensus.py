"""The answer is what most samples say."""

import math

import pytest
import roma
import torch

from diffassemble.cutting.fragments import random_rotations
from diffassemble.geometry import Poses
from diffassemble.solvers.consensus import central, twist


def samples() -> list[Poses]:
    """Three that nearly agree, and one that says something else about its last piece."""
    generator = torch.Generator().manual_seed(0)
    rotation, translation = random_rotations(5, generator), torch.randn(5, 3, generator=generator) / 4
    close = [Poses(rotation, translation + 0.01 * i) for i in range(3)]
    stray = translation.clone()
    stray[-1] += 0.5
    return [Poses(rotation, stray), *close]


def test_the_sample_in_the_middle_is_chosen_and_dissent_costs_confidence() -> None:
    all_samples = samples()
    chosen, sure = central(all_samples)
    assert chosen is all_samples[2]
    assert sure[:-1].tolist() == [1.0] * 4
    assert sure[-1] == pytest.approx(2 / 3)


def test_one_sample_is_its_own_answer() -> None:
    only = samples()[0]
    chosen, sure = central([only])
    assert chosen is only
    assert sure.tolist() == [1.0] * 5


def test_the_twist_is_an_angle() -> None:
    quarter = roma.rotvec_to_rotmat(torch.tensor([[0.0, math.pi / 2, 0.0]]))
    still = Poses.identity(1, 3)
    assert float(twist(still, Poses(quarter, torch.zeros(1, 3)))) == pytest.approx(math.pi / 2, abs=1e-5)
