"""What is left over is guessed to belong into that open part of the break that it fits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from diffassemble.fragments.best_guess import in_open_break, open_parts
from diffassemble.fragments.clusters import FractureSide
from diffassemble.fragments.contact import transformed
from diffassemble.fragments.gap_insertion import plain_side
from diffassemble.fragments.surface import Sample

SPACING = 0.02
MIDDLES = np.array([[0.0, 0.0, 0.0], [1.0, 0.2, 0.0], [0.0, 1.0, 0.3]])


def relief(number: int, up: float = 1.0) -> Sample:
    """A small patch of hills, others for every number; seen from above, or from below."""
    x, y = np.meshgrid(np.arange(-12, 13) * SPACING, np.arange(-9, 10) * SPACING)
    a, b, c = 9 + 4 * number, 14 - 3 * number, number
    z = 0.04 * np.sin(a * x + c) * np.cos(b * y) + 0.03 * np.sin(7 * (x + y))
    along = 0.04 * a * np.cos(a * x + c) * np.cos(b * y) + 0.21 * np.cos(7 * (x + y))
    across = -0.04 * b * np.sin(a * x + c) * np.sin(b * y) + 0.21 * np.cos(7 * (x + y))
    points = np.stack([x, y, z], -1).reshape(-1, 3)
    normals = np.stack([-along, -across, np.ones_like(x)], -1).reshape(-1, 3)
    normals *= up / np.linalg.norm(normals, axis=1, keepdims=True)
    return Sample(points.astype(np.float32), normals.astype(np.float32), SPACING**2)


def whole() -> FractureSide:
    """Three open parts of a break, far from each other."""
    parts = [relief(number) for number in range(3)]
    points = np.concatenate([part.points + middle for part, middle in zip(parts, MIDDLES, strict=True)])
    normals = np.concatenate([part.normals for part in parts])
    return plain_side(Sample(points.astype(np.float32), normals, SPACING**2), SPACING)


def test_parts_of_a_break_that_do_not_hang_together_are_told_apart() -> None:
    parts = open_parts(whole(), SPACING)
    assert sorted(len(part) for part in parts) == [25 * 19] * 3
    assert sorted(np.concatenate(parts)) == list(range(3 * 25 * 19))


@pytest.mark.parametrize("number", range(3))
def test_a_piece_is_guessed_where_it_came_from(number: int) -> None:
    lost, turn = relief(number, -1.0), Rotation.random(rng=np.random.default_rng(number)).as_matrix()
    away = np.array([3.0, -2.0, 1.0])
    points, normals = (lost.points @ turn.T + away).astype(np.float32), (lost.normals @ turn.T).astype(np.float32)
    taken: set[int] = set()
    own = plain_side(Sample(points, normals, SPACING**2), SPACING)
    pose = in_open_break(own, whole(), SPACING, taken)
    assert pose is not None
    assert transformed(pose, points) == pytest.approx(lost.points + MIDDLES[number], abs=0.3 * SPACING)
    assert len(taken) == 1
    again = in_open_break(own, whole(), SPACING, taken)
    assert again is not None
    assert np.abs(transformed(again, points).mean(0) - lost.points.mean(0) - MIDDLES[number]).max() > 0.1
