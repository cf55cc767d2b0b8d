"""Six numbers mean a rotation: their own if they are its columns, the Gram–Schmidt one else."""

from __future__ import annotations

import torch

from diffassemble.core import Poses
from diffassemble.diffusion.spaces import SixD

POSES = Poses(
    torch.linalg.matrix_exp(torch.tensor([[[0.0, -1, 2], [1, 0, -0.5], [-2, 0.5, 0]]])), torch.tensor([[0.1, 0.2, 0.3]])
)


def test_the_numbers_are_the_first_two_columns() -> None:
    vector = SixD().to_vector(POSES)
    torch.testing.assert_close(vector[0, 3:6], POSES.rotation[0, :, 0])
    torch.testing.assert_close(vector[0, 6:9], POSES.rotation[0, :, 1])


def test_lengths_and_the_share_along_the_first_column_do_not_matter() -> None:
    vector = SixD().to_vector(POSES)
    bent = vector.clone()
    bent[:, 3:6] = 3 * vector[:, 3:6]
    bent[:, 6:9] = 0.2 * vector[:, 6:9] - 1.5 * vector[:, 3:6]
    torch.testing.assert_close(SixD().to_poses(bent).rotation, POSES.rotation)
