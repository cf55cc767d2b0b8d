"""Photographs become pieces: one or many lying apart on a plain background are found, checked and cut out.

Pieces are looked for in a reduced copy and traced at full size, with an alpha that is soft over the border. What may
spoil a puzzle is told, not guessed away: pieces that touch each other or are cut off, things that are no pieces, photos
of different scales, blur. Lengths are pixels of the photographs.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float32, Float64, UInt8
from PIL import Image
from scipy import ndimage
from torch import Tensor

from diffassemble.core import InputError, Puzzle
from diffassemble.core.contours import middle, pieces_along, signed_area, trace
from diffassemble.core.puzzle import labels
from diffassemble.io.outlines import check_piece_count
from diffassemble.io.photo.segmentation import (
    CLEAR,
    Background,
    Contrast,
    Start,
    compare,
    fit_background,
    highest,
    soft_alpha,
    stand_out,
)
from diffassemble.io.photo.sheet import AUTO, NONE, Straightening, find_corners, paper_size, straighten
from diffassemble.io.pictures import picture_size, read_picture, to_levels
from diffassemble.rendering.picture import draw_found

# Pieces are looked for in a copy that is no larger than this; in a larger one where they come out too small there.
_LONGEST_SIDE, _SMALL_PIECE = 1600, 40
# Pixels across a piece, of which no more are needed to trace it: larger ones are traced in steps of several.
_FINEST = 1000
# A smaller one tells whether there are any; a sheet of paper has so many pieces on it, if nobody told of it.
_GLANCE, _ON_A_SHEET = 600, 3
# Parts under this share of the largest one's area, or narrower than that, are dust.
_DUST, _LEAST_WIDTH = 0.02, 6
# More parts than this are a pattern, and a part over this share of the photograph is no piece on a background.
_MOST, _TOO_LARGE = 1500, 0.7
# A photograph that was cropped to one piece shows less than this share of anything else.
_LEFT_OVER = 0.02
# Pixels around a piece that are kept with it.
_MARGIN = 2
# Areas are alike if their typical deviation is below this share; then one beyond the others by these factors is odd.
_ALIKE, _TWO_PIECES, _NO_PIECE = 0.25, 1.75, 0.4
_ENOUGH = 5
# Two parts that hang together by a neck narrower than this share of their size lie against each other.
_NECK = 0.12
# Pixels across a piece, of which no more are needed to find a neck.
_NECK_PIXELS = 100
# Photographs whose pieces differ in size by more than this factor have other scales.
_SCALES = 1.25
# Edges that rise over more than these pixels, and more than that share of a piece's size, are blurred.
_SOFT, _BLURRED = 6.0, 0.03
# Sides that differ by more than this factor are not those of squares of one size.
_OBLONG = 1.2
# What one picture may be, too.
_GRID = "; if it is a shuffled grid, pass --grid, such as --grid 6x6"
# Lab units between the lightest and darkest tenth of a piece that shows no picture.
_PLAIN = 12.0


@dataclass(frozen=True)
class Sight:
    """One thing in a photograph: its cut-out, where that begins there, its outline in the photograph, how soft it is.

    `trouble` says what is wrong with it, if anything is.
    """

    texture: UInt8[Tensor, "4 h w"]
    corner: tuple[int, int]
    curve: Float64[np.ndarray, "c 2"]
    softness: float
    trouble: str | None = None

    @property
    def area(self) -> float:
        return abs(signed_area(self.curve))

    @property
    def centre(self) -> Float64[np.ndarray, "2"]:
        return middle(self.curve)


@dataclass(frozen=True)
class Photo:
    """A photograph and what was found in it, in reading order."""

    path: Path
    levels: UInt8[Tensor, "3 H W"]
    sights: tuple[Sight, ...]
    sheet: Straightening | None = None


def read_photos(
    paths: Sequence[Path],
    colours: Sequence[Path] | None = None,
    sheet: str = AUTO,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Puzzle | InputError, Image.Image]:
    """The pieces in photographs, or what is wrong with them, and a picture of where they were found.

    `colours` are photographs of the same pieces at the same places, one for each, that show what is printed on them.
    Where pieces lie on a `sheet` of paper, photographs are straightened by its corners and brought to one scale; `say`
    is told so.
    """
    photos = _checked(list(_found(paths, find_sheets(paths, sheet, say))))
    names = _names(photos)
    left = iter(labels(names))
    shown = draw_found(
        [
            (
                photo.levels,
                [sight.curve for sight in photo.sights],
                ["" if sight.trouble else next(left) for sight in photo.sights],
            )
            for photo in photos
        ]
    )
    try:
        _refuse(photos)
        return _puzzle(photos, names, colours), shown
    except InputError as error:
        return InputError(f"{error}{'' if paths[1:] else _GRID}"), shown


def _found(paths: Sequence[Path], sheets: Sequence[Straightening | None]) -> Iterator[Photo]:
    """What lies in each photograph; several are looked at beside each other, but read one by one."""
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        for begin in range(0, len(paths), workers):
            some = slice(begin, begin + workers)
            pictures = [_straight(path, sheet) for path, sheet in zip(paths[some], sheets[some], strict=True)]
            yield from pool.map(find_pieces, paths[some], pictures, sheets[some])


def _straight(path: Path, sheet: Straightening | None) -> Float[Tensor, "3 H W"]:
    picture = read_picture(path)
    return picture if sheet is None else sheet.applied(picture)


def find_sheets(paths: Sequence[Path], told: str, say: Callable[[str], None]) -> list[Straightening | None]:
    """How to straighten each photograph, all to one scale; nothing for those that show no sheet of paper."""
    if told not in (AUTO, NONE):
        paper_size(told)
    sheets = [None if told == NONE else _sheet_in(path, told) for path in paths]
    for path, sheet in zip(paths, sheets, strict=True):
        if sheet is None and told not in (AUTO, NONE):
            raise InputError(f"{path}: shows no sheet of paper with all four corners in view; or pass --sheet none")
    scales = [sheet.scale for sheet in sheets if sheet is not None]
    if not scales:
        return sheets
    scale = float(np.median(scales))
    short, long = sorted(next(sheet.size for sheet in sheets if sheet is not None))
    if len(scales) < len(paths):
        missing = next(path for path, sheet in zip(paths, sheets, strict=True) if sheet is None)
        raise InputError(f"{missing}: shows no sheet of paper, though other photos do; lay all on one, or --sheet none")
    which = "1 photo" if len(paths) == 1 else f"{len(paths)} photos"
    taken = " (--sheet tells another format)" if told == AUTO else ""
    say(f"{which} straightened by the corners of a sheet of {short:g} × {long:g} mm{taken}: {scale:.1f} pixels a mm")
    return [None if sheet is None else replace(sheet, scale=scale) for sheet in sheets]


def _sheet_in(path: Path, told: str) -> Straightening | None:
    """The sheet in a photograph; one that nobody told of must have the shape of a format, and pieces on it."""
    if told == AUTO and min(picture_size(path)) < _GLANCE:
        return None
    picture = read_picture(path)
    corners = find_corners(picture)
    found = None if corners is None else straighten(corners, told)
    if found is None or told != AUTO:
        return found
    view = _look(replace(found, scale=_GLANCE / max(found.size)).applied(picture), 1.0)
    inside = [not view.cut_off(box) for _, box in view.parts]
    return found if sum(inside) >= _ON_A_SHEET and not view.crowded else None


def _names(photos: Sequence[Photo]) -> tuple[str, ...]:
    """Names of what is sound: those of the photographs, if each shows one piece, or else numbers."""
    count = sum(sight.trouble is None for photo in photos for sight in photo.sights)
    names = [f"{photo.path.stem}.png" for photo in photos if len(photo.sights) == 1]
    if len(set(names)) != len(photos) or count != len(photos):
        names = [f"piece_{number:03d}.png" for number in range(count)]
    return tuple(names)


def _puzzle(photos: Sequence[Photo], names: tuple[str, ...], colours: Sequence[Path] | None) -> Puzzle:
    sights = [sight for photo in photos for sight in photo.sights]
    check_piece_count(len(sights), photos[0].path)
    blurred = [photo.path.name for photo in photos if _is_blurred(photo)]
    if blurred:
        more = f" and {len(blurred) - 1} more" if blurred[1:] else ""
        warnings.warn(f"{blurred[0]}{more}: blurred, so outlines are less exact; take a sharper photo", stacklevel=2)
    if colours is not None:
        sights = [sight for pair in zip(photos, colours, strict=True) for sight in _coloured(*pair)]
    shows = any(map(_shows_something, sights))
    curves = [sight.curve - sight.corner for sight in sights]
    return Puzzle(pieces_along(curves, [sight.texture for sight in sights], shows), None, names)


def shows_pieces(path: Path, cropped: bool) -> bool:
    """Whether a picture shows mostly things that lie apart on a background; at its edge only if it may be cropped."""
    picture = read_picture(path)
    view = _look(picture, max(1.0, max(picture.shape[-2:]) / _GLANCE))
    edge = [view.cut_off(box) or (view.fills(box) and not cropped) for _, box in view.parts]
    return bool(edge) and not view.crowded and 2 * sum(edge) <= len(edge)


def shows_squares(path: Path) -> bool:
    """Whether most of what lies apart in a photograph is square, and most of the squares are of one size."""
    picture = read_picture(path)
    view = _look(picture, max(1.0, max(picture.shape[-2:]) / _LONGEST_SIDE))
    if view.crowded or not view.parts:
        return False
    sides = np.array([side for part, _ in view.parts if (side := _square_side(part)) is not None])
    alike = np.abs(sides / np.median(sides) - 1) < _OBLONG - 1 if len(sides) else sides > 0
    return bool(2 * alike.sum() > len(view.parts))


def _square_side(part: Bool[np.ndarray, "h w"]) -> float | None:
    """The side of a part that fills the smallest rectangle around it, whose sides are about equal; else nothing."""
    from scipy.spatial import ConvexHull

    points = np.argwhere(part ^ ndimage.binary_erosion(part)).astype(float)
    hull = points[ConvexHull(points).vertices]
    edges = np.roll(hull, -1, 0) - hull
    sides = []
    for y, x in edges / np.linalg.norm(edges, axis=1, keepdims=True):
        sides.append(np.ptp(hull @ np.array([[y, -x], [x, y]]), axis=0) + 1)
    width, height = min(sides, key=np.prod)
    square = part.sum() > 0.9 * width * height and max(width, height) < _OBLONG * min(width, height)
    return math.sqrt(width * height) if square else None


def find_pieces(path: Path, picture: Float[Tensor, "3 H W"], sheet: Straightening | None = None) -> Photo:
    """What lies in one photograph, in reading order; what touches the photograph's edge is marked as cut off.

    `sheet` is what straightened it.
    """
    levels = to_levels(picture)
    reduction = max(1.0, max(picture.shape[-2:]) / _LONGEST_SIDE)
    while True:
        view = _look(picture, reduction)
        typical = math.sqrt(float(np.median([part.sum() for part, _ in view.parts]))) if view.parts else _SMALL_PIECE
        if reduction == 1 or typical >= _SMALL_PIECE:
            break
        reduction = max(1.0, reduction / 2)
    if view.crowded:
        raise InputError(f"{path}: shows no plain background with pieces on it; lay them apart on one colour{_GRID}")
    found = [_cut_out(picture, levels, view, part, box) for part, box in view.parts]
    sights = [sight for sight in found if sight is not None]
    return Photo(path, levels, tuple(_in_reading_order(sights)), sheet)


_Box = tuple[slice, slice]


@dataclass(frozen=True)
class _View:
    """A reduced copy of a photograph: its background, how it differs from it, and masks of what stands out."""

    reduction: float
    background: Background
    contrast: Contrast
    parts: list[tuple[Bool[np.ndarray, "_ _"], _Box]]
    crowded: bool

    @property
    def shape(self) -> tuple[int, int]:
        height, width = self.contrast.apart.shape
        return height, width

    def cut_off(self, box: _Box) -> bool:
        """Whether a part reaches the photograph's edge, unless the photograph was cropped to show it alone."""
        reaches = [side.start <= 1 or side.stop >= most - 1 for side, most in zip(box, self.shape, strict=True)]
        return any(reaches) and not self.fills(box)

    def fills(self, box: _Box) -> bool:
        """Whether a part is alone and reaches from one end of the photograph to the other."""
        ends = [side.start <= 2 and side.stop >= most - 2 for side, most in zip(box, self.shape, strict=True)]
        return len(self.parts) == 1 and any(ends)


def _look(picture: Tensor, reduction: float) -> _View:
    """The reduced copy on the background that its rim shows; where nothing lies within, on its darkest or lightest."""
    small = picture
    if reduction > 1:
        small = F.interpolate(picture[None], scale_factor=1 / reduction, mode="bilinear", antialias=True)[0].clamp(0, 1)
    view = _on_background(small.numpy(), reduction, "rim")
    if view.parts and not any(view.cut_off(box) or view.fills(box) for _, box in view.parts):
        return view
    starts: tuple[Start, ...] = ("dark", "light")
    others = [_on_background(small.numpy(), reduction, start) for start in starts]
    cropped = [other for other in map(_largest_alone, others) if _is_cropped(other)]
    best = min(cropped, key=_unexplained, default=view)
    return best if _unexplained(best) < _LEFT_OVER else view


def _is_cropped(view: _View) -> bool:
    """Whether a view shows one thing that reaches from end to end, and is not all but a spot of the photograph."""
    if not view.parts or not view.fills(view.parts[0][1]):
        return False
    part, box = view.parts[0]
    whole = np.zeros(view.shape, bool)
    whole[box] = part
    rim = np.concatenate([whole[0], whole[-1], whole[:, 0], whole[:, -1]])
    return bool(whole.mean() < 0.95 and rim.mean() < 0.9)


def _largest_alone(view: _View) -> _View:
    """The same view with its largest part only."""
    return replace(view, parts=sorted(view.parts, key=lambda part: -int(part[0].sum()))[:1])


def _unexplained(view: _View) -> float:
    """The share of pixels that differ from the background and belong to no part."""
    differs = view.contrast.apart > CLEAR
    for part, box in view.parts:
        differs[box] &= ~part
    return float(differs.mean())


def _on_background(colours: Float32[np.ndarray, "3 h w"], reduction: float, start: Start) -> _View:
    background = fit_background(colours, start)
    contrast = compare(colours, background.colours(*colours.shape[1:]))
    number, count = ndimage.label(stand_out(contrast))
    boxes = ndimage.find_objects(number)
    areas = np.bincount(number.ravel(), minlength=count + 1)[1:]
    wide = [min(side.stop - side.start for side in box) >= _LEAST_WIDTH for box in boxes]
    chosen = [part for part in range(count) if wide[part] and areas[part] >= _DUST * areas.max()]
    parts = [(number[boxes[part]] == part + 1, boxes[part]) for part in chosen]
    crowded = count > _MOST or (start == "rim" and count > 0 and areas.max() > _TOO_LARGE * number.size)
    return _View(reduction, background, contrast, parts, bool(crowded))


def _cut_out(
    picture: Float[Tensor, "3 H W"],
    levels: UInt8[Tensor, "3 H W"],
    view: _View,
    part: Bool[np.ndarray, "h w"],
    box: _Box,
) -> Sight | None:
    """A part of the reduced copy, traced in the photograph itself; nothing, if it dissolves there."""
    shape, reduction, contrast = picture.shape[-2:], view.reduction, view.contrast
    size = math.sqrt(part.sum()) * reduction
    step = max(1, int(size / _FINEST))
    reach = int(np.clip(round(0.03 * size / step), 2, 40))
    margin = 4 * reach * step + math.ceil(2 * reduction)
    top, left = (max(0, math.floor(side.start * reduction) - margin) for side in box)
    low, right = (min(most, math.ceil(side.stop * reduction) + margin) for side, most in zip(box, shape, strict=True))
    # Whole steps only; what is left over at the far edge is background.
    low, right = low - (low - top) % step, right - (right - left) % step
    window = slice(top, low), slice(left, right)
    # Which pixel of the reduced copy each row and column belongs to, seen from the part's corner.
    rows, columns = (
        ((np.arange(side.start, side.stop, step) + step / 2) / reduction).astype(int) - own.start
        for side, own in zip(window, box, strict=True)
    )
    inside = ((rows >= 0) & (rows < part.shape[0]))[:, None] & (columns >= 0) & (columns < part.shape[1])
    mask = inside & part[np.ix_(np.clip(rows, 0, part.shape[0] - 1), np.clip(columns, 0, part.shape[1] - 1))]
    if reduction == step == 1:
        near = Contrast(contrast.apart[window], contrast.shade[window], contrast.slope[window])
    else:
        middles = slice(top + step // 2, low, step), slice(left + step // 2, right, step)
        seen = F.avg_pool2d(picture[:, window[0], window[1]], step).numpy()
        near = compare(seen, view.background.colours(shape[0], shape[1], middles))
    covered = torch.from_numpy(soft_alpha(near, mask, reach))
    if step > 1:
        covered = F.interpolate(covered[None, None], scale_factor=step, mode="bilinear")[0, 0]
    alpha = (covered * 255).round().to(torch.uint8)
    if not bool((alpha > 127).any()):
        return None
    y, x = (np.flatnonzero(alpha.amax(axis).numpy()) for axis in (1, 0))
    kept = tuple(
        slice(max(0, found[0] - _MARGIN), min(length, found[-1] + 1 + _MARGIN))
        for found, length in zip((y, x), alpha.shape, strict=True)
    )
    corner = left + int(kept[1].start), top + int(kept[0].start)
    alpha = alpha[kept]
    texture = torch.cat([levels[:, window[0], window[1]][:, kept[0], kept[1]], alpha[None]])
    curve = trace(alpha) + corner
    trouble = "is cut off by the edge of the photo; leave some space around" if view.cut_off(box) else None
    softness = step * _softness(near, (curve - (left, top)) / step, reach)
    return Sight(texture.contiguous(), corner, curve, softness, trouble)


def _softness(contrast: Contrast, curve: Float64[np.ndarray, "c 2"], reach: int) -> float:
    """Over how many pixels the border rises: what colours differ by on both sides, by how fast they change between."""
    x, y = (
        np.clip(values.astype(int), 0, most - 1) for values, most in zip(curve.T, contrast.apart.T.shape, strict=True)
    )
    rise = highest(contrast.apart, 2 * reach) + highest(-contrast.apart, 2 * reach)
    return float(np.median(rise[y, x] / np.maximum(contrast.slope[y, x], 0.1)))


def _in_reading_order(sights: Sequence[Sight]) -> list[Sight]:
    """Rows from the top, each from the left; centres within half of a typical height are in one row."""
    if not sights:
        return []
    height = float(np.median([np.ptp(sight.curve[:, 1]) for sight in sights]))
    rows: list[list[Sight]] = []
    for sight in sorted(sights, key=lambda sight: float(sight.centre[1])):
        if rows and sight.centre[1] - rows[-1][0].centre[1] < height / 2:
            rows[-1].append(sight)
        else:
            rows.append([sight])
    return [sight for row in rows for sight in sorted(row, key=lambda sight: float(sight.centre[0]))]


def _checked(photos: Sequence[Photo]) -> list[Photo]:
    """The same photographs with everything marked that is no single whole piece, by what the others look like."""
    areas = np.array([sight.area for photo in photos for sight in photo.sights if sight.trouble is None])
    usual = float(np.median(areas)) if len(areas) else 0.0
    alike = len(areas) >= _ENOUGH and float(np.median(np.abs(areas - usual))) < _ALIKE * usual / 1.4826
    return [
        replace(photo, sights=tuple(replace(sight, trouble=_trouble(sight, usual, alike)) for sight in photo.sights))
        for photo in photos
    ]


def _trouble(sight: Sight, usual: float, alike: bool) -> str | None:
    """What is wrong with a thing, if anything is; `usual` is the area of most."""
    if sight.trouble is not None:
        large = alike and sight.area > 3 * usual
        return "reaches over the edge of the photo and is no piece (a hand?)" if large else sight.trouble
    if alike and sight.area < _NO_PIECE * usual:
        return "is much smaller than the others; remove what is no piece"
    if (alike and sight.area > _TWO_PIECES * usual) or _has_neck(sight, usual):
        return "looks like two pieces that touch; lay them apart"
    return None


def _has_neck(sight: Sight, usual: float) -> bool:
    """Whether a thing falls into two large parts where it is narrow."""
    size = min(usual, sight.area)
    step = max(1, int(math.sqrt(size) / _NECK_PIXELS))
    mask = np.pad(sight.texture[3].numpy()[::step, ::step] > 127, 1)
    deep = step * ndimage.distance_transform_edt(mask)
    number, count = ndimage.label(deep > _NECK / 2 * math.sqrt(size))
    if count < 2:
        return False
    areas = np.sort(np.bincount(number.ravel())[1:])
    return bool(step**2 * areas[-2] > 0.3 * size)


def _refuse(photos: Sequence[Photo]) -> None:
    """Say in a line what is wrong, where, and in how many places."""
    for photo in photos:
        if not photo.sights:
            raise InputError(f"{photo.path}: no piece found; lay pieces apart on a plain background of another colour")
    troubled = [(photo, number) for photo in photos for number, sight in enumerate(photo.sights) if sight.trouble]
    if troubled:
        photo, number = troubled[0]
        sight = photo.sights[number]
        x, y = sight.centre.round().astype(int)
        more = f" (and {len(troubled) - 1} more)" if troubled[1:] else ""
        raise InputError(f"{photo.path}: the thing at ({x}, {y}) {sight.trouble}{more}")
    sizes = [float(np.median([sight.area for sight in photo.sights])) for photo in photos if len(photo.sights) >= 3]
    scales = np.sqrt(np.array(sizes) / np.median(sizes)) if sizes else np.ones(1)
    if (odd := int(np.abs(np.log(scales)).argmax())) is not None and abs(math.log(scales[odd])) > math.log(_SCALES):
        path = [photo.path for photo in photos if len(photo.sights) >= 3][odd]
        raise InputError(
            f"{path}: its pieces are {scales[odd]:.2f} times as large as those of the other photos; take all from the "
            "same distance, or resize them to one scale"
        )


def _is_blurred(photo: Photo) -> bool:
    soft = [sight.softness / max(_SOFT, _BLURRED * math.sqrt(sight.area)) for sight in photo.sights]
    return float(np.median(soft)) > 1


def _coloured(photo: Photo, path: Path) -> list[Sight]:
    """The same pieces with the colours of another photograph."""
    levels = to_levels(_straight(path, photo.sheet))
    if levels.shape != photo.levels.shape:
        raise InputError(f"{path}: has another size than {photo.path}; both must show the same in the same place")
    sights = []
    for sight in photo.sights:
        (left, top), (height, width) = sight.corner, sight.texture.shape[1:]
        colours = levels[:, top : top + height, left : left + width]
        sights.append(replace(sight, texture=torch.cat([colours, sight.texture[3:]])))
    return sights


def _shows_something(sight: Sight) -> bool:
    """Whether a piece is more than a silhouette."""
    inside = ndimage.binary_erosion(sight.texture[3].numpy() > 127, iterations=4)
    if not inside.any():
        return True
    levels = sight.texture[:3].numpy()[:, inside].astype(float)
    low, high = np.percentile(levels, (10, 90), axis=1)
    return bool((high - low).max() > _PLAIN or np.ptp(levels.mean(1)) > _PLAIN or levels.mean() > 64)
