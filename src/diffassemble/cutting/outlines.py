"""Where separate square pieces lie on a plain background.

The background is a smooth surface of colour, fitted to the photograph itself. What differs from it are pieces and the
shadows they cast. A shadow is background, only darker, and so are some pieces: several readings of how dark a shadow
may be are tried, and the one that shows the most equal squares is believed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float64
from scipy import ndimage
from skimage.measure import label, regionprops
from torch import Tensor

from diffassemble.cutting.background import background_colours
from diffassemble.cutting.edges import sharpen
from diffassemble.cutting.squares import Square, fit_square
from diffassemble.puzzle import InputError

# Pieces are looked for in a copy of the photograph that is no larger than this.
_LONGEST_SIDE = 1600
# A shadow leaves at least this share of the light; 1: nothing is taken for a shadow.
_READINGS = (1.0, 0.8, 0.6, 0.4)
# Sides and heights that differ by more than this share make no square, and squares no equal ones.
_UNEQUAL = 0.06
# Parts whose area is under this share of the largest one's are dust.
_DUST = 0.02
_LEAST_WIDTH = 8
# More parts than this are a pattern, not pieces.
_MOST = 1000


@dataclass(frozen=True)
class Squares:
    """Equal squares in a picture: centres (x, y) in pixels, angles clockwise in radians (±π/4), and their side."""

    centres: Float[Tensor, "n 2"]
    angles: Float[Tensor, "n"]
    side: float

    def __len__(self) -> int:
        return len(self.centres)

    def corners(self) -> Float[Tensor, "n 4 2"]:
        """The corners of each, clockwise as seen."""
        box = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]) * self.side / 2
        cosine, sine = self.angles.cos(), self.angles.sin()
        turn = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
        return box @ turn.mT + self.centres[:, None]


def find_squares(picture: Float[Tensor, "3 H W"]) -> Squares:
    """The pieces, in reading order; refuses when there are none, or when they are not equal squares."""
    reduction = max(1.0, max(picture.shape[-2:]) / _LONGEST_SIDE)
    small = (
        picture
        if reduction == 1
        else F.interpolate(picture[None], scale_factor=1 / reduction, mode="bilinear", antialias=True)[0].clamp(0, 1)
    )
    colours = np.stack([ndimage.gaussian_filter(plane, 0.8) for plane in small.double().numpy()])
    background, noise = background_colours(colours)
    readings = [_read(colours, background, noise, least) for least in _READINGS]
    found = max(readings, key=lambda squares: (_equal(squares).sum(), -_spread(squares)))
    if len(found) >= 2:
        found = sharpen(colours, found)
    _check(found, (small.shape[-2], small.shape[-1]), reduction)
    # Enlarged back along both sides, since reducing rounds each to whole pixels.
    stretch = np.array(picture.shape[:0:-1]) / np.array(small.shape[:0:-1])
    return _in_reading_order(found, stretch)


def _read(colours: Float64[np.ndarray, "3 h w"], background: np.ndarray, noise: float, least: float) -> list[Square]:
    """All parts that differ from the background, whose shadows leave at least a share of the light."""
    light = (colours * background).sum(0) / np.maximum((background**2).sum(0), 1e-6)
    apart = np.sqrt(((colours - np.clip(light, least, 1.0) * background) ** 2).sum(0))
    limit = max(0.04, 6 * noise)
    parts = label(_solid(apart > limit))
    regions = [region for region in regionprops(parts) if min(region.image.shape) >= _LEAST_WIDTH]
    if len(regions) > _MOST:
        return []
    largest = max((region.area for region in regions), default=0)
    return [fit_square(region.image_filled, region.bbox[:2]) for region in regions if region.area >= _DUST * largest]


def _solid(differs: Bool[np.ndarray, "h w"]) -> Bool[np.ndarray, "h w"]:
    """Without specks and without holes."""
    opened = ndimage.binary_opening(differs, iterations=2)
    closed = ndimage.binary_closing(np.pad(opened, 4), iterations=3)[4:-4, 4:-4]
    return ndimage.binary_fill_holes(closed)


def _equal(squares: list[Square]) -> Bool[np.ndarray, "n"]:
    """Which of these are squares as large as most of them."""
    if not squares:
        return np.zeros(0, bool)
    sides = np.array([(square.width, square.height) for square in squares])
    usual = np.median(sides)
    return (np.abs(sides / usual - 1) < _UNEQUAL).all(1)


def _spread(squares: list[Square]) -> float:
    sides = np.array([(square.width, square.height) for square in squares])
    return float(sides.std() / sides.mean()) if squares else np.inf


def _check(squares: list[Square], shape: tuple[int, int], reduction: float) -> None:
    """Refuse what is no set of equal squares, and say where the first doubtful one lies."""
    if len(squares) < 2:
        found = "only one piece" if squares else "no pieces"
        raise InputError(f"{found} found; lay separate square pieces on a plain background of another colour")
    equal = _equal(squares)
    usual = np.median([(square.width, square.height) for square in squares])
    for square, good in zip(squares, equal, strict=True):
        x, y = (round(value * reduction) for value in square.centre)
        if square.touches(shape):
            raise InputError(f"the piece at ({x}, {y}) is cut off by the edge of the photo; leave some space around")
        if not good:
            size = f"{square.width * reduction:.0f}x{square.height * reduction:.0f}"
            raise InputError(
                f"{len(squares)} pieces found, but not equal squares: the one at ({x}, {y}) measures {size} pixels, "
                f"most are {usual * reduction:.0f} wide; keep pieces apart, photograph from above, remove other things"
            )


def _in_reading_order(squares: list[Square], stretch: np.ndarray) -> Squares:
    """Rows from the top, each from the left; pieces whose centres lie within half a side are in one row."""
    side = float(np.median([(square.width, square.height) for square in squares]))
    by_height = sorted(squares, key=lambda square: square.centre[1])
    rows: list[list[Square]] = []
    for square in by_height:
        if rows and square.centre[1] - rows[-1][0].centre[1] < side / 2:
            rows[-1].append(square)
        else:
            rows.append([square])
    ordered = [square for row in rows for square in sorted(row, key=lambda square: square.centre[0])]
    centres = torch.tensor([square.centre for square in ordered]) * torch.from_numpy(stretch)
    angles = torch.tensor([square.angle for square in ordered])
    return Squares(centres.float(), angles.float(), side * float(stretch.mean()))
