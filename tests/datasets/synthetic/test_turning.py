"""Lathe work has the volumes that geometry says, and hollowing leaves walls."""

import math

import numpy as np
import pytest
import torch

from diffassemble.fragments.shapes.tools import Dice, hollow, lathe, rectangle, silhouette, smooth

DICE = Dice(torch.Generator().manual_seed(0))
SEGMENTS = 64
# A polygon with so many corners covers this much of its circle.
SHARE = SEGMENTS / (2 * math.pi) * math.sin(2 * math.pi / SEGMENTS)


def test_cylinder_and_pipe() -> None:
    full = lathe(rectangle(-0.5, 0, 0.5, 2), DICE, SEGMENTS)
    assert full.volume() == pytest.approx(SHARE * math.pi / 2, rel=1e-4)
    assert full.genus() == 0
    pipe = lathe(rectangle(0.25, 0, 0.5, 2), DICE, SEGMENTS)
    assert pipe.volume() == pytest.approx(0.75 * full.volume(), rel=1e-4)
    assert pipe.genus() == 1


def test_upright_axis() -> None:
    low_x, low_y, low_z, high_x, high_y, high_z = lathe(rectangle(-0.5, 1, 0.5, 3), DICE, SEGMENTS).bounding_box()
    assert (low_y, high_y) == pytest.approx((1, 3))
    assert (low_x, high_x, low_z, high_z) == pytest.approx((-0.5, 0.5, -0.5, 0.5), abs=1e-3)


def test_hollow_leaves_wall_and_floor() -> None:
    outline = rectangle(-0.5, 0, 0.5, 1)
    room = hollow(outline, 0.1, 0.2, 0.5)
    assert (outline ^ room).area() == pytest.approx(0.8 * 0.8, rel=1e-3)
    pot = lathe(outline - room, DICE, SEGMENTS)
    assert pot.volume() == pytest.approx(SHARE * math.pi * (0.25 - 0.16 * 0.8), rel=1e-3)
    assert len(pot.decompose()) == 1


def test_smooth_keeps_ends_and_stays_within() -> None:
    line = smooth([(0, 0), (1, 0), (1, 1), (0, 1)])
    assert line[0].tolist() == [0, 0]
    assert line[-1].tolist() == [0, 1]
    assert line.min() >= 0
    assert line.max() <= 1
    assert np.abs(line - (1, 0)).sum(1).min() > 0.1
    sharp = smooth([(0, 0), (1, 0), (1, 0), (1, 1)], 2)
    assert np.abs(sharp - (1, 0)).sum(1).min() == 0


def test_silhouette_is_symmetric() -> None:
    left, low, right, high = silhouette(np.array([(0.0, 0.0), (0.5, 0.0), (0.3, 1.0), (0.0, 1.0)])).bounds()
    assert (left, low, right, high) == pytest.approx((-0.5, 0, 0.5, 1))
