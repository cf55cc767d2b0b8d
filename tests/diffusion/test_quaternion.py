"""Quaternions come scalar first and with a fixed sign; any four numbers mean a rotation."""

from __future__ import annotations

import math

import torch

from diffassemble.core import Poses
from diffassemble.diffusion.spaces import Quaternion


def about_z(degrees: float) -> Poses:
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    rotation = torch.tensor([[[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]]])
    return Poses(rotation, torch.zeros(1, 3))


def test_scalar_first_and_never_negative() -> None:
    for degrees in range(-350, 360, 35):
        vector = Quaternion().to_vector(about_z(degrees))[0, 3:]
        half = math.radians(degrees) / 2
        expected = torch.tensor([math.cos(half), 0, 0, math.sin(half)])
        torch.testing.assert_close(vector, expected * expected[0].sign(), rtol=0, atol=1e-6)


def test_length_and_sign_do_not_matter() -> None:
    vector = Quaternion().to_vector(about_z(70))
    for factor in (0.1, 5.0, -1.0):
        torch.testing.assert_close(Quaternion().to_poses(factor * vector).rotation, about_z(70).rotation)
