"""What time does to pieces: worn sides, lost pieces."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def erode_pixels(pixels: Float[Tensor, "n c s s"], pixels_lost: int) -> Float[Tensor, "n c r r"]:
    """Pieces that lost a strip of `pixels_lost` pixels at every side."""
    if pixels_lost == 0:
        return pixels
    return pixels[..., pixels_lost:-pixels_lost, pixels_lost:-pixels_lost]


def surviving(count: int, missing: float, generator: torch.Generator) -> Int[Tensor, "kept"]:
    """Indices, in random order, of the pieces left when a share `missing` is lost; at least one stays."""
    kept = max(1, count - round(count * missing))
    return torch.randperm(count, generator=generator)[:kept]
