"""Photographs of loose pieces of any outline become a puzzle of all whole single pieces; what is none is reported."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from scipy import ndimage
from torch import Tensor

from diffassemble.core import InputError, Puzzle
from diffassemble.core.contours import pieces_along
from diffassemble.core.limits import LIMITS, check_count
from diffassemble.core.puzzle import labels
from diffassemble.io.photo.ground import NORMAL
from diffassemble.io.photo.segmentation import (
    GRID_ADVICE,
    SEGMENTATION,
    DetectedPiece,
    Outline,
    Photo,
    find_pieces,
    segmented,
)
from diffassemble.io.photo.sheet import AUTO, NONE, Straightening, find_corners, paper_size, straighten
from diffassemble.io.pictures import picture_size, read_picture, to_levels
from diffassemble.rendering.picture import draw_found


@dataclass(frozen=True)
class CheckConfig:
    """What makes a component of a photograph doubtful beside the others, and a photograph beside other photographs."""

    enough: int = 5
    """pieces from which on areas are compared"""
    alike: float = 0.25
    """share of the median area that areas may typically deviate by and still be alike"""
    two_pieces: float = 1.75
    """times the median area from which a component is two pieces, where areas are alike"""
    no_piece: float = 0.4
    """times the median area below which a component is no piece, where areas are alike"""
    hand: float = 3.0
    """times the median area from which a component at the edge is no piece, where areas are alike"""
    neck: float = 0.12
    """share of a piece's size: two large parts connected by less than that touch"""
    neck_part: float = 0.3
    """share of a piece's area that each of two such parts has at least"""
    neck_pixels: int = 100
    """pixels across a piece that are enough to find a neck"""
    scales: float = 1.25
    """factor in size between pieces of photographs of one scale"""
    counted: int = 3
    """pieces in a photograph from which on its scale is compared"""
    soft: float = 6.0
    """pixels over which a sharp border may rise, or"""
    blurred: float = 0.03
    """share of a piece's size over which it may"""
    plain: float = 12.0
    """sRGB levels between the tenth and ninetieth hundredth of a piece that shows no picture"""
    black: float = 64.0
    """mean sRGB level of a silhouette"""
    on_sheet: int = 3
    """components on a sheet of paper that was not asked for, so that it is taken for one"""


CHECKS = CheckConfig()


def read_photos(
    paths: Sequence[Path],
    colours: Sequence[Path] | None = None,
    sheet: str = AUTO,
    say: Callable[[str], None] = lambda text: None,
    checks: CheckConfig = CHECKS,
) -> tuple[Puzzle | InputError, Image.Image]:
    """The pieces in photographs, or why there is no puzzle, and a picture of where they were found.

    `colours` are photographs of the same pieces at the same places that show what is printed on them. Photographs are
    straightened by the corners of a `sheet` of paper and brought to one scale, which is reported to `say`.
    """
    # 1. Sheets of paper, and what is on them; pictures are read one by one.
    reading = Lock()

    def pieces_of(path: Path, straightening: Straightening | None) -> Photo:
        with reading:
            picture = _straightened(path, straightening)
        return find_pieces(path, picture, straightening)

    sheets = find_sheets(paths, sheet, say, checks)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        photos = _judged(list(pool.map(pieces_of, paths, sheets)), checks)
    # 2. What was found, drawn.
    left = iter(labels(names := _names(photos)))
    drawn = []
    for photo in photos:
        words = [next(left) if piece.status == "piece" else "" for piece, _ in photo.outlined]
        drawn.append((photo.levels, [outline.curve for _, outline in photo.outlined], words))
    shown = draw_found(drawn)
    # 3. The puzzle of all that are pieces.
    try:
        _report(photos, checks)
        return _puzzle(photos, names, colours, checks), shown
    except InputError as error:
        return InputError(f"{error}{'' if paths[1:] else GRID_ADVICE}"), shown


def _straightened(path: Path, sheet: Straightening | None) -> Float[Tensor, "3 H W"]:
    picture = read_picture(path)
    return picture if sheet is None else sheet.applied(picture)


def find_sheets(
    paths: Sequence[Path], wanted: str, say: Callable[[str], None], checks: CheckConfig = CHECKS
) -> list[Straightening | None]:
    """How to straighten each photograph, all to one scale; nothing for those that show no sheet of paper."""
    if wanted not in (AUTO, NONE):
        paper_size(wanted)
    sheets = [None if wanted == NONE else _sheet_in(path, wanted, checks) for path in paths]
    missing = next((path for path, sheet in zip(paths, sheets, strict=True) if sheet is None), None)
    if missing is not None and wanted not in (AUTO, NONE):
        raise InputError(f"{missing}: shows no sheet of paper with all four corners in view; or pass --sheet none")
    known = [sheet for sheet in sheets if sheet is not None]
    if not known:
        return sheets
    if missing is not None:
        raise InputError(f"{missing}: shows no sheet of paper, though other photos do; lay all on one, or --sheet none")
    scale = float(np.median([sheet.scale for sheet in known]))
    short, long = sorted(known[0].size)
    which = "1 photo" if len(paths) == 1 else f"{len(paths)} photos"
    taken = " (--sheet names another format)" if wanted == AUTO else ""
    say(f"{which} straightened by the corners of a sheet of {short:g} × {long:g} mm{taken}: {scale:.1f} pixels a mm")
    return [replace(sheet, scale=scale) for sheet in known]


def _sheet_in(path: Path, wanted: str, checks: CheckConfig) -> Straightening | None:
    """The sheet in a photograph; one that was not asked for must have the shape of a format, and pieces on it."""
    if wanted == AUTO and min(picture_size(path)) < SEGMENTATION.glance:
        return None
    picture = read_picture(path)
    corners = find_corners(picture)
    found = None if corners is None else straighten(corners, wanted)
    if found is None or wanted != AUTO:
        return found
    view = segmented(replace(found, scale=SEGMENTATION.glance / max(found.size)).applied(picture), 1.0)
    inside = sum(not view.cut_off(part) for part in view.parts)
    return found if inside >= checks.on_sheet and not view.crowded else None


def _judged(photos: Sequence[Photo], checks: CheckConfig) -> list[Photo]:
    """The same photographs with the status of everything that is no single whole piece, judged beside the others."""
    areas = np.array([piece.area for photo in photos for piece in photo.pieces if piece.status == "piece"])
    usual = float(np.median(areas)) if len(areas) else 0.0
    spread = NORMAL * float(np.median(np.abs(areas - usual))) if len(areas) >= checks.enough else math.inf
    alike = spread < checks.alike * usual

    def judged(piece: DetectedPiece) -> DetectedPiece:
        times = piece.area / usual if alike else 1.0
        if piece.status == "cut off" and times > checks.hand:
            return replace(piece, status="no piece", reason="reaches over the edge and is no piece (a hand?)")
        if piece.status != "piece" or piece.outline is None:
            return piece
        if times < checks.no_piece:
            return replace(piece, status="no piece", reason="is much smaller than the others; remove what is no piece")
        if times > checks.two_pieces or _has_neck(piece.outline, min(usual, piece.area), checks):
            return replace(piece, status="touching", reason="looks like two pieces that touch; lay them apart")
        return piece

    return [replace(photo, pieces=tuple(map(judged, photo.pieces))) for photo in photos]


def _has_neck(outline: Outline, size: float, checks: CheckConfig) -> bool:
    """Whether a component falls into two large parts where it is narrow, for pieces of this area."""
    step = max(1, int(math.sqrt(size) / checks.neck_pixels))
    mask = np.pad(outline.texture[3].numpy()[::step, ::step] > 127, 1)
    deep = step * ndimage.distance_transform_edt(mask)
    number, count = ndimage.label(deep > checks.neck / 2 * math.sqrt(size))
    areas = np.sort(np.bincount(number.ravel())[1:])
    return count > 1 and bool(step**2 * areas[-2] > checks.neck_part * size)


def _names(photos: Sequence[Photo]) -> tuple[str, ...]:
    """Names of the pieces: those of the photographs, if each shows one piece and nothing else, or else numbers."""
    count = sum(piece.status == "piece" for photo in photos for piece in photo.pieces)
    names = [f"{photo.path.stem}.png" for photo in photos if len(photo.outlined) == 1]
    if len(set(names)) != len(photos) or count != len(photos):
        names = [f"piece_{number:03d}.png" for number in range(count)]
    return tuple(names)


def _report(photos: Sequence[Photo], checks: CheckConfig) -> None:
    """Warn of all that is set aside, and of blur; refuse photographs without a piece, or of different scales."""
    for photo in photos:
        if not photo.outlined:
            raise InputError(f"{photo.path}: no piece found; lay pieces apart on a plain background of another colour")
    doubtful = [(photo, piece) for photo in photos for piece, _ in photo.outlined if piece.status != "piece"]
    if doubtful:
        photo, piece = doubtful[0]
        x, y = (round(place) for place in piece.centre)
        more = f" (and {len(doubtful) - 1} more)" if doubtful[1:] else ""
        found = f"{photo.path}: the thing at ({x}, {y}) {piece.reason}{more}"
        if sum(len(photo.whole) for photo in photos) < 2:
            raise InputError(found)
        warnings.warn(f"{found}; set aside", stacklevel=2)
    areas = {photo.path: [piece.area for piece, _ in photo.whole] for photo in photos}
    sizes = {path: math.sqrt(np.median(found)) for path, found in areas.items() if len(found) >= checks.counted}
    usual = float(np.sqrt(np.median(np.square([*sizes.values()])))) if sizes else 1.0
    odd = max(sizes, key=lambda path: abs(math.log(sizes[path] / usual)), default=None)
    if odd is not None and abs(math.log(sizes[odd] / usual)) > math.log(checks.scales):
        raise InputError(
            f"{odd}: its pieces are {sizes[odd] / usual:.2f} times as large as those of the other photos; take all "
            "from the same distance, or resize them to one scale"
        )
    blurred = []
    for photo in photos:
        sharp = [max(checks.soft, checks.blurred * math.sqrt(piece.area)) for piece, _ in photo.whole]
        rises = [outline.softness / most for (_, outline), most in zip(photo.whole, sharp, strict=True)]
        blurred += [photo.path.name] if rises and float(np.median(rises)) > 1 else []
    if blurred:
        more = f" and {len(blurred) - 1} more" if blurred[1:] else ""
        warnings.warn(f"{blurred[0]}{more}: blurred, so outlines are less exact; take a sharper photo", stacklevel=2)


def _puzzle(
    photos: Sequence[Photo], names: tuple[str, ...], colours: Sequence[Path] | None, checks: CheckConfig
) -> Puzzle:
    """The whole pieces as a puzzle, in the colours of other photographs if there are some."""
    found = [outline for photo in photos for _, outline in photo.whole]
    if colours is not None:
        found = [outline for photo, path in zip(photos, colours, strict=True) for outline in _coloured(photo, path)]
    check_count(len(found), LIMITS.outlines, "piece", photos[0].path)
    shows = any(_shows_something(outline, checks) for outline in found)
    curves = [outline.curve - outline.corner for outline in found]
    return Puzzle(pieces_along(curves, [outline.texture for outline in found], shows), None, names)


def _coloured(photo: Photo, path: Path) -> list[Outline]:
    """The pieces of a photograph with the colours of another one."""
    levels = to_levels(_straightened(path, photo.sheet))
    if levels.shape != photo.levels.shape:
        raise InputError(f"{path}: has another size than {photo.path}; both must show the same in the same place")
    found = []
    for _, outline in photo.whole:
        (left, top), (height, width) = outline.corner, outline.texture.shape[1:]
        colours = levels[:, top : top + height, left : left + width]
        found.append(replace(outline, texture=torch.cat([colours, outline.texture[3:]])))
    return found


def _shows_something(outline: Outline, checks: CheckConfig) -> bool:
    """Whether a piece is more than a silhouette."""
    inside = ndimage.binary_erosion(outline.texture[3].numpy() > 127, iterations=4)
    if not inside.any():
        return True
    levels = outline.texture[:3].numpy()[:, inside].astype(float)
    low, high = np.percentile(levels, (10, 90), axis=1)
    varied = (high - low).max() > checks.plain or np.ptp(levels.mean(1)) > checks.plain
    return bool(varied or levels.mean() > checks.black)
