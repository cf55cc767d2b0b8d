"""One photograph of separate square pieces on a plain background becomes pieces: found, straightened, cut out."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from diffassemble.cutting.image import SMALLEST_PIECE
from diffassemble.cutting.outlines import Squares, find_squares
from diffassemble.puzzle import ImagePieces, InputError

# Left out at every side, in pixels and as a share of it: cameras mix piece and background, and cuts are not straight.
_BLEND, _FRAYED = 1.0, 0.01


def cut_scattered(picture: Float[Tensor, "3 H W"], size: int | None = None) -> tuple[ImagePieces, Squares]:
    """The pieces that lie in a photograph, row by row, each turned upright by less than half a quarter turn.

    Pieces measure `size` pixels a side, or as many as they have in the photograph.
    """
    squares = find_squares(picture)
    inner = squares.side * (1 - 2 * _FRAYED) - 2 * _BLEND
    size = math.floor(inner) if size is None else size
    if size < SMALLEST_PIECE:
        raise InputError(
            f"the pieces found are {squares.side:.0f} pixels wide, which is too small; take a larger photo"
        )
    return ImagePieces(_straightened(picture, squares, inner, size)), squares


def _straightened(
    picture: Float[Tensor, "3 H W"], squares: Squares, inner: float, size: int
) -> Float[Tensor, "n 3 s s"]:
    """Every square as an upright picture; where pixels are left over, several are averaged into one."""
    finer = max(1, round(inner / size))
    steps = ((torch.arange(size * finer) + 0.5) / (size * finer) - 0.5) * inner
    y, x = torch.meshgrid(steps, steps, indexing="ij")
    height, width = picture.shape[-2:]
    scale = torch.tensor([width, height])
    pieces = []
    for centre, angle in zip(squares.centres, squares.angles.tolist(), strict=True):
        across = torch.stack([x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)], -1)
        where = (across + centre) / scale * 2 - 1
        fine = F.grid_sample(picture[None], where[None], mode="bicubic", padding_mode="border", align_corners=False)
        pieces.append(F.avg_pool2d(fine, finer)[0])
    # Files hold 8 bits; finer colours would not survive being written.
    return (torch.stack(pieces).clamp(0, 1) * 255).round() / 255
