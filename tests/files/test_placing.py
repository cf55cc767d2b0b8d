"""Matrices move the files' own points to their places."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from diffassemble.core import FragmentPieces, InputError, Mesh, Poses
from diffassemble.core.poses import random_rotations
from diffassemble.fragments.files import file_matrices, file_poses


@pytest.fixture
def pieces() -> FragmentPieces:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(5, 30, 3, generator=generator)
    meshes = tuple(Mesh(cloud, torch.zeros(0, 3, dtype=torch.long)) for cloud in points)
    return FragmentPieces(points, meshes, 100 * torch.randn(5, 3, generator=generator), 37.5)


@pytest.fixture
def poses() -> Poses:
    generator = torch.Generator().manual_seed(1)
    return Poses(random_rotations(5, generator), torch.randn(5, 3, generator=generator))


def test_file_points_land_where_the_pose_puts_them(pieces: FragmentPieces, poses: Poses) -> None:
    in_file = pieces.origins[:, None] + pieces.unit * pieces.points
    matrices = file_matrices(pieces, poses).float()
    moved = in_file @ matrices[:, :3, :3].mT + matrices[:, None, :3, 3]
    assert torch.allclose(moved, pieces.unit * poses.apply(pieces.points), atol=1e-3)


def test_there_and_back(pieces: FragmentPieces, poses: Poses) -> None:
    again = file_poses(pieces, file_matrices(pieces, poses).tolist(), Path("x.json"))
    assert torch.equal(again.rotation, poses.rotation)
    assert torch.allclose(again.translation, poses.translation, atol=1e-6)


@pytest.mark.parametrize(
    "spoil",
    [
        torch.diag(torch.tensor([2.0, 2, 2, 1])),
        torch.diag(torch.tensor([-1.0, 1, 1, 1])),
        torch.diag(torch.tensor([1.0, 1, 1, 2])),
        torch.zeros(4, 4),
    ],
)
def test_no_other_motions(pieces: FragmentPieces, poses: Poses, spoil: torch.Tensor) -> None:
    matrices = file_matrices(pieces, poses)
    matrices[3] = spoil.double() @ matrices[3]
    with pytest.raises(InputError, match=r"x\.json: a 'matrix' is not a turn and a shift"):
        file_poses(pieces, matrices.tolist(), Path("x.json"))
