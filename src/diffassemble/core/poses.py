"""Rigid motions in d dimensions, and quarter turns of pictures (x to the right, y down: clockwise as seen)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int, Num
from torch import Tensor


@dataclass(frozen=True)
class Poses:
    """The pose of each piece: x_assembled = rotation @ x_piece + translation; noisy rotations are not orthogonal."""

    rotation: Float[Tensor, "n d d"]
    translation: Float[Tensor, "n d"]

    @staticmethod
    def identity(count: int, dimension: int) -> Poses:
        """`count` poses that move nothing."""
        return Poses(torch.eye(dimension).repeat(count, 1, 1), torch.zeros(count, dimension))

    def __len__(self) -> int:
        return len(self.translation)

    def __repr__(self) -> str:
        """A line; the numbers are in the fields."""
        return f"Poses({len(self)} in {self.translation.shape[-1]} dimensions)"

    def __getitem__(self, index: Tensor | slice | list[int]) -> Poses:
        return Poses(self.rotation[index], self.translation[index])

    def __matmul__(self, other: Poses) -> Poses:
        """`(a @ b).apply(x) == a.apply(b.apply(x))`, pose by pose."""
        moved = (self.rotation @ other.translation[..., None])[..., 0]
        return Poses(self.rotation @ other.rotation, moved + self.translation)

    def inverse(self) -> Poses:
        """The motions that undo these; rotations must be orthogonal."""
        back = self.rotation.transpose(-1, -2)
        return Poses(back, -(back @ self.translation[..., None])[..., 0])

    def apply(self, points: Float[Tensor, "n p d"]) -> Float[Tensor, "n p d"]:
        """Move each piece's points from its own frame into the assembled frame."""
        return points @ self.rotation.transpose(-1, -2) + self.translation[:, None]


_QUARTER_TURNS = torch.tensor(
    [[[1, 0], [0, 1]], [[0, -1], [1, 0]], [[-1, 0], [0, -1]], [[0, 1], [-1, 0]]], dtype=torch.float32
)


def turn_matrix(turns: Int[Tensor, "*n"]) -> Float[Tensor, "*n 2 2"]:
    """Rotation matrices of clockwise quarter turns (any integer; taken modulo 4)."""
    return _QUARTER_TURNS.to(turns.device)[turns % 4]


def nearest_turn(rotation: Float[Tensor, "n 2 2"]) -> Int[Tensor, "n"]:
    """The quarter turn (0…3) closest to each rotation, which may be noisy or scaled."""
    cosine = rotation[:, 0, 0] + rotation[:, 1, 1]
    sine = rotation[:, 1, 0] - rotation[:, 0, 1]
    return torch.round(torch.atan2(sine, cosine) / (torch.pi / 2)).long() % 4


def turn_pixels(pixels: Num[Tensor, "n c h w"], turns: Int[Tensor, "n"]) -> Num[Tensor, "n c h w"]:
    """Turn each picture clockwise by its own number of quarter turns; an even one, if they are not square."""
    turned = pixels.clone()
    for quarter in (1, 2, 3) if pixels.shape[-1] == pixels.shape[-2] else (2,):
        chosen = turns % 4 == quarter
        turned[chosen] = torch.rot90(pixels[chosen], -quarter, (-2, -1))
    return turned


def plane_rotations(angles: Float[Tensor, "n"]) -> Float[Tensor, "n 2 2"]:
    """Rotations of the plane by angles in radians, clockwise as seen."""
    cosine, sine = angles.cos(), angles.sin()
    return torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)


def random_rotations(count: int, generator: torch.Generator) -> Float[Tensor, "n 3 3"]:
    """Rotations of space, all equally probable."""
    import roma

    quaternions = torch.randn(count, 4, generator=generator)
    return roma.unitquat_to_rotmat(torch.nn.functional.normalize(quaternions, dim=-1))


def angles(poses: Poses) -> Float64[np.ndarray, "n"]:
    """Angle (radians, clockwise as seen) of the rotation nearest to each pose, which may be noisy."""
    rotation = poses.rotation.detach().cpu().double().numpy()
    return np.arctan2(rotation[:, 1, 0] - rotation[:, 0, 1], rotation[:, 0, 0] + rotation[:, 1, 1])
