"""A sheet of paper of known format under the pieces: its four corners undo the perspective and tell the scale.

Corners are (x, y) in pixels of the photograph, clockwise as seen from the top left one. Lengths of paper are
millimetres.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float64
from scipy import ndimage
from torch import Tensor

from diffassemble.core import InputError
from diffassemble.core.contours import perimeter, signed_area, trace
from diffassemble.io.photo.segmentation import compare, fit_background, soft_alpha, stand_out

FORMATS = {"a3": (297.0, 420.0), "a4": (210.0, 297.0), "a5": (148.0, 210.0), "letter": (215.9, 279.4)}
"""width and height of upright sheets"""
NONE, AUTO = "none", "auto"
_SIZE = re.compile(r"([0-9]{2,4}(?:\.[0-9]+)?)[xX×]([0-9]{2,4}(?:\.[0-9]+)?)")
# The sheet is looked for in a copy that is no larger than this; it covers at least this share of the photograph.
_LOOK, _LEAST_SHARE = 1000, 0.2
# Pixels of that copy to which the sheet's outline is known at first.
_REACH = 4
# How far, of a side, the outline of a sheet may be from straight sides; how much of the four corners' area it fills.
_STRAIGHT, _FILLED = 0.015, 0.95
# How far the shape of a sheet may be from a format that nobody told.
_ALIKE = 0.06
# So much of the shorter side is left out all around, where the table may show.
_INSET = 0.01


@dataclass(frozen=True)
class Straightening:
    """What takes a photograph of a sheet to a picture of it from above: `scale` pixels a millimetre of `size`."""

    corners: Float64[np.ndarray, "4 2"]
    size: tuple[float, float]
    scale: float

    def applied(self, picture: Float[Tensor, "3 H W"]) -> Float[Tensor, "3 h w"]:
        """The sheet from above, but for a strip along its edge."""
        inset = _INSET * min(self.size)
        width, height = (max(1, round((side - 2 * inset) * self.scale)) for side in self.size)
        x = inset + (np.arange(width) + 0.5) / self.scale
        y = inset + (np.arange(height) + 0.5) / self.scale
        matrix = homography(self.corners, self.size)
        over = matrix[2, 0] * x + matrix[2, 1] * y[:, None] + matrix[2, 2]
        places = np.stack(
            [(matrix[axis, 0] * x + matrix[axis, 1] * y[:, None] + matrix[axis, 2]) / over for axis in (0, 1)], -1
        )
        grid = torch.from_numpy(2 * places / np.array(picture.shape[:0:-1]) - 1).float()
        return F.grid_sample(picture[None], grid[None], "bilinear", "border", align_corners=False)[0]


def homography(corners: Float64[np.ndarray, "4 2"], size: tuple[float, float]) -> Float64[np.ndarray, "3 3"]:
    """What maps places on a sheet of that size to the photograph that has its corners there."""
    width, height = size
    rows, values = [], []
    for (u, v), (x, y) in zip([(0, 0), (width, 0), (width, height), (0, height)], corners, strict=True):
        rows += [[u, v, 1, 0, 0, 0, -u * x, -v * x], [0, 0, 0, u, v, 1, -u * y, -v * y]]
        values += [x, y]
    found = np.linalg.solve(np.array(rows, float), np.array(values, float))
    return np.append(found, 1.0).reshape(3, 3)


def paper_size(told: str) -> tuple[float, float]:
    """Width and height of an upright sheet: the name of a format, or millimetres, such as 210x297."""
    if told.lower() in FORMATS:
        return FORMATS[told.lower()]
    match = _SIZE.fullmatch(told.strip())
    if match is None or min(float(side) for side in match.groups()) < 20:
        names = ", ".join(FORMATS)
        raise InputError(f"--sheet {told!r} is no format; use {names}, millimetres such as 210x297, auto, or none")
    short, long = sorted(float(side) for side in match.groups())
    return short, long


def straighten(corners: Float64[np.ndarray, "4 2"], told: str) -> Straightening | None:
    """How to straighten a sheet with these corners; nothing if its format is not told and it looks like none."""
    sides = np.linalg.norm(np.roll(corners, -1, 0) - corners, axis=1)
    across, down = (sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2
    ratio = max(across, down) / min(across, down)
    if told == AUTO:
        named = min(("a4", "letter"), key=lambda name: abs(math.log(ratio * FORMATS[name][0] / FORMATS[name][1])))
        short, long = FORMATS[named]
        if abs(math.log(ratio * short / long)) > _ALIKE:
            return None
    else:
        short, long = paper_size(told)
    size = (long, short) if across > down else (short, long)
    return Straightening(corners, size, float(np.sqrt(across * down / (short * long))))


def find_corners(picture: Float[Tensor, "3 H W"]) -> Float64[np.ndarray, "4 2"] | None:
    """The corners of the one sheet that lies in a photograph, its four sides in view; nothing if there is none."""
    reduction = max(1.0, max(picture.shape[-2:]) / _LOOK)
    small = picture
    if reduction > 1:
        small = F.interpolate(picture[None], scale_factor=1 / reduction, mode="bilinear", antialias=True)[0].clamp(0, 1)
    colours = small.numpy()
    contrast = compare(colours, fit_background(colours).colours(*colours.shape[1:]))
    mask = _largest_filled(stand_out(contrast))
    rim = np.concatenate([mask[0], mask[-1], mask[:, 0], mask[:, -1]])
    if mask.mean() < _LEAST_SHARE or rim.any():
        return None
    curve = trace(torch.from_numpy((soft_alpha(contrast, mask, _REACH) * 255).round().astype(np.uint8)))
    rough = _four_corners(curve)
    if rough is None:
        return None
    corners = _along_sides(curve, rough)
    if corners is None or not _FILLED < abs(signed_area(curve)) / abs(signed_area(corners)) < 1 / _FILLED:
        return None
    first = int((corners @ np.ones(2)).argmin())
    stretch = np.array(picture.shape[:0:-1]) / np.array(colours.shape[:0:-1])
    return np.roll(corners, -first, 0) * stretch


def _largest_filled(mask: Bool[np.ndarray, "h w"]) -> Bool[np.ndarray, "h w"]:
    number, count = ndimage.label(mask)
    if not count:
        return mask
    return ndimage.binary_fill_holes(number == 1 + np.bincount(number.ravel())[1:].argmax())


def _four_corners(curve: Float64[np.ndarray, "c 2"]) -> Float64[np.ndarray, "4 2"] | None:
    """The corners of the convex hull if it is nearly a quadrilateral."""
    from scipy.spatial import ConvexHull
    from skimage.measure import approximate_polygon

    hull = curve[np.sort(ConvexHull(curve).vertices)]
    begin = int(np.linalg.norm(hull - hull.mean(0), axis=1).argmax())  # a corner for sure
    closed = np.roll(np.concatenate([hull, hull[:1]])[:-1], -begin, 0)
    closed = np.concatenate([closed, closed[:1]])
    for share in (0.01, 0.02, 0.03):
        found = approximate_polygon(closed, share * perimeter(hull))[:-1]
        if len(found) == 4:
            return found if signed_area(found) > 0 else found[::-1]
    return None


def _along_sides(
    curve: Float64[np.ndarray, "c 2"], rough: Float64[np.ndarray, "4 2"]
) -> Float64[np.ndarray, "4 2"] | None:
    """Where the lines along the four sides cross; nothing if a side is not straight."""
    lines = []
    for begin, end in zip(rough, np.roll(rough, -1, 0), strict=True):
        length = float(np.linalg.norm(end - begin))
        along = (end - begin) / length
        offset = curve - begin
        place, beside = offset @ along, offset @ np.array([-along[1], along[0]])
        near = (place > 0.08 * length) & (place < 0.92 * length) & (np.abs(beside) < 2 * _STRAIGHT * length)
        if near.sum() < 0.5 * length:
            return None
        points = curve[near]
        for _ in range(3):  # without what lies across the edge
            middle = points.mean(0)
            normal = np.linalg.svd(points - middle, full_matrices=False)[2][1]
            off = np.abs((points - middle) @ normal)
            points = points[off <= max(3 * float(np.median(off)), 0.5)]
        if float(np.mean(np.abs((curve[near] - middle) @ normal))) > _STRAIGHT * length:
            return None
        lines.append((normal, float(normal @ middle)))
    pairs = zip([lines[-1], *lines[:-1]], lines, strict=True)
    return np.array([np.linalg.solve(np.stack([a[0], b[0]]), np.array([a[1], b[1]])) for a, b in pairs])
