"""Which direction is up does not depend on how the object lies, and which way it faces turns with it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from diffassemble.core.poses import random_rotations
from diffassemble.fragments.orientation import (
    SECTORS,
    OrientationConfig,
    OrientationModel,
    about_y,
    across,
    centred,
    cone,
    principal_axes,
    profiles,
    sphere,
    unrolled,
    upright_rotation,
)

GENERATOR = torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def _drawn_alike() -> None:
    """Every test draws the same numbers, whichever ran before it."""
    GENERATOR.manual_seed(0)


UP = torch.tensor([0.0, 1.0, 0.0])


def blob(points: int = 600) -> Tensor:
    """A lopsided cloud."""
    cloud = torch.randn(points, 3, generator=GENERATOR) * torch.tensor([1.0, 2.0, 0.6])
    cloud[: points // 4] += torch.tensor([0.5, 1.5, 0.3])
    return centred(cloud[None])[0]


def directions(count: int) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(count, 3, generator=GENERATOR), dim=-1)


def test_profiles_do_not_change_when_object_and_direction_turn_together() -> None:
    cloud, ways, turn = blob(), directions(5), random_rotations(1, GENERATOR)[0]
    one = profiles(cloud[None], ways[None])
    other = profiles((cloud @ turn.T)[None], (ways @ turn.T)[None])
    assert torch.allclose(one, other, atol=2e-3)


def test_profiles_hold_the_whole_surface_and_tell_up_from_down() -> None:
    cloud = blob()
    up, down = profiles(cloud[None], torch.stack([UP, -UP])[None])[0]
    mass = up[0].square()
    assert float(mass.sum()) == pytest.approx(24 * 12 / 16, rel=1e-3)
    assert torch.allclose(up.flip(1), down, atol=1e-4)
    assert not torch.allclose(up, down, atol=1e-2)


def test_a_round_object_has_no_harmonics() -> None:
    angle = torch.arange(480) * 2 * math.pi / 480
    ring = torch.stack([angle.cos(), torch.zeros(480), angle.sin()], -1)
    profile = profiles(ring[None], UP[None, None])[0, 0]
    assert float(profile[1:].max()) < 0.02 * float(profile[0].max())


def test_turning_an_upright_object_shifts_its_unrolled_surface() -> None:
    cloud = blob()
    turned = cloud @ about_y(2 * math.pi / SECTORS * 5).T
    shifted = unrolled(cloud[None]).roll(5, 2)
    differing = (unrolled(turned[None]) - shifted).abs() > 1e-3
    assert float(differing.float().mean()) < 0.01  # points on the borders of sectors may fall to either side


def test_rotations_do_what_they_say() -> None:
    for up in [*directions(8), UP, -UP]:
        rotation = upright_rotation(up)
        assert torch.allclose(rotation @ up, UP, atol=1e-5)
        assert torch.linalg.det(rotation) == pytest.approx(1.0, abs=1e-5)
    assert torch.allclose(about_y(math.pi / 2), torch.tensor([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]), atol=1e-6)


def test_directions_are_spread_as_promised() -> None:
    every = sphere(400)
    assert torch.allclose(every.norm(dim=-1), torch.ones(400), atol=1e-5)
    nearest = (directions(200) @ every.T).amax(1)
    assert float(nearest.min()) > math.cos(math.radians(9))
    near = cone(every[7], 10.0, 24)
    assert float((near @ every[7]).min()) > math.cos(math.radians(10.01))
    one, two = across(every)
    assert float((one * every).sum(-1).abs().max()) < 1e-5
    assert float((one * two).sum(-1).abs().max()) < 1e-5
    cloud = torch.randn(500, 3, generator=GENERATOR) * torch.tensor([1.0, 5.0, 1.0])
    assert float((principal_axes(cloud) @ UP).abs().max()) > 0.99


def test_standing_up_does_not_depend_on_how_the_object_lies() -> None:
    """Whatever the network has learnt: where its favourite direction is clear, it is found in every pose."""
    torch.manual_seed(0)
    network, cloud = OrientationModel(OrientationConfig(dropout=0.0)).eval(), blob()
    ends = []
    for turn in [torch.eye(3), *random_rotations(3, GENERATOR)]:
        rotation = network.canonical_rotation(cloud @ turn.T)
        assert torch.allclose(rotation @ rotation.T, torch.eye(3), atol=1e-4)
        ends.append((rotation @ turn)[1])
    scores = network.up(cloud[None], torch.stack(ends)[None])[0].detach()
    assert float(scores.max() - scores.min()) < 0.02


def test_a_front_is_told_where_there_is_one_and_turns_with_the_object() -> None:
    """Whoever looks for mass about the axis knows the way of a handle; of a ring any way will do."""

    class Handle(OrientationModel):
        def front(self, points: Tensor) -> Tensor:
            return 30 * unrolled(points)[:, :24].sum(1) / unrolled(points)[:, :24].sum((1, 2))[:, None]

    network, angle = Handle(OrientationConfig()), torch.arange(960) * 2 * math.pi / 960
    ring = torch.stack([angle.cos(), torch.zeros(960), angle.sin()], -1)
    handle = torch.tensor([1.3, 0.0, 0.0]) + 0.02 * torch.randn(300, 3, generator=GENERATOR)
    assert network.facing(ring)[1] == pytest.approx(5 / SECTORS, abs=0.01)
    for turn in (0.3, 2.0, 5.0):
        found, sure = network.facing(torch.cat([ring, handle]) @ about_y(turn).T)
        assert float((found - turn + math.pi) % (2 * math.pi) - math.pi) == pytest.approx(0.0, abs=0.07)
        assert sure > 0.9
