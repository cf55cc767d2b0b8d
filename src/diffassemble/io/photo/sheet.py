"""A sheet of paper of known format (mm) under the pieces: its four corners undo the perspective and give the scale.

Corners are (x, y) in pixels of the photograph, clockwise as seen from the top left one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64
from scipy import ndimage
from skimage.transform import AffineTransform, ProjectiveTransform, estimate_transform, warp
from torch import Tensor

from diffassemble.core import InputError
from diffassemble.core.contours import perimeter, signed_area, trace
from diffassemble.io.photo.ground import compare, fit_ground, foreground, largest, reduced, rim_of, soft_alpha

FORMATS = {"a3": (297.0, 420.0), "a4": (210.0, 297.0), "a5": (148.0, 210.0), "letter": (215.9, 279.4)}
"""width and height of upright sheets"""
NONE, AUTO = "none", "auto"
_SIZE = re.compile(r"([0-9]{2,4}(?:\.[0-9]+)?)[xX×]([0-9]{2,4}(?:\.[0-9]+)?)")
Corners = Float64[np.ndarray, "4 2"]


@dataclass(frozen=True)
class SheetConfig:
    """How a sheet of paper is recognised."""

    longest_side: int = 1000
    """pixels of the longer side of the copy in which it is looked for"""
    least_share: float = 0.2
    """share of the photograph that it covers at least"""
    reach: int = 4
    """pixels of the copy to which its outline is known at first"""
    straight: float = 0.015
    """share of a side by which the outline may deviate from a straight line"""
    filled: float = 0.95
    """share of the area between the four corners that the outline must enclose, and the other way round"""
    alike: float = 0.06
    """logarithm of a ratio of sides by which a format that was not asked for may be missed"""
    inset: float = 0.01
    """share of the shorter side that is left out all around, where the table may show"""
    middle: float = 0.08
    """share of a side at each end that is not used to fit it"""
    smallest: float = 20.0
    """millimetres of the shortest side of a format"""


SHEET = SheetConfig()


@dataclass(frozen=True)
class Straightening:
    """The homography from a photograph of a sheet to a picture of it from above: `scale` pixels a millimetre."""

    corners: Corners
    size: tuple[float, float]
    scale: float

    def applied(self, picture: Float[Tensor, "3 H W"], config: SheetConfig = SHEET) -> Float[Tensor, "3 h w"]:
        """The sheet from above, but for a strip along its edge."""
        inset = config.inset * min(self.size)
        width, height = (max(1, round((side - 2 * inset) * self.scale)) for side in self.size)
        # Middles of pixels of the result, places on the sheet, places in the photograph, middles of its pixels.
        on_sheet = AffineTransform(scale=1 / self.scale, translation=(inset + 0.5 / self.scale,) * 2)
        there = on_sheet + sheet_to_photo(self.corners, self.size) + AffineTransform(translation=(-0.5, -0.5))
        seen = warp(picture.movedim(0, -1).numpy(), there, output_shape=(height, width), mode="edge")
        return torch.from_numpy(seen).movedim(-1, 0).float().contiguous()


def sheet_to_photo(corners: Corners, size: tuple[float, float]) -> ProjectiveTransform:
    """The homography from places on a sheet of that size to the photograph that has its corners there."""
    width, height = size
    on_sheet = np.array([(0, 0), (width, 0), (width, height), (0, height)])
    return estimate_transform("projective", on_sheet, corners)


def paper_size(name: str, config: SheetConfig = SHEET) -> tuple[float, float]:
    """Width and height of an upright sheet: the name of a format, or millimetres, such as 210x297."""
    if name.lower() in FORMATS:
        return FORMATS[name.lower()]
    match = _SIZE.fullmatch(name.strip())
    short, long = sorted(map(float, match.groups())) if match else (0.0, 0.0)
    if short < config.smallest:
        known = ", ".join(FORMATS)
        raise InputError(f"--sheet {name!r} is no format; use {known}, millimetres such as 210x297, auto, or none")
    return short, long


def straighten(corners: Corners, wanted: str, config: SheetConfig = SHEET) -> Straightening | None:
    """How to straighten a sheet with these corners; nothing if its format is not given and it looks like none."""
    sides = np.linalg.norm(np.roll(corners, -1, 0) - corners, axis=1)
    across, down = (sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2
    ratio = max(across, down) / min(across, down)
    if wanted == AUTO:
        named = min(("a4", "letter"), key=lambda name: abs(math.log(ratio * FORMATS[name][0] / FORMATS[name][1])))
        short, long = FORMATS[named]
        if abs(math.log(ratio * short / long)) > config.alike:
            return None
    else:
        short, long = paper_size(wanted)
    size = (long, short) if across > down else (short, long)
    return Straightening(corners, size, float(np.sqrt(across * down / (short * long))))


def find_corners(picture: Float[Tensor, "3 H W"], config: SheetConfig = SHEET) -> Corners | None:
    """The corners of the one sheet in a photograph with its four sides in view; nothing if there is none."""
    colours = reduced(picture, max(picture.shape[-2:]) / config.longest_side).numpy()
    contrast = compare(colours, fit_ground(colours).colours(*colours.shape[1:]))
    mask = ndimage.binary_fill_holes(largest(foreground(contrast)))
    if mask.mean() < config.least_share or rim_of(mask).any():
        return None
    curve = trace(torch.from_numpy((soft_alpha(contrast, mask, config.reach) * 255).round().astype(np.uint8)))
    rough = _four_corners(curve)
    corners = None if rough is None else _along_sides(curve, rough, config)
    if corners is None or not config.filled < abs(signed_area(curve)) / abs(signed_area(corners)) < 1 / config.filled:
        return None
    first = int((corners @ np.ones(2)).argmin())
    return np.roll(corners, -first, 0) * (np.array(picture.shape[:0:-1]) / np.array(colours.shape[:0:-1]))


def _four_corners(curve: Float64[np.ndarray, "c 2"]) -> Corners | None:
    """The corners of the convex hull if it is nearly a quadrilateral."""
    from scipy.spatial import ConvexHull
    from skimage.measure import approximate_polygon

    hull = curve[np.sort(ConvexHull(curve).vertices)]
    begin = int(np.linalg.norm(hull - hull.mean(0), axis=1).argmax())  # certainly a corner
    closed = np.concatenate([hull[begin:], hull[: begin + 1]])
    for share in (0.01, 0.02, 0.03):
        found = approximate_polygon(closed, share * perimeter(hull))[:-1]
        if len(found) == 4:
            return found if signed_area(found) > 0 else found[::-1]
    return None


def _along_sides(curve: Float64[np.ndarray, "c 2"], rough: Corners, config: SheetConfig) -> Corners | None:
    """Where the lines along the four sides cross; nothing if a side is not straight."""
    lines = []
    for begin, end in zip(rough, np.roll(rough, -1, 0), strict=True):
        length = float(np.linalg.norm(end - begin))
        along = (end - begin) / length
        offset = curve - begin
        place, beside = offset @ along / length, offset @ np.array([-along[1], along[0]])
        near = (np.abs(place - 0.5) < 0.5 - config.middle) & (np.abs(beside) < 2 * config.straight * length)
        if near.sum() < 0.5 * length:
            return None
        points = curve[near]
        for _ in range(3):  # without outliers
            middle = points.mean(0)
            normal = np.linalg.svd(points - middle, full_matrices=False)[2][1]
            off = np.abs((points - middle) @ normal)
            points = points[off <= max(3 * float(np.median(off)), 0.5)]
        if float(np.mean(np.abs((curve[near] - middle) @ normal))) > config.straight * length:
            return None
        lines.append((normal, float(normal @ middle)))
    pairs = zip([lines[-1], *lines[:-1]], lines, strict=True)
    return np.array([np.linalg.solve(np.stack([a[0], b[0]]), np.array([a[1], b[1]])) for a, b in pairs])
