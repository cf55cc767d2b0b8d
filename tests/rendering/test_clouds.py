"""Discs on clouds of points."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.rendering.triangles import as_discs


def test_discs_lie_on_the_surface() -> None:
    points = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)
    points /= np.linalg.norm(points, axis=-1, keepdims=True)
    vertices, faces = as_discs(points, 10_000)
    assert len(faces) == 4 * len(points)
    assert np.abs(np.linalg.norm(vertices, axis=-1) - 1).max() < 0.05
    first, second, third = (vertices[faces[:, corner]] for corner in range(3))
    normals = np.cross(second - first, third - first)
    along = np.abs((normals * first).sum(-1)) / np.linalg.norm(normals, axis=-1)
    assert np.median(along) > 0.98


def test_large_clouds_are_thinned_out() -> None:
    points = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)
    assert 4 * 400 < len(as_discs(points, 500)[1]) <= 4 * 500


@pytest.mark.parametrize("count", [1, 2, 3, 15])
def test_a_few_points_are_beads(count: int) -> None:
    points = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    vertices, faces = as_discs(points, 100)
    assert len(faces) == 8 * count
    assert np.allclose(vertices.reshape(count, 6, 3).mean(1), points, atol=1e-5)


@pytest.mark.parametrize("count", [0, 20])
def test_points_in_one_place_do_no_harm(count: int) -> None:
    vertices, _ = as_discs(np.zeros((count, 3), np.float32), 100)
    assert np.isfinite(vertices).all()
