"""Normals of clouds point outward."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.compatibility.fracture.normals import outward_normals
from diffassemble.compatibility.fracture.sampling import Sample


def test_normals_of_a_sphere_are_its_radii(ball: Sample) -> None:
    assert ((outward_normals(ball.points) * ball.points).sum(1) > 0.98).all()


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_handful_of_points_has_some_normals(count: int) -> None:
    points = np.random.default_rng(0).random((count, 3)).astype(np.float32)
    assert np.allclose(np.linalg.norm(outward_normals(points), axis=1), 1, atol=1e-5)
