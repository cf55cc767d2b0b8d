"""Other pictures that stand upright as well: crops, slight tilts, mirror images, other light, missing cells."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

UNKNOWN = 0.5
"""colour of what is missing"""


@dataclass(frozen=True)
class Variation:
    """How far a varied picture may be from the given one."""

    smallest_crop: float
    """smallest side of a crop, as a share of the picture's"""
    tilt: float
    """largest tilt in degrees"""
    light: float
    """strength of random brightness, contrast and colour"""
    holed_share: float
    """share of pictures with missing cells"""

    def towards(self, other: Variation, share: float) -> Variation:
        """What lies between this one (share 0) and the other (share 1)."""
        names = ("smallest_crop", "tilt", "light", "holed_share")
        return Variation(*(getattr(self, n) + share * (getattr(other, n) - getattr(self, n)) for n in names))


def vary(
    pictures: Float[Tensor, "b 3 H W"], size: int, variation: Variation, generator: torch.Generator
) -> Float[Tensor, "b 3 s s"]:
    """One variation of each picture, `size` pixels a side; colours stay in [0, 1]."""
    crops = tilted_crops(pictures, size, variation, generator)
    return with_holes(relit(crops, variation.light, generator), variation.holed_share, generator)


def tilted_crops(
    pictures: Float[Tensor, "b 3 H W"], size: int, variation: Variation, generator: torch.Generator
) -> Float[Tensor, "b 3 s s"]:
    """Square samples of random crops, slightly stretched and tilted, half of them mirrored left to right."""
    count = len(pictures)
    side = _between(count, variation.smallest_crop, 1.0, generator)
    stretch = torch.exp(_between(count, -0.12, 0.12, generator))
    across, down = (side * stretch).clamp(max=1), (side / stretch).clamp(max=1)
    left = _between(count, -1.0, 1.0, generator) * (1 - across)
    top = _between(count, -1.0, 1.0, generator) * (1 - down)
    mirror = torch.rand(count, generator=generator).lt(0.5) * 2.0 - 1
    angle = math.radians(variation.tilt) * _between(count, -1.0, 1.0, generator)
    cosine, sine = angle.cos(), angle.sin()
    first = torch.stack([mirror * across * cosine, -mirror * across * sine, left], 1)
    second = torch.stack([down * sine, down * cosine, top], 1)
    grid = F.affine_grid(torch.stack([first, second], 1), [count, 3, size, size], align_corners=False)
    return F.grid_sample(pictures, grid, padding_mode="reflection", align_corners=False)


def relit(pictures: Float[Tensor, "b 3 h w"], strength: float, generator: torch.Generator) -> Float[Tensor, "b 3 h w"]:
    """Other gamma, contrast, brightness, saturation and colour balance; one in ten is grey."""
    count = len(pictures)

    def around(middle: float, reach: float) -> Tensor:
        return _between(count, middle - reach, middle + reach, generator).view(-1, 1, 1, 1)

    pictures = pictures ** torch.exp(around(0.0, strength))
    mean = pictures.mean((1, 2, 3), keepdim=True)
    pictures = (pictures - mean) * around(1.0, strength) + mean + around(0.0, strength / 3)
    grey = pictures.mean(1, keepdim=True)
    saturation = around(1.0, 1.5 * strength) * torch.rand(count, 1, 1, 1, generator=generator).ge(0.1)
    pictures = (pictures - grey) * saturation + grey
    balance = 1 + 0.7 * strength * (torch.rand(count, 3, 1, 1, generator=generator) - 0.5)
    return (pictures * balance).clamp(0, 1)


def with_holes(
    pictures: Float[Tensor, "b 3 h w"], holed_share: float, generator: torch.Generator
) -> Float[Tensor, "b 3 h w"]:
    """Some pictures lose 5 to 50 % of the cells of a grid, of 4×4 to 8×8 cells."""
    count, cells = len(pictures), int(torch.randint(4, 9, (), generator=generator))
    missing = _between(count, 0.05, 0.5, generator) * torch.rand(count, generator=generator).lt(holed_share)
    lost = torch.rand(count, 1, cells, cells, generator=generator) < missing.view(-1, 1, 1, 1)
    # "nearest" would make cells of uneven width, always in the same order, which tells which way is up.
    lost_pixels = F.interpolate(lost.float(), pictures.shape[-2:], mode="nearest-exact")
    return torch.where(lost_pixels > 0, UNKNOWN, pictures)


def _between(count: int, low: float, high: float, generator: torch.Generator) -> Float[Tensor, "b"]:
    return low + (high - low) * torch.rand(count, generator=generator)
