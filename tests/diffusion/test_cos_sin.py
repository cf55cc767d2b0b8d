"""2D poses as vectors and back."""

from __future__ import annotations

import torch

from diffassemble.core import Board, turn_matrix
from diffassemble.diffusion.spaces import CosSin


def test_vectors_are_place_cosine_and_sine() -> None:
    poses = Board(2, 2).poses(torch.tensor([3, 0, 1, 2]), torch.tensor([0, 1, 2, 3]))
    vector = CosSin().to_vector(poses)
    expected = [[0.5, 0.5, 1, 0], [-0.5, -0.5, 0, 1], [0.5, -0.5, -1, 0], [-0.5, 0.5, 0, -1]]
    assert vector.tolist() == expected


def test_poses_survive_the_way_there_and_back_exactly() -> None:
    poses = Board(3, 5).poses(torch.arange(15), torch.arange(15) % 4)
    again = CosSin().to_poses(CosSin().to_vector(poses))
    assert torch.equal(again.rotation, turn_matrix(torch.arange(15)))
    assert torch.equal(again.translation, poses.translation)


def test_noisy_vectors_survive_too_and_their_poses_are_linear_in_them() -> None:
    space = CosSin()
    one, two = torch.randn(2, 9, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(space.to_vector(space.to_poses(one)), one)
    mixed, first, second = (space.to_poses(vector) for vector in (2 * one - 3 * two, one, two))
    torch.testing.assert_close(mixed.rotation, 2 * first.rotation - 3 * second.rotation)
    torch.testing.assert_close(mixed.translation, 2 * first.translation - 3 * second.translation)
