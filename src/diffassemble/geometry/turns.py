"""Quarter turns of pictures. The frame is x to the right, y down, so a positive turn is clockwise as seen."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

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


def turn_pixels(pixels: Float[Tensor, "n c s s"], turns: Int[Tensor, "n"]) -> Float[Tensor, "n c s s"]:
    """Turn each square picture clockwise by its own number of quarter turns."""
    turned = pixels.clone()
    for quarter in (1, 2, 3):
        chosen = turns % 4 == quarter
        turned[chosen] = torch.rot90(pixels[chosen], -quarter, (-2, -1))
    return turned
