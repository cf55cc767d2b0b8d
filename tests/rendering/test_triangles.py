"""From meshes to triangles that can be drawn: normals, clusters, discs on clouds, motions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import trimesh

from diffassemble.core import Mesh, Poses, Puzzle
from diffassemble.core.poses import random_rotations
from diffassemble.rendering.studio import as_discs, corner_normals, triangles_of


def arrays(shape: trimesh.Trimesh) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(shape.vertices, np.float32), np.asarray(shape.faces, np.int64)


def mesh(shape: trimesh.Trimesh) -> Mesh:
    vertices, faces = arrays(shape)
    return Mesh(torch.from_numpy(vertices.copy()), torch.from_numpy(faces.copy()))


def test_round_surfaces_are_smooth_and_boxes_are_sharp() -> None:
    vertices, faces = arrays(trimesh.creation.icosphere(3))
    assert np.abs(corner_normals(vertices, faces) - vertices[faces]).max() < 0.05
    vertices, faces = arrays(trimesh.creation.box((1, 1, 1)))
    normals = corner_normals(vertices, faces)
    assert np.allclose(np.abs(normals).max(-1), 1, atol=1e-6)
    assert (np.einsum("fci,fci->fc", normals, vertices[faces]) > 0).all()


def test_loose_triangles_are_welded_before_they_are_smoothed() -> None:
    vertices, faces = arrays(trimesh.creation.icosphere(3))
    loose = Mesh(torch.from_numpy(vertices[faces].reshape(-1, 3)), torch.arange(faces.size).reshape(-1, 3))
    drawn = triangles_of([loose], 10**6)
    assert np.abs(drawn.normals - drawn.corners).max() < 0.05


@pytest.mark.parametrize("limit", [3_000, 20_000])
def test_too_many_triangles_become_fewer_without_changing_the_shape(limit: int) -> None:
    fine = [mesh(trimesh.creation.icosphere(6)), mesh(trimesh.creation.icosphere(6))]
    drawn = triangles_of(fine, limit)
    assert limit / 4 < len(drawn.corners) < 1.3 * limit
    assert np.abs(np.linalg.norm(drawn.corners, axis=-1) - 1).max() < 0.05
    assert set(drawn.owner.tolist()) == {0, 1}


def test_sick_meshes_do_no_harm() -> None:
    vertices = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [float("nan"), 0, 0]])
    meshes = [
        Mesh(vertices, torch.tensor([[0, 1, 2], [0, 1, 3], [1, 1, 2], [0, 0, 0]])),
        Mesh(torch.zeros(3, 3), torch.tensor([[0, 1, 2]])),
        Mesh(torch.zeros(1, 3), torch.zeros(0, 3, dtype=torch.long)),
    ]
    drawn = triangles_of(meshes, 100)
    assert np.isfinite(drawn.corners).all()
    assert np.isfinite(drawn.normals).all()
    assert (drawn.owner == 0).sum() == 1
    assert (drawn.owner == 2).sum() == 8


def test_fragments_move_with_their_poses(broken_bowl: Puzzle) -> None:
    count = len(broken_bowl)
    drawn = triangles_of(broken_bowl.fragments.meshes, 10**6)
    poses = Poses(random_rotations(count, torch.Generator().manual_seed(1)), torch.arange(count * 3.0).reshape(-1, 3))
    moved = drawn.placed(poses)
    for piece in range(count):
        own = drawn.owner == piece
        expected = poses[[piece]].apply(torch.from_numpy(drawn.corners[own].reshape(1, -1, 3)))
        assert np.allclose(moved.corners[own].reshape(-1, 3), expected[0], atol=1e-5)
    assert np.allclose(np.linalg.norm(moved.normals, axis=-1), 1, atol=1e-4)


def test_discs_lie_on_the_surface() -> None:
    points = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)
    points /= np.linalg.norm(points, axis=-1, keepdims=True)
    vertices, faces, _ = as_discs(points, 10_000)
    assert len(faces) == 4 * len(points)
    assert np.abs(np.linalg.norm(vertices, axis=-1) - 1).max() < 0.05
    first, second, third = (vertices[faces[:, corner]] for corner in range(3))
    normals = np.cross(second - first, third - first)
    along = np.abs((normals * first).sum(-1)) / np.linalg.norm(normals, axis=-1)
    assert np.median(along) > 0.98
    assert 4 * 400 < len(as_discs(points, 500)[1]) <= 4 * 500


@pytest.mark.parametrize("count", [1, 2, 3, 15])
def test_a_few_points_are_beads(count: int) -> None:
    points = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    vertices, faces, _ = as_discs(points, 100)
    assert len(faces) == 8 * count
    assert np.allclose(vertices.reshape(count, 6, 3).mean(1), points, atol=1e-5)
    assert np.isfinite(as_discs(np.zeros((0, 3), np.float32), 100)[0]).all()
    assert np.isfinite(as_discs(np.zeros((20, 3), np.float32), 100)[0]).all()
