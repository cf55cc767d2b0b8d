"""Points are drawn evenly from triangles."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.surface import draw


def test_points_lie_on_triangles_in_proportion_to_their_areas() -> None:
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 3]], np.float32)
    faces = np.array([[0, 1, 2], [0, 3, 1]])
    chance = np.random.default_rng(0).random((4000, 3)).astype(np.float32)
    points, normals = draw(vertices, faces, chance)
    flat = normals[:, 2] > 0.5
    assert abs(flat.mean() - 0.25) < 0.01
    assert np.abs(points[flat, 2]).max() < 1e-6
    assert np.allclose(normals[~flat], [0, 1, 0])
    assert np.abs(points[flat].mean(0) - [1 / 3, 1 / 3, 0]).max() < 0.02
