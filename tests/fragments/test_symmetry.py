"""Half of a round object tells where the whole of it was; what is whole, or not round, stays as it is."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from diffassemble.fragments.standing import completed_box, find_axis

GENERATOR = torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def _drawn_alike() -> None:
    """Every test draws the same numbers, whichever ran before it."""
    GENERATOR.manual_seed(0)


def cup(points: int = 4000) -> Tensor:
    """The wall of a cup, wider above than below, y up, its middle at the origin."""
    height, angle = (torch.rand(points, generator=GENERATOR) for _ in range(2))
    radius = 0.25 + 0.2 * height
    return torch.stack([radius * (2 * math.pi * angle).cos(), height - 0.5, radius * (2 * math.pi * angle).sin()], -1)


def middle(points: Tensor) -> Tensor:
    low, high = completed_box(points)
    return (low + high) / 2


def test_what_is_missing_of_a_round_object_is_thought_to_be_there() -> None:
    whole = cup()
    left = whole[whole[:, 0] < 0.1]  # less than two thirds of the circle
    box = (left.amin(0) + left.amax(0)) / 2
    assert float(box[0]) < -0.15
    assert middle(left).tolist() == pytest.approx([0.0, 0.0, 0.0], abs=0.02)
    turned = left[:, [2, 1, 0]] + torch.tensor([0.1, 0.0, -0.2])
    assert middle(turned).tolist() == pytest.approx([0.1, 0.0, -0.2], abs=0.02)


def test_whole_objects_keep_their_box() -> None:
    whole = cup()
    handle = torch.tensor([0.55, 0.0, 0.0]) + 0.03 * torch.randn(200, 3, generator=GENERATOR)
    slab = (torch.rand(3000, 3, generator=GENERATOR) - 0.5) * torch.tensor([0.6, 1.0, 0.1])
    for points in (whole, torch.cat([whole, handle]), slab):
        low, high = completed_box(points)
        assert torch.equal(low, points.amin(0))
        assert torch.equal(high, points.amax(0))


def test_the_axis_is_found_by_a_part_of_the_wall() -> None:
    whole = cup()
    left = whole[(whole[:, 2] > -0.1) | (whole[:, 0] > 0.2)]
    layer = ((left[:, 1] + 0.5) * 16).long().clamp(0, 15)
    assert find_axis(left[:, [0, 2]] + 0.05, layer).tolist() == pytest.approx([0.05, 0.05], abs=0.015)
