"""Limbs blend into one sound body of about the right size."""

import math

import pytest
import torch
from manifold3d import Error

from diffassemble.fragments.shapes.figures import Limb, blended, statue, toy_figure
from diffassemble.fragments.shapes.tools import Dice


def test_a_single_limb_is_a_capsule() -> None:
    solid = blended([Limb((0, 0, 0), (0, 1, 0), 0.2, 0.2)], 0.02)
    assert solid.status() == Error.NoError
    assert solid.volume() == pytest.approx(math.pi * 0.04 + 4 / 3 * math.pi * 0.008, rel=0.03)


def test_limbs_that_touch_become_one() -> None:
    limbs = [Limb((0, 0, 0), (0, 1, 0), 0.1, 0.1), Limb((0, 0.5, 0), (0.6, 0.5, 0), 0.1, 0.05)]
    assert len(blended(limbs, 0.03).decompose()) == 1


@pytest.mark.parametrize("seed", range(3))
def test_figures_differ(seed: int) -> None:
    first = toy_figure(Dice(torch.Generator().manual_seed(seed)))
    second = toy_figure(Dice(torch.Generator().manual_seed(seed + 100)))
    assert first.volume() != second.volume()


def test_statues_stand_on_something_wide() -> None:
    for seed in (0, 1, 3):
        solid = statue(Dice(torch.Generator().manual_seed(seed)))
        low = solid.bounding_box()[1]
        foot = solid.trim_by_plane((0, -1, 0), -low - 0.03)
        assert foot.hull().volume() == pytest.approx(foot.volume(), rel=0.05)
