"""Photographs become detected pieces: ground → mask of what stands out → components → pieces with status → outlines.

Pieces are looked for in a reduced copy and traced at full size, with an alpha that is soft over the border. Every
component is listed with its status and the reason for it, whether it is a piece or not. Lengths are pixels of the
photograph, x to the right, y down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float32, Float64, UInt8
from scipy import ndimage
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
    highest,
    soft_alpha,
    stand_out,
)
from diffassemble.io.photo.sheet import Straightening
from diffassemble.io.pictures import read_picture, to_levels

Status = Literal["piece", "speck", "cut off", "no piece", "touching"]
Box = tuple[slice, slice]
CUT_OFF = "is cut off by the edge of the photo; leave some space around"
GRID_ADVICE = "; if it is a shuffled grid, pass --grid, such as --grid 6x6"


@dataclass(frozen=True)
class SegmentationConfig:
    """How things are found in a photograph and traced."""

    ground: GroundConfig = GROUND
    longest_side: int = 1600
    """pixels of the longer side of the reduced copy in which pieces are looked for"""
    small_piece: int = 40
    """pixels across a typical piece in that copy; where they are smaller, a copy of twice the size is taken"""
    glance: int = 600
    """pixels of the longer side of the copy that only tells whether there are pieces"""
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


SEGMENTATION = SegmentationConfig()


@dataclass(frozen=True)
class Outline:
    """A traced piece: its cut-out, the pixel (x, y) where that begins, its outline in the photograph.

    `softness` is over how many pixels the border rises.
    """

    texture: UInt8[Tensor, "4 h w"]
    corner: tuple[int, int]
    curve: Float64[np.ndarray, "c 2"]
    softness: float


@dataclass(frozen=True)
class DetectedPiece:
    """A component of a photograph: where it is, how large (square pixels), and whether it is a piece.

    `reason` completes the sentence "the thing at (x, y) …" where the status is not "piece". Specks have no outline.
    """

    centre: tuple[float, float]
    area: float
    status: Status
    reason: str = ""
    outline: Outline | None = None


@dataclass(frozen=True)
class Photo:
    """A photograph and everything that was found in it: things in reading order, then specks."""

    path: Path
    levels: UInt8[Tensor, "3 H W"]
    pieces: tuple[DetectedPiece, ...]
    sheet: Straightening | None = None

    @property
    def outlined(self) -> tuple[tuple[DetectedPiece, Outline], ...]:
        """All that was traced, whatever its status."""
        return tuple((piece, piece.outline) for piece in self.pieces if piece.outline is not None)


@dataclass(frozen=True)
class Component:
    """A connected part of the reduced copy that stands out: its mask within a box."""

    mask: Bool[np.ndarray, "_ _"]
    box: Box
    speck: bool = False


@dataclass(frozen=True)
class Segmentation:
    """A reduced copy of a photograph: its ground, how it differs from it, and all that stands out."""

    reduction: float
    ground: Ground
    contrast: Contrast
    components: tuple[Component, ...]
    crowded: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        height, width = self.contrast.apart.shape
        return height, width

    @property
    def parts(self) -> list[Component]:
        """What is no speck."""
        return [component for component in self.components if not component.speck]

    def cut_off(self, box: Box) -> bool:
        """Whether a part reaches the photograph's edge, unless the photograph was cropped to show it alone."""
        reaches = [side.start <= 1 or side.stop >= most - 1 for side, most in zip(box, self.shape, strict=True)]
        return any(reaches) and not self.fills(box)

    def fills(self, box: Box) -> bool:
        """Whether a part is alone and reaches from one end of the photograph to the other."""
        ends = [side.start <= 2 and side.stop >= most - 2 for side, most in zip(box, self.shape, strict=True)]
        return len(self.parts) == 1 and any(ends)


def find_pieces(
    path: Path,
    picture: Float[Tensor, "3 H W"],
    sheet: Straightening | None = None,
    config: SegmentationConfig = SEGMENTATION,
) -> Photo:
    """Everything that lies in one photograph; what touches the photograph's edge is marked as cut off.

    `sheet` is what straightened it.
    """
    # 1. Ground, mask and components, in a copy as small as the pieces allow.
    reduction = max(1.0, max(picture.shape[-2:]) / config.longest_side)
    while True:
        view = segmented(picture, reduction, config)
        sizes = [math.sqrt(part.mask.sum()) for part in view.parts]
        if reduction == 1 or not sizes or float(np.median(sizes)) >= config.small_piece:
            break
        reduction = max(1.0, reduction / 2)
    if view.crowded:
        advice = f"lay them apart on one colour{GRID_ADVICE}"
        raise InputError(f"{path}: shows no plain background with pieces on it; {advice}")
    # 2. Outlines at full size; what dissolves there is a speck.
    levels = to_levels(picture)
    things, specks = [], []
    for component in view.components:
        outline = None if component.speck else trace_piece(picture, levels, view, component, config)
        if outline is None:
            specks.append(_speck(component, view.reduction))
            continue
        cut_off = view.cut_off(component.box)
        status: tuple[Status, str] = ("cut off", CUT_OFF) if cut_off else ("piece", "")
        x, y = middle(outline.curve)
        things.append(DetectedPiece((float(x), float(y)), abs(signed_area(outline.curve)), *status, outline))
    # 3. Reading order.
    height = float(np.median([np.ptp(thing.outline.curve[:, 1]) for thing in things if thing.outline] or [0.0]))
    return Photo(path, levels, (*in_reading_order(things, height), *specks), sheet)


def _speck(component: Component, reduction: float) -> DetectedPiece:
    y, x = (reduction * (side.start + side.stop) / 2 for side in component.box)
    return DetectedPiece((x, y), reduction**2 * float(component.mask.sum()), "speck", "is too small to be a piece")


def shows_pieces(path: Path, cropped: bool, config: SegmentationConfig = SEGMENTATION) -> bool:
    """Whether a picture shows mostly things that lie apart on a ground; at its edge only if it may be cropped."""
    picture = read_picture(path)
    view = segmented(picture, max(1.0, max(picture.shape[-2:]) / config.glance), config)
    edge = [view.cut_off(part.box) or (view.fills(part.box) and not cropped) for part in view.parts]
    return bool(edge) and not view.crowded and 2 * sum(edge) <= len(edge)


def segmented(picture: Tensor, reduction: float, config: SegmentationConfig = SEGMENTATION) -> Segmentation:
    """The reduced copy on the ground that its rim shows; where nothing lies within, on its darkest or lightest."""
    small = reduced(picture, reduction).numpy()
    view = _on_ground(small, reduction, "rim", config)
    if view.parts and not any(view.cut_off(part.box) or view.fills(part.box) for part in view.parts):
        return view
    starts: tuple[Start, ...] = ("dark", "light")
    others = [_largest_alone(_on_ground(small, reduction, start, config)) for start in starts]
    cropped = [other for other in others if _is_cropped(other, config)]
    best = min(cropped, key=lambda other: _unexplained(other, config), default=view)
    return best if _unexplained(best, config) < config.left_over else view


def reduced(picture: Float[Tensor, "3 H W"], reduction: float) -> Float[Tensor, "3 h w"]:
    """A copy that is smaller by this factor along both sides."""
    if reduction <= 1:
        return picture
    return F.interpolate(picture[None], scale_factor=1 / reduction, mode="bilinear", antialias=True)[0].clamp(0, 1)


def _on_ground(
    colours: Float32[np.ndarray, "3 h w"], reduction: float, start: Start, config: SegmentationConfig
) -> Segmentation:
    ground = fit_ground(colours, start, config.ground)
    contrast = compare(colours, ground.colours(*colours.shape[1:]), config.ground)
    number, count = ndimage.label(stand_out(contrast, config.ground))
    areas = np.bincount(number.ravel(), minlength=count + 1)[1:]
    crowded = count > config.most or (start == "rim" and count > 0 and areas.max() > config.too_large * number.size)
    components = []
    for part, box in enumerate(ndimage.find_objects(number) if count <= config.most else []):
        narrow = min(side.stop - side.start for side in box) < config.least_width
        speck = narrow or bool(areas[part] < config.dust * areas.max())
        components.append(Component(number[box] == part + 1, box, speck))
    return Segmentation(reduction, ground, contrast, tuple(components), bool(crowded))


def _largest_alone(view: Segmentation) -> Segmentation:
    """The same segmentation with its largest part only."""
    return replace(view, components=tuple(sorted(view.parts, key=lambda part: -int(part.mask.sum()))[:1]))


def _is_cropped(view: Segmentation, config: SegmentationConfig) -> bool:
    """Whether one thing reaches from end to end, and is not all but a spot of the photograph."""
    if not view.parts or not view.fills(view.parts[0].box):
        return False
    whole = np.zeros(view.shape, bool)
    whole[view.parts[0].box] = view.parts[0].mask
    rim = np.concatenate([whole[0], whole[-1], whole[:, 0], whole[:, -1]])
    return bool(whole.mean() < config.cropped[0] and rim.mean() < config.cropped[1])


def _unexplained(view: Segmentation, config: SegmentationConfig) -> float:
    """The share of pixels that differ from the ground and belong to no part."""
    differs = view.contrast.apart > config.ground.clear
    for part in view.parts:
        differs[part.box] &= ~part.mask
    return float(differs.mean())


def trace_piece(
    picture: Float[Tensor, "3 H W"],
    levels: UInt8[Tensor, "3 H W"],
    view: Segmentation,
    component: Component,
    config: SegmentationConfig = SEGMENTATION,
) -> Outline | None:
    """A component of the reduced copy, traced in the photograph itself; nothing, if it dissolves there."""
    shape, reduction, part, box = picture.shape[-2:], view.reduction, component.mask, component.box
    # 1. A window around it, in steps of whole pixels; what is left over at the far edge is ground.
    size = math.sqrt(part.sum()) * reduction
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
    rows, columns = (np.flatnonzero(alpha.amax(axis).numpy()) for axis in (1, 0))
    first, last = (max(0, int(found[0]) - config.margin) for found in (rows, columns)), (rows[-1], columns[-1])
    kept = tuple(slice(a, int(b) + 1 + config.margin) for a, b in zip(first, last, strict=True))
    corner = left + kept[1].start, top + kept[0].start
    alpha = alpha[kept]
    texture = torch.cat([levels[:, window[0], window[1]][:, kept[0], kept[1]], alpha[None]])
    curve = trace(alpha) + corner
    softness = step * _softness(near, (curve - (left, top)) / step, reach)
    return Outline(texture.contiguous(), corner, curve, softness)


def _softness(contrast: Contrast, curve: Float64[np.ndarray, "c 2"], reach: int) -> float:
    """Over how many pixels the border rises: what colours differ by on both sides, by how fast they change between."""
    x, y = (
        np.clip(values.astype(int), 0, most - 1) for values, most in zip(curve.T, contrast.apart.T.shape, strict=True)
    )
    rise = highest(contrast.apart, 2 * reach) + highest(-contrast.apart, 2 * reach)
    return float(np.median(rise[y, x] / np.maximum(contrast.slope[y, x], 0.1)))


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
    """The rectangle of least area around points (x, y): it lies along an edge of their convex hull."""
    from scipy.spatial import ConvexHull

    hull = points[ConvexHull(points).vertices]
    angles = np.arctan2(*(np.roll(hull, -1, 0) - hull).T[::-1])
    turns = np.stack([np.cos(angles), -np.sin(angles), np.sin(angles), np.cos(angles)], -1).reshape(-1, 2, 2)
    own = hull @ turns  # the hull in the frame of each of its edges
    best = int(np.ptp(own, axis=1).prod(1).argmin())
    low, high = own[best].min(0), own[best].max(0)
    (x, y), (width, height) = turns[best] @ ((low + high) / 2), high - low
    angle = (angles[best] + np.pi / 4) % (np.pi / 2) - np.pi / 4
    # The angle is that of the sides up to quarter turns: an odd one exchanges width and height.
    if round((angles[best] - angle) / (np.pi / 2)) % 2:
        width, height = height, width
    return Rectangle((float(x), float(y)), float(angle), float(width), float(height))


def shows_squares(path: Path, oblong: float = 1.2, config: SegmentationConfig = SEGMENTATION) -> bool:
    """Whether most of what lies apart in a photograph is square, and most of the squares are of one size.

    Sides that differ by more than the factor `oblong` are not those of squares of one size.
    """
    picture = read_picture(path)
    view = segmented(picture, max(1.0, max(picture.shape[-2:]) / config.longest_side), config)
    sides = [side for part in view.parts if (side := _square_side(part.mask, oblong)) is not None]
    alike = np.abs(np.array(sides) / np.median(sides) - 1) < oblong - 1 if sides else np.zeros(0)
    return not view.crowded and bool(2 * alike.sum() > len(view.parts))


def _square_side(part: Bool[np.ndarray, "h w"], oblong: float) -> float | None:
    """The side of a part that fills the smallest rectangle around it, whose sides are about equal; else nothing."""
    around = smallest_rectangle(np.argwhere(part ^ ndimage.binary_erosion(part))[:, ::-1].astype(float))
    width, height = around.width + 1, around.height + 1
    square = part.sum() > 0.9 * width * height and max(width, height) < oblong * min(width, height)
    return math.sqrt(width * height) if square else None
