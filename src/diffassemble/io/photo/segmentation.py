"""Photographs become detected pieces: ground → mask → components of a reduced copy → traced at full size, with status.

Lengths are pixels of the photograph, x to the right, y down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32, Float64, UInt8
from scipy import ndimage
from skimage.measure import regionprops
from torch import Tensor

from diffassemble.core import InputError
from diffassemble.core.contours import middle, signed_area, trace
from diffassemble.io.photo.ground import (
    GROUND,
    Contrast,
    Ground,
    GroundConfig,
    Start,
    compare,
    fit_ground,
    foreground,
    highest,
    reduced,
    rim_of,
    soft_alpha,
)
from diffassemble.io.photo.sheet import Straightening
from diffassemble.io.pictures import read_picture, to_levels

Status = Literal["piece", "speck", "cut off", "no piece", "touching"]
Component = Any
"""a connected part of the mask of a reduced copy: skimage's RegionProperties"""
GRID_ADVICE = "; if it is a shuffled grid, pass --grid, such as --grid 6x6"


@dataclass(frozen=True)
class SegmentationConfig:
    """How pieces are found in a photograph and traced."""

    ground: GroundConfig = GROUND
    longest_side: int = 1600
    """pixels of the longer side of the reduced copy in which pieces are looked for"""
    small_piece: int = 40
    """pixels across a typical piece in that copy; where they are smaller, a copy of twice the size is taken"""
    glance: int = 600
    """pixels of the longer side of the copy that only shows whether there are pieces"""
    finest: int = 1000
    """pixels across a piece that are enough to trace it: larger ones are traced in steps of several pixels"""
    dust: float = 0.02
    """share of the largest component's area below which a component is a speck"""
    least_width: int = 6
    """pixels of the reduced copy below which a component is a speck"""
    most: int = 1500
    """components beyond which a photograph shows a pattern and no pieces"""
    too_large: float = 0.7
    """share of the photograph that one component may cover"""
    left_over: float = 0.02
    """share of a photograph cropped to one piece that may show anything else"""
    cropped: tuple[float, float] = (0.95, 0.9)
    """shares of such a photograph, and of its rim, that the piece may cover"""
    reach: tuple[float, int, int] = (0.03, 2, 40)
    """distance to which the mask is trusted: share of a piece's size, and the least and the most pixels"""
    margin: int = 2
    """pixels around a piece that are kept with it"""
    oblong: float = 1.2
    """factor by which sides of squares of one size may differ"""
    square: float = 0.9
    """share of the smallest rectangle around it that a square covers"""


SEGMENTATION = SegmentationConfig()


@dataclass(frozen=True)
class Outline:
    """A cut-out, the pixel (x, y) of its corner, its outline in the photograph, and the width of its border."""

    texture: UInt8[Tensor, "4 h w"]
    corner: tuple[int, int]
    curve: Float64[np.ndarray, "c 2"]
    softness: float


@dataclass(frozen=True)
class DetectedPiece:
    """A component of a photograph: where it is, how large (square pixels), its status, and the reason if no piece.

    Specks have no outline.
    """

    centre: tuple[float, float]
    area: float
    status: Status
    reason: str = ""
    outline: Outline | None = None


@dataclass(frozen=True)
class Photo:
    """A photograph and everything that was found in it: components in reading order, then specks."""

    path: Path
    levels: UInt8[Tensor, "3 H W"]
    pieces: tuple[DetectedPiece, ...]
    sheet: Straightening | None = None

    @property
    def outlined(self) -> tuple[tuple[DetectedPiece, Outline], ...]:
        """All that was traced, whatever its status."""
        return tuple((piece, piece.outline) for piece in self.pieces if piece.outline is not None)

    @property
    def whole(self) -> tuple[tuple[DetectedPiece, Outline], ...]:
        """What is a piece."""
        return tuple(found for found in self.outlined if found[0].status == "piece")


@dataclass(frozen=True)
class Segmentation:
    """A copy of a photograph reduced by a factor; it is crowded where the mask is a pattern, or covers nearly all."""

    reduction: float
    ground: Ground
    contrast: Contrast
    parts: tuple[Component, ...]
    specks: tuple[Component, ...]
    crowded: bool

    def cut_off(self, part: Component) -> bool:
        """Whether a part reaches the photograph's edge, unless the photograph was cropped to show it alone."""
        ends = zip(part.slice, self.contrast.apart.shape, strict=True)
        return any(side.start <= 1 or side.stop >= most - 1 for side, most in ends) and not self.fills(part)

    def fills(self, part: Component) -> bool:
        """Whether a part is alone and reaches from one end of the photograph to the other."""
        ends = zip(part.slice, self.contrast.apart.shape, strict=True)
        return len(self.parts) == 1 and any(side.start <= 2 and side.stop >= most - 2 for side, most in ends)


def find_pieces(
    path: Path,
    picture: Float[Tensor, "3 H W"],
    sheet: Straightening | None = None,
    config: SegmentationConfig = SEGMENTATION,
) -> Photo:
    """Everything that is in one photograph; what touches its edge is marked as cut off. `sheet` straightened it."""
    # 1. Ground, mask and components, in a copy as small as the pieces allow.
    reduction = max(1.0, max(picture.shape[-2:]) / config.longest_side)
    while True:
        view = segmented(picture, reduction, config)
        sizes = [math.sqrt(part.area) for part in view.parts]
        if reduction == 1 or not sizes or float(np.median(sizes)) >= config.small_piece:
            break
        reduction = max(1.0, reduction / 2)
    if view.crowded:
        advice = f"lay them apart on one colour{GRID_ADVICE}"
        raise InputError(f"{path}: shows no plain background with pieces on it; {advice}")
    # 2. Outlines at full size; what dissolves there is a speck.
    levels, pieces, specks = to_levels(picture), [], list(view.specks)
    for part in view.parts:
        outline = trace_piece(picture, levels, view, part, config)
        if outline is None:
            specks.append(part)
            continue
        (x, y), area = middle(outline.curve), abs(signed_area(outline.curve))
        status: Status = "cut off" if view.cut_off(part) else "piece"
        reason = "is cut off by the edge of the photo; leave some space around" if status == "cut off" else ""
        pieces.append(DetectedPiece((float(x), float(y)), area, status, reason, outline))
    # 3. Reading order.
    height = float(np.median([np.ptp(piece.outline.curve[:, 1]) for piece in pieces if piece.outline] or [0.0]))
    listed = in_reading_order(pieces, height)
    for part in sorted(specks, key=lambda part: part.label):
        y, x = (view.reduction * (side.start + side.stop) / 2 for side in part.slice)
        area = view.reduction**2 * float(part.area)
        listed.append(DetectedPiece((x, y), area, "speck", "is too small to be a piece"))
    return Photo(path, levels, tuple(listed), sheet)


def shows_pieces(path: Path, cropped: bool, config: SegmentationConfig = SEGMENTATION) -> bool:
    """Whether a picture shows mostly pieces that lie apart on a ground; at its edge only if it may be cropped."""
    picture = read_picture(path)
    view = segmented(picture, max(1.0, max(picture.shape[-2:]) / config.glance), config)
    edge = [view.cut_off(part) or (view.fills(part) and not cropped) for part in view.parts]
    return bool(edge) and not view.crowded and 2 * sum(edge) <= len(edge)


def shows_squares(path: Path, config: SegmentationConfig = SEGMENTATION) -> bool:
    """Whether most of what lies apart in a photograph is square, and most of the squares are of one size."""
    picture = read_picture(path)
    view = segmented(picture, max(1.0, max(picture.shape[-2:]) / config.longest_side), config)
    sides = []
    for part in view.parts:
        rim = part.image ^ ndimage.binary_erosion(part.image)
        around = smallest_rectangle(np.argwhere(rim)[:, ::-1].astype(float))
        width, height = around.width + 1, around.height + 1
        equal = max(width, height) < config.oblong * min(width, height)
        if equal and part.area > config.square * width * height:
            sides.append(math.sqrt(width * height))
    alike = np.abs(np.array(sides) / np.median(sides) - 1) < config.oblong - 1 if sides else np.zeros(0)
    return not view.crowded and bool(2 * alike.sum() > len(view.parts))


def segmented(picture: Tensor, reduction: float, config: SegmentationConfig = SEGMENTATION) -> Segmentation:
    """The reduced copy on the ground that its rim shows; where nothing is within, on its darkest or lightest."""
    small = reduced(picture, reduction).numpy()
    view = _on_ground(small, reduction, "rim", config)
    if view.parts and not any(view.cut_off(part) or view.fills(part) for part in view.parts):
        return view
    # Photographs that are cropped to one piece have no ground at their rim.
    best, least = view, config.left_over
    for other in (_on_ground(small, reduction, "dark", config), _on_ground(small, reduction, "light", config)):
        parts = sorted(other.parts, key=lambda part: -part.area)[:1]
        other = replace(other, parts=tuple(parts), specks=())
        if not parts or not other.fills(parts[0]):
            continue
        mask = np.zeros(other.contrast.apart.shape, bool)
        mask[parts[0].slice] = parts[0].image
        unexplained = float(((other.contrast.apart > config.ground.clear) & ~mask).mean())
        if mask.mean() < config.cropped[0] and rim_of(mask).mean() < config.cropped[1] and unexplained < least:
            best, least = other, unexplained
    return best


def _on_ground(
    colours: Float32[np.ndarray, "3 h w"], reduction: float, start: Start, config: SegmentationConfig
) -> Segmentation:
    """The components that stand out from one ground."""
    ground = fit_ground(colours, start, config.ground)
    contrast = compare(colours, ground.colours(*colours.shape[1:]), config.ground)
    number, count = ndimage.label(foreground(contrast, config.ground))
    found = regionprops(number) if count <= config.most else []
    largest = max((part.area for part in found), default=0.0)
    crowded = count > config.most or (start == "rim" and largest > config.too_large * number.size)
    small = [min(part.image.shape) < config.least_width or part.area < config.dust * largest for part in found]
    parts, specks = (tuple(part for part, one in zip(found, small, strict=True) if one == wanted) for wanted in (0, 1))
    return Segmentation(reduction, ground, contrast, parts, specks, bool(crowded))


def trace_piece(
    picture: Float[Tensor, "3 H W"],
    levels: UInt8[Tensor, "3 H W"],
    view: Segmentation,
    component: Component,
    config: SegmentationConfig = SEGMENTATION,
) -> Outline | None:
    """A component of the reduced copy, traced in the photograph itself; nothing, if it dissolves there."""
    shape, reduction, part, box = picture.shape[-2:], view.reduction, component.image, component.slice
    # 1. A window around it, in steps of whole pixels; what is left over at the far edge is ground.
    size = math.sqrt(component.area) * reduction
    step = max(1, int(size / config.finest))
    share, least, most = config.reach
    reach = int(np.clip(round(share * size / step), least, most))
    margin = 4 * reach * step + math.ceil(2 * reduction)
    top, left = (max(0, math.floor(side.start * reduction) - margin) for side in box)
    low, right = (min(end, math.ceil(side.stop * reduction) + margin) for side, end in zip(box, shape, strict=True))
    low, right = low - (low - top) % step, right - (right - left) % step
    window = slice(top, low), slice(left, right)
    # 2. The mask there: which pixel of the reduced copy each row and column belongs to, seen from the part's corner.
    rows, columns = (
        ((np.arange(side.start, side.stop, step) + step / 2) / reduction).astype(int) - own.start
        for side, own in zip(window, box, strict=True)
    )
    inside = ((rows >= 0) & (rows < part.shape[0]))[:, None] & (columns >= 0) & (columns < part.shape[1])
    mask = inside & part[np.ix_(np.clip(rows, 0, part.shape[0] - 1), np.clip(columns, 0, part.shape[1] - 1))]
    # 3. The soft mask, and the outline along which it is half opaque.
    if reduction == step == 1:
        near = view.contrast.window(window)
    else:
        middles = slice(top + step // 2, low, step), slice(left + step // 2, right, step)
        seen = F.avg_pool2d(picture[:, window[0], window[1]], step).numpy()
        near = compare(seen, view.ground.colours(shape[0], shape[1], middles), config.ground)
    covered = torch.from_numpy(soft_alpha(near, mask, reach, config.ground))
    if step > 1:
        covered = F.interpolate(covered[None, None], scale_factor=step, mode="bilinear")[0, 0]
    alpha = (covered * 255).round().to(torch.uint8)
    if not bool((alpha > 127).any()):
        return None
    spans = (np.flatnonzero(alpha.amax(axis).numpy())[[0, -1]] for axis in (1, 0))
    kept = tuple(slice(max(0, int(a) - config.margin), int(b) + 1 + config.margin) for a, b in spans)
    corner = left + kept[1].start, top + kept[0].start
    alpha = alpha[kept]
    texture = torch.cat([levels[:, window[0], window[1]][:, kept[0], kept[1]], alpha[None]])
    curve = trace(alpha) + corner
    # 4. Over how many pixels the border rises: what both sides differ by, over how fast colours change between.
    at = ((curve - (left, top)) / step).astype(int)
    x, y = (np.clip(values, 0, end - 1) for values, end in zip(at.T, near.apart.T.shape, strict=True))
    rise = highest(near.apart, 2 * reach) + highest(-near.apart, 2 * reach)
    softness = step * float(np.median(rise[y, x] / np.maximum(near.slope[y, x], 0.1)))
    return Outline(texture.contiguous(), corner, curve, softness)


@dataclass(frozen=True)
class Rectangle:
    """A rectangle at any angle: centre (x, y), angle clockwise within ±π/4, and both sides."""

    centre: tuple[float, float]
    angle: float
    width: float
    height: float


_Placed = TypeVar("_Placed", DetectedPiece, Rectangle)


def in_reading_order(pieces: Iterable[_Placed], height: float) -> list[_Placed]:
    """Rows from the top, each from the left; centres within half of a typical height are in one row."""
    rows: list[list[_Placed]] = []
    for piece in sorted(pieces, key=lambda piece: piece.centre[1]):
        if rows and piece.centre[1] - rows[-1][0].centre[1] < height / 2:
            rows[-1].append(piece)
        else:
            rows.append([piece])
    return [piece for row in rows for piece in sorted(row, key=lambda piece: piece.centre[0])]


def smallest_rectangle(points: Float[np.ndarray, "m 2"]) -> Rectangle:
    """The rectangle of least area around points (x, y)."""
    from trimesh.bounds import oriented_bounds_2D

    to_own, (width, height) = oriented_bounds_2D(points)
    x, y = np.linalg.inv(to_own)[:2, 2]
    turn = -math.atan2(to_own[1, 0], to_own[0, 0])
    angle = (turn + math.pi / 4) % (math.pi / 2) - math.pi / 4
    # Angles are those of the sides up to quarter turns: an odd one exchanges width and height.
    if round((turn - angle) / (math.pi / 2)) % 2:
        width, height = height, width
    return Rectangle((float(x), float(y)), angle, float(width), float(height))
