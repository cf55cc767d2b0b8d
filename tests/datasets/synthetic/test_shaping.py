"""Bars, balls and boxes have the volumes that geometry says; moulds and bumps keep solids sound."""

import math

import numpy as np
import pytest
import torch
from manifold3d import Error

from diffassemble.fragments.shapes.tools import Dice, ball, bar, box, bumpy, moulded


def test_straight_bar_is_an_elliptic_cylinder() -> None:
    path = np.array([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)])
    solid = bar(path, [0.1] * 3, [0.3] * 3, 64)
    assert solid.status() == Error.NoError
    assert solid.volume() == pytest.approx(math.pi * 0.1 * 0.3 * 2, rel=0.01)
    assert solid.bounding_box() == pytest.approx((0, -0.1, -0.3, 2, 0.1, 0.3), abs=1e-3)


def test_ball_and_box() -> None:
    assert ball((1, 2, 3), (0.1, 0.2, 0.3), 96).volume() == pytest.approx(4 / 3 * math.pi * 0.006, rel=0.01)
    assert box((1, 2, 3), (1, 2, 3)).bounding_box() == pytest.approx((0.5, 1, 1.5, 1.5, 3, 4.5))


@pytest.mark.parametrize("seed", range(6))
def test_moulds_and_bumps_keep_one_sound_body(seed: int) -> None:
    dice = Dice(torch.Generator().manual_seed(seed))
    solid = bumpy(moulded(ball((0, 0, 0), (0.5, 0.5, 0.5), 32), dice), 0.02, 9.0, dice)
    assert solid.status() == Error.NoError
    assert solid.volume() > 0.1
    assert len(solid.decompose()) == 1
