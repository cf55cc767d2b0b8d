"""Poses as 4×4 matrices in the coordinates of the fragments' files, and back.

A matrix moves a file's points, as they are in the file, to their place in the whole, in the same unit of length; the
whole's middle is the origin.
"""

from __future__ import annotations

from pathlib import Path

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.puzzle import FragmentPieces, InputError

_CROOKED = 1e-3


def file_matrices(pieces: FragmentPieces, poses: Poses) -> Float64[Tensor, "n 4 4"]:
    """What each file's points must be moved by."""
    rotation, translation = poses.rotation.cpu().double(), poses.translation.cpu().double()
    matrices = torch.eye(4, dtype=torch.double).repeat(len(poses), 1, 1)
    matrices[:, :3, :3] = rotation
    matrices[:, :3, 3] = pieces.unit * translation - _turned(rotation, pieces.origins)
    # Adding zero turns −0 into 0.
    return matrices + 0.0


def file_poses(pieces: FragmentPieces, matrices: list[list[list[float]]], source: Path) -> Poses:
    """The poses that such matrices stand for; those that stretch, skew or mirror are refused."""
    moves = torch.tensor(matrices, dtype=torch.double)
    rotation = moves[:, :3, :3]
    crooked = (rotation @ rotation.mT - torch.eye(3, dtype=torch.double)).abs().max() > _CROOKED
    mirrored = (torch.linalg.det(rotation) < 0).any()
    if crooked or mirrored or not (moves[:, 3] == torch.tensor([0.0, 0, 0, 1])).all():
        raise InputError(f"{source}: a 'matrix' is not a turn and a shift")
    translation = (moves[:, :3, 3] + _turned(rotation, pieces.origins)) / pieces.unit
    return Poses(rotation.float(), translation.float())


def _turned(rotation: Float64[Tensor, "n 3 3"], vectors: Float[Tensor, "n 3"]) -> Float64[Tensor, "n 3"]:
    return (rotation @ vectors.cpu().double()[..., None])[..., 0]
