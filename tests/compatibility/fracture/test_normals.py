"""Normals of clouds point outward."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.fragments.surface import Sample, outward_normals


def test_normals_of_a_sphere_are_its_radii(ball: Sample) -> None:
    assert ((outward_normals(ball.points) * ball.points).sum(1) > 0.98).all()


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_handful_of_points_has_some_normals(count: int) -> None:
    points = np.random.default_rng(0).random((count, 3)).astype(np.float32)
    assert np.allclose(np.linalg.norm(outward_normals(points), axis=1), 1, atol=1e-5)


def test_normals_do_not_jump_through_thin_walls() -> None:
    some = np.random.default_rng(0)
    flat = some.random((2, 4000, 2)) - 0.5
    rim = some.random((4, 300))
    wall = 0.04
    faces = [np.column_stack([face, np.full(len(face), height)]) for face, height in zip(flat, (0, wall), strict=True)]
    rims = [np.insert(np.column_stack([along - 0.5, some.random(300) * wall]), axis, end, axis=1)
            for along, (axis, end) in zip(rim, ((0, -0.5), (0, 0.5), (1, -0.5), (1, 0.5)), strict=True)]  # fmt: skip
    normals = outward_normals(np.concatenate([*faces, *rims]).astype(np.float32))
    assert (normals[:4000, 2] < 0).mean() > 0.97
    assert (normals[4000:8000, 2] > 0).mean() > 0.97
