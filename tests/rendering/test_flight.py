"""Flights: where they start and end, and what they pass."""

from __future__ import annotations

from itertools import pairwise

import pytest
import roma
import torch

from diffassemble.core import Poses
from diffassemble.core.poses import random_rotations
from diffassemble.rendering.mesh import between, eased, plan_flight

N = 5


def somewhere(seed: int, spread: float = 0.3) -> Poses:
    generator = torch.Generator().manual_seed(seed)
    return Poses(random_rotations(N, generator), spread * torch.randn(N, 3, generator=generator))


def same(first: Poses, second: Poses, tolerance: float = 1e-5) -> bool:
    close = torch.allclose(first.translation, second.translation, atol=tolerance)
    return close and torch.allclose(first.rotation, second.rotation, atol=tolerance)


@pytest.mark.parametrize("moments", [0, 1, 3, 40])
def test_flights_start_and_end_where_they_should(moments: int) -> None:
    start, end = somewhere(0), somewhere(1)
    flight = plan_flight(start, [somewhere(2 + i) for i in range(moments)], end)
    assert same(flight.at(0.0), start)
    assert torch.equal(flight.at(1.0).rotation, end.rotation)
    assert torch.equal(flight.at(1.0).translation, end.translation)
    assert same(flight.at(1 - 1e-6), end, 1e-3)
    assert len(flight.stations) <= 7
    assert flight.arrived(0.0) == 0
    assert flight.arrived(1.0) == pytest.approx(1)


def test_motion_is_smooth_and_proper() -> None:
    flight = plan_flight(somewhere(0), [somewhere(2), somewhere(3)], somewhere(1))
    poses = [flight.at(i / 200) for i in range(201)]
    for first, second in pairwise(poses):
        assert float((first.translation - second.translation).norm(dim=-1).max()) < 0.1
        assert float(roma.rotmat_geodesic_distance(first.rotation, second.rotation).max()) < 0.3
        assert roma.is_rotation_matrix(second.rotation, 1e-4)


def test_noise_is_shown_nearby_and_by_rotations() -> None:
    generator = torch.Generator().manual_seed(0)
    noise = Poses(torch.randn(N, 3, 3, generator=generator), 100 * torch.randn(N, 3, generator=generator))
    station = plan_flight(somewhere(0), [noise], somewhere(1)).stations[1]
    assert float(station.translation.norm(dim=-1).max()) < 1.6
    assert roma.is_rotation_matrix(station.rotation, 1e-4)


def test_low_fragments_set_out_first() -> None:
    end = somewhere(1)
    flight = plan_flight(somewhere(0), [], end)
    assert flight.delays.argsort().tolist() == end.translation[:, 1].argsort().tolist()


def test_a_flight_that_goes_nowhere() -> None:
    here = somewhere(0)
    assert same(plan_flight(here, [], here).at(0.5), here)


def test_rotations_take_the_shortest_way() -> None:
    first, second = (
        random_rotations(20, torch.Generator().manual_seed(0)),
        random_rotations(20, torch.Generator().manual_seed(1)),
    )
    whole = roma.rotmat_geodesic_distance(first, second)
    part = between(first, second, torch.full((20,), 0.3))
    assert torch.allclose(roma.rotmat_geodesic_distance(first, part), 0.3 * whole, atol=1e-3)
    assert torch.allclose(roma.rotmat_geodesic_distance(part, second), 0.7 * whole, atol=1e-3)


def test_easing_is_flat_at_its_ends() -> None:
    assert [eased(time) for time in (-1.0, 0.0, 0.5, 1.0, 2.0)] == [0, 0, 0.5, 1, 1]
    assert eased(0.01) < 0.001
