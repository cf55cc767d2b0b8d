"""What surroundings look like does not depend on where they are, and matches see the negative relief."""

from __future__ import annotations

import numpy as np
import pytest
import roma
import torch

from diffassemble.fragments.descriptors import NAMES, SIGNS, eigenvalues, neighbourhood
from diffassemble.fragments.surface import Sample


def rough_sheet(seed: int = 0) -> Sample:
    chance = np.random.default_rng(seed)
    flat = chance.random((2500, 2)) * 2 - 1
    wave = lambda a, b: 0.2 * np.sin(3 * a + b) * np.cos(2 * b)  # noqa: E731
    height = wave(flat[:, 0], flat[:, 1])
    step = 1e-4
    slope = [
        (wave(flat[:, 0] + step, flat[:, 1]) - height) / step,
        (wave(flat[:, 0], flat[:, 1] + step) - height) / step,
    ]
    normals = np.stack([-slope[0], -slope[1], np.ones(2500)], 1)
    points = np.concatenate([flat, height[:, None]], 1).astype(np.float32)
    return Sample(points, (normals / np.linalg.norm(normals, axis=1, keepdims=True)).astype(np.float32), 4 / 2500)


def test_moving_changes_nothing() -> None:
    sheet = rough_sheet()
    turn = roma.random_rotmat(1)[0].numpy().astype(np.float32)
    moved = Sample(sheet.points @ turn.T + np.float32(0.3), sheet.normals @ turn.T, sheet.area)
    here = neighbourhood(sheet.points[:50], sheet.normals[:50], sheet, 0.3)
    there = neighbourhood(moved.points[:50], moved.normals[:50], moved, 0.3)
    assert np.abs(here - there).max() < 0.02


def test_the_other_side_of_the_sheet_shows_the_negative_relief() -> None:
    sheet = rough_sheet()
    back = Sample(sheet.points, -sheet.normals, sheet.area)
    here = neighbourhood(sheet.points[:50], sheet.normals[:50], sheet, 0.3)
    there = neighbourhood(back.points[:50], back.normals[:50], back, 0.3)
    assert np.abs(here * SIGNS - there).max() < 1e-3
    assert len(NAMES) == here.shape[1]


def test_a_sphere_looks_alike_everywhere(ball: Sample) -> None:
    descriptors = neighbourhood(ball.points, ball.normals, ball, 0.3)
    inside = descriptors[np.abs(ball.points[:, 2]) < 0.9]
    assert inside[:, 0] == pytest.approx(np.ones(len(inside)), abs=0.1)
    assert (inside[:, NAMES.index("height")] < 0).all()


def test_eigenvalues_are_those_of_linear_algebra() -> None:
    some = torch.randn(3, 3, generator=torch.Generator().manual_seed(0)).numpy().astype(float)
    square = some @ some.T
    expected = np.linalg.eigvalsh(square)
    found = eigenvalues(square[0, 0], square[0, 1], square[0, 2], square[1, 1], square[1, 2], square[2, 2])
    assert np.allclose(found, expected, atol=1e-9)
