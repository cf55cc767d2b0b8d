"""Other pictures from the same picture: crops, mirror images, other light."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.puzzle import Board


def uniform(low: float, high: float, generator: torch.Generator) -> float:
    """One random number in [low, high)."""
    return low + (high - low) * float(torch.rand((), generator=generator))


def random_crop(
    picture: Float[Tensor, "3 H W"], board: Board, smallest: float, generator: torch.Generator
) -> Float[Tensor, "3 h w"]:
    """A random part with the board's shape, its side between `smallest` and all of the largest that fits."""
    height, width = picture.shape[-2:]
    unit = min(height / board.rows, width / board.cols) * uniform(smallest, 1.0, generator)
    rows, cols = int(unit * board.rows), int(unit * board.cols)
    top = int(uniform(0.0, float(height - rows + 1), generator))
    left = int(uniform(0.0, float(width - cols + 1), generator))
    return picture[:, top : top + rows, left : left + cols]


def mirror_and_relight(
    picture: Float[Tensor, "3 h w"], strength: float, generator: torch.Generator
) -> Float[Tensor, "3 h w"]:
    """Mirror left and right half of the time; shift brightness, contrast and colour balance; sometimes grey."""
    if uniform(0.0, 1.0, generator) < 0.5:
        picture = picture.flip(-1)
    gain = 1 + strength * (torch.rand(3, 1, 1, generator=generator) - 0.5)
    contrast = 1 + strength * (2 * uniform(0.0, 1.0, generator) - 1)
    shift = strength * (uniform(0.0, 1.0, generator) - 0.5)
    picture = ((picture * gain - 0.5) * contrast + 0.5 + shift).clamp(0, 1)
    if uniform(0.0, 1.0, generator) < 0.08:
        picture = picture.mean(0, keepdim=True).expand(3, -1, -1)
    return picture
