"""Fragments on a table: flat, and none over another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from diffassemble.core import FragmentPieces, Mesh, Puzzle
from diffassemble.rendering.mesh import laid_out, lying_flat


def boxes(count: int, seed: int = 0) -> FragmentPieces:
    """Clouds of very different sizes."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.rand(count, 1, 3, generator=generator) ** 3 + 0.01
    points = (torch.rand(count, 50, 3, generator=generator) - 0.5) * sizes
    meshes = tuple(Mesh(cloud, torch.zeros(0, 3, dtype=torch.long)) for cloud in points)
    return FragmentPieces(points, meshes, torch.zeros(count, 3))


@pytest.mark.parametrize("count", [1, 2, 7, 200])
def test_fragments_stand_apart_on_the_table(count: int) -> None:
    pieces = boxes(count)
    placed = laid_out(pieces, height=-0.3).apply(pieces.points).numpy()
    assert np.allclose(placed[..., 1].min(1), -0.3, atol=1e-5)
    low, high = placed[..., [0, 2]].min(1), placed[..., [0, 2]].max(1)
    apart = (low[:, None] > high[None]).any(-1)
    assert (apart | apart.T | np.eye(count, dtype=bool)).all()
    extent = high.max(0) - low.min(0)
    assert np.allclose((high.max(0) + low.min(0)) / 2, 0, atol=0.2 * extent.max())


def test_a_full_table_is_about_as_deep_as_wide() -> None:
    pieces = boxes(100)
    placed = laid_out(pieces).apply(pieces.points).numpy()
    width, _, depth = np.ptp(placed.reshape(-1, 3), axis=0)
    assert 0.6 < width / depth < 1.6


def test_flat_things_lie_flat_after_the_least_turn() -> None:
    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(1, 200, 3, generator=generator) * torch.tensor([1.0, 0.05, 2.0])
    assert np.allclose(lying_flat(flat)[0], np.eye(3), atol=0.02)
    tilt = torch.linalg.qr(torch.randn(3, 3, generator=generator))[0]
    turn = lying_flat(flat @ tilt.T)[0]
    assert np.allclose(turn @ turn.T, np.eye(3), atol=1e-5)
    assert np.linalg.det(turn) == pytest.approx(1, abs=1e-5)
    assert np.ptp((flat @ tilt.T)[0].numpy() @ turn.T, axis=0)[1] < 0.5


def test_vertices_count_not_only_points(broken_bowl: Puzzle) -> None:
    pieces = broken_bowl.fragments
    large = replace(pieces, meshes=tuple(Mesh(3 * mesh.vertices, mesh.faces) for mesh in pieces.meshes))
    poses = laid_out(large)
    lowest = [float((poses[[i]].apply(mesh.vertices[None]))[..., 1].min()) for i, mesh in enumerate(large.meshes)]
    assert np.allclose(lowest, 0, atol=1e-5)
