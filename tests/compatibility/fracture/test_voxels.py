"""Voxels know the nearest point, and what is inside."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.spatial import INSIDE, OUTSIDE, Voxels, look_up, voxelise
from diffassemble.fragments.surface import Sample

SPACING = 0.06


def look(voxels: Voxels, places: np.ndarray) -> np.ndarray:
    return np.array([look_up(*map(float, place), *voxels) for place in places])


def test_places_near_the_surface_know_the_nearest_point(ball: Sample) -> None:
    voxels = voxelise(ball.points, SPACING)
    places = ball.points * np.random.default_rng(0).uniform(0.95, 1.05, (len(ball), 1)).astype(np.float32)
    found = look(voxels, places)
    assert (found >= 0).all()
    far = np.linalg.norm(places - ball.points[found], axis=1)
    best = np.array([np.linalg.norm(ball.points - place, axis=1).min() for place in places[:200]])
    assert (far[:200] - best).max() < 1.5 * SPACING


def test_the_middle_is_inside_and_far_away_is_outside(ball: Sample) -> None:
    places = np.array([[0, 0, 0], [0.3, 0.2, 0.1], [1.5, 0, 0], [-9, 0, 0], [9, 9, 9]])
    assert list(look(voxelise(ball.points, SPACING), places)) == [INSIDE, INSIDE, OUTSIDE, OUTSIDE, OUTSIDE]
    assert INSIDE not in look(voxelise(ball.points, SPACING, closed=False), places)


def test_an_open_bowl_has_no_inside(ball: Sample) -> None:
    bowl = ball.points[ball.points[:, 2] < 0.5]
    assert look(voxelise(bowl, SPACING), np.zeros((1, 3)))[0] == OUTSIDE


def test_a_long_needle_does_not_fill_the_memory() -> None:
    needle = np.stack([np.linspace(0, 1000, 5000), np.zeros(5000), np.zeros(5000)], 1).astype(np.float32)
    voxels = voxelise(needle, 0.01)
    assert voxels.directory.size < 1e6
    assert look(voxels, np.array([[500.0, 0, 0]]))[0] >= 0
