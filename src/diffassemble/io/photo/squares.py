"""One photograph of separate square pieces on a plain background becomes pieces: found, straightened, cut out.

The background is a smooth surface of colour, fitted to the photograph itself. What differs from it are pieces and the
shadows they cast. A shadow is background, only darker, and so are some pieces: several readings of how dark a shadow
may be are tried, and the one that shows the most equal squares is believed.

A mask ends where colours stop to differ from the background: too early at pieces of the same colour, too late in
shadows. An edge that runs along a whole side is neither, however faint it is: squares are moved to such edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float64
from PIL import Image
from scipy import ndimage
from scipy.spatial import ConvexHull
from skimage.measure import find_contours, label, regionprops
from torch import Tensor

from diffassemble.core import ImagePieces, InputError
from diffassemble.io.photo.segmentation import fit_background
from diffassemble.io.pictures import read_picture, to_image
from diffassemble.rendering.picture import draw_outlines
from diffassemble.squares.cut import SMALLEST_PIECE, check_pieces

Colours = Float64[np.ndarray, "3 h w"]
Points = Float64[np.ndarray, "m 2"]


# The middle share of every side that its line is fitted to: corners are round in photographs.
_MIDDLE = 0.8
_ROUNDS = 4


@dataclass(frozen=True)
class Square:
    """A rectangle that should be a square: centre (x, y), angle clockwise within ±π/4; `filled`: how much is piece."""

    centre: tuple[float, float]
    angle: float
    width: float
    height: float
    filled: float

    def touches(self, shape: tuple[int, int]) -> bool:
        """Whether it reaches the edge of a picture of (height, width)."""
        reach = max(self.width, self.height) / 2 * (np.cos(self.angle) + abs(np.sin(self.angle)))
        x, y = self.centre
        return bool(min(x, y, shape[1] - x, shape[0] - y) < reach + 0.5)


def fit_square(mask: Bool[np.ndarray, "h w"], corner: tuple[int, int]) -> Square:
    """The rectangle around a part of a mask whose upper left pixel is `corner` (row, column).

    Begins with the smallest rectangle around it, then lays a line through the middle of each side, so that a bite
    or a fringe of shadow at one end does not count.
    """
    padded = np.pad(mask, 2).astype(float)
    contour = max(find_contours(padded, 0.5), key=len)[:, ::-1] - 1.5 + np.array(corner[::-1])
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(contour, axis=0), axis=1))])
    places = np.arange(0, length[-1], 0.5)  # half a pixel apart
    points = np.stack([np.interp(places, length, line) for line in contour.T], 1)
    hull = contour[ConvexHull(contour).vertices]
    # The rectangle of least area around a hull lies along one of its edges.
    angles = np.arctan2(*(np.roll(hull, -1, 0) - hull).T[::-1])
    angle = float(min(angles, key=lambda angle: np.prod(np.ptp(hull @ _turn(angle), axis=0))))
    for _ in range(_ROUNDS):
        angle += _outline_slant(points, angle)
    low, high = _box(points, angle)
    x, y = _turn(angle) @ ((low + high) / 2)
    width, height = high - low
    angle = (angle + np.pi / 4) % (np.pi / 2) - np.pi / 4
    return Square((float(x), float(y)), float(angle), float(width), float(height), float(mask.sum() / (width * height)))


def _turn(angle: float) -> Float64[np.ndarray, "2 2"]:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _sides(points: Points, angle: float) -> list[Float64[np.ndarray, "k 2"]]:
    """The points (along, across) of the middles of the left, right, upper and lower side, in the turned frame."""
    own = points @ _turn(angle)
    low, high = np.percentile(own, 1, axis=0), np.percentile(own, 99, axis=0)
    middle, half = (low + high) / 2, (high - low) / 2
    share = (own - middle) / half
    sides = []
    for axis in range(2):
        along = np.abs(share[:, 1 - axis]) < _MIDDLE
        for sign in (-1, 1):
            chosen = own[along & (sign * share[:, axis] > np.abs(share[:, 1 - axis]))]
            sides.append(chosen[:, [1 - axis, axis]])
    return sides


def _outline_slant(points: Points, angle: float) -> float:
    """By how much the four sides ask the frame to be turned further, bites and fringes not counted."""
    slopes, weights = [], []
    for number, side in enumerate(_sides(points, angle)):
        if len(side) < 4:
            continue
        along, across = side.T
        kept = np.abs(across - np.median(across)) < max(1.5, 2 * np.median(np.abs(across - np.median(across))))
        if kept.sum() < 4 or np.ptp(along[kept]) == 0:
            continue
        slope = np.polyfit(along[kept], across[kept], 1)[0]
        slopes.append(np.arctan(slope) * (1 if number >= 2 else -1))
        weights.append(kept.sum())
    return float(np.average(slopes, weights=weights)) if slopes else 0.0


def _box(points: Points, angle: float) -> tuple[Float64[np.ndarray, "2"], Float64[np.ndarray, "2"]]:
    """Where the sides lie in the turned frame: the middle of their points."""
    left, right, upper, lower = (np.median(side[:, 1]) if len(side) else np.nan for side in _sides(points, angle))
    own = points @ _turn(angle)
    low = np.where(np.isnan([left, upper]), own.min(0), [left, upper])
    high = np.where(np.isnan([right, lower]), own.max(0), [right, lower])
    return low, high


# Pixels between two looks, and how far around a mask's square an edge may lie, as a share of its side.
_STEP = 0.5
_REACH = 0.2
_TILTS = np.deg2rad(np.arange(-4, 4.1, 1))
# The middle share of a side that is looked at.
_LINES = 21
# A mask larger than this is no square with its shadow.
_TOO_LARGE = 1.4
# How much more edge a tilt of one radian must show.
_DOUBT = 4.0
_SIZES = np.arange(0.8, 1.06, 0.005)


@dataclass(frozen=True)
class Profiles:
    """How much edge there is along lines across a piece: `across[0]` by x and `across[1]` by y in its turned frame."""

    places: Float64[np.ndarray, "u"]
    across: Float64[np.ndarray, "2 u"]

    def best(self, side: float) -> tuple[float, tuple[float, float]]:
        """How much edge the best square of this side has, and its shift along x and y."""
        half = side / 2
        shifts = np.arange(-_REACH * side, _REACH * side + _STEP / 2, _STEP / 2)
        x, y = (
            np.interp(shifts - half, self.places, line) + np.interp(shifts + half, self.places, line)
            for line in self.across
        )
        return float(x.max()) + float(y.max()), (float(shifts[x.argmax()]), float(shifts[y.argmax()]))

    def free(self) -> tuple[float, float, float]:
        """How much edge the best rectangle of any size has, its width and its height."""
        middle = self.places < 0
        amounts, sizes = [], []
        for line in self.across:
            low, high = line[middle].argmax(), line[~middle].argmax()
            amounts.append(line[middle][low] + line[~middle][high])
            sizes.append(self.places[~middle][high] - self.places[middle][low])
        return float(sum(amounts)), float(sizes[0]), float(sizes[1])


def sharpen(colours: Colours, squares: list[Square]) -> list[Square]:
    """The same squares at one common size where their edges are; the sizes of those that clearly differ stay theirs."""
    rough = float(np.median(_sizes(squares)))
    profiles = [_profiles(colours, square, rough) for square in squares]
    amounts = [sum(profile.best(rough * size)[0] for profile in profiles) for size in _SIZES]
    side = rough * float(_SIZES[int(np.argmax(amounts))])
    return [_sharpened(colours, square, side) for square in squares]


def _sharpened(colours: Colours, square: Square, side: float) -> Square:
    """One square at its edges: the mask's angle is tried first, others if they show clearly more edge."""
    amounts = [_profiles(colours, _tilted(square, tilt), side).best(side)[0] for tilt in _TILTS]
    square = _tilted(square, _TILTS[int(np.argmax(np.array(amounts) - _DOUBT * np.abs(_TILTS)))])
    if max(square.width, square.height) > _TOO_LARGE * side:
        return square
    square = _settle(square, _profiles(colours, square, side), side)
    for _ in range(2):
        square = _tilted(square, _edge_slant(colours, square))
        square = _settle(square, _profiles(colours, square, side), side)
    return square


def _settle(square: Square, profile: Profiles, side: float) -> Square:
    """The square where its edges are, or with the size that it clearly has instead."""
    amount, (x, y) = profile.best(side)
    free, width, height = profile.free()
    differs = max(abs(width / side - 1), abs(height / side - 1)) > 0.06
    if not differs or free < 1.5 * amount:
        width = height = side
    across, down = square.centre + _turn(square.angle) @ (x, y)
    return Square((float(across), float(down)), square.angle, width, height, square.filled)


def _tilted(square: Square, tilt: float) -> Square:
    return replace(square, angle=square.angle + float(tilt))


def _edge_slant(colours: Colours, square: Square) -> float:
    """By how much the four sides ask for the square to be turned: lines through the steepest points near them."""
    along = np.linspace(-_MIDDLE, _MIDDLE, _LINES) * square.width / 2
    slopes, weights = [], []
    for axis in (0, 1):
        for sign in (-1, 1):
            near = sign * square.width / 2 + np.arange(-3, 3.01, _STEP)
            change = _change(colours, square, axis, near, along)
            steepest, weight = near[1:-1][change.argmax(0)], change.max(0)
            kept = np.abs(steepest - np.median(steepest)) <= 1
            slope = np.polyfit(along[kept], steepest[kept], 1, w=weight[kept])[0] if kept.sum() > 2 else 0.0
            slopes.append(np.arctan(slope) * (1 if axis else -1))
            weights.append(np.median(weight) * kept.mean() ** 2)
    return float(np.clip(np.average(slopes, weights=weights), -0.03, 0.03)) if sum(weights) else 0.0


def _profiles(colours: Colours, square: Square, side: float) -> Profiles:
    """The amount of edge along both axes: the median, along a line, of how fast colours change across it."""
    reach = side * (0.5 + _REACH) * 1.06
    across = np.arange(-reach, reach + _STEP, _STEP)
    along = np.linspace(-_MIDDLE, _MIDDLE, _LINES) * side / 2
    # The root, so that one loud side does not outvote three quiet ones.
    lines = [np.sqrt(np.median(_change(colours, square, axis, across, along), 1)) for axis in (0, 1)]
    return Profiles(across[1:-1], np.stack(lines))


def _change(
    colours: Colours, square: Square, axis: int, across: np.ndarray, along: np.ndarray
) -> Float64[np.ndarray, "u v"]:
    """How fast colours change along one axis of the square, at places across (but the outermost) and along it."""
    u, v = np.meshgrid(across, along, indexing="ij")
    turned = np.tensordot(_turn(square.angle), (u, v) if axis == 0 else (v, u), 1)
    where = turned[::-1] + np.reshape(square.centre[::-1], (2, 1, 1)) - 0.5
    seen = np.stack([ndimage.map_coordinates(plane, where, order=1, mode="nearest") for plane in colours])
    return np.sqrt(((seen[:, 2:] - seen[:, :-2]) ** 2).sum(0))


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
    reduction, small = max(1.0, max(picture.shape[-2:]) / _LONGEST_SIDE), picture
    if reduction > 1:
        small = F.interpolate(picture[None], scale_factor=1 / reduction, mode="bilinear", antialias=True)[0].clamp(0, 1)
    colours = np.stack([ndimage.gaussian_filter(plane, 0.8) for plane in small.double().numpy()])
    background = fit_background(colours)
    ground = background.colours(*colours.shape[1:])
    readings = [_read(colours, ground, background.noise, least) for least in _READINGS]
    found = max(readings, key=_agreement)
    if len(found) >= 2:
        found = sharpen(colours, found)
    _check(found, (small.shape[-2], small.shape[-1]), reduction)
    # Enlarged back along both sides, since reducing rounds each to whole pixels.
    stretch = np.array(picture.shape[:0:-1]) / np.array(small.shape[:0:-1])
    return _in_reading_order(found, stretch)


def _read(colours: Colours, background: np.ndarray, noise: float, least: float) -> list[Square]:
    """All parts that differ from the background, whose shadows leave at least a share of the light."""
    light = (colours * background).sum(0) / np.maximum((background**2).sum(0), 1e-6)
    apart = np.sqrt(((colours - np.clip(light, least, 1.0) * background) ** 2).sum(0))
    opened = ndimage.binary_opening(apart > max(0.04, 6 * noise), iterations=2)  # without specks, then without holes
    closed = ndimage.binary_closing(np.pad(opened, 4), iterations=3)[4:-4, 4:-4]
    parts = regionprops(label(ndimage.binary_fill_holes(closed)))
    regions = [region for region in parts if min(region.image.shape) >= _LEAST_WIDTH]
    if len(regions) > _MOST:
        return []
    largest = max((region.area for region in regions), default=0)
    return [fit_square(region.image_filled, region.bbox[:2]) for region in regions if region.area >= _DUST * largest]


def _sizes(squares: list[Square]) -> Float64[np.ndarray, "n 2"]:
    return np.array([(square.width, square.height) for square in squares]).reshape(-1, 2)


def _agreement(squares: list[Square]) -> tuple[int, float]:
    """How many of these are squares as large as most of them, and how little all differ."""
    sizes = _sizes(squares)
    return (int(_equal(sizes).sum()), -float(sizes.std() / sizes.mean())) if squares else (0, -np.inf)


def _equal(sizes: Float64[np.ndarray, "n 2"]) -> Bool[np.ndarray, "n"]:
    """Which are as wide and as high as most are."""
    return (np.abs(sizes / np.median(sizes) - 1) < _UNEQUAL).all(1)


def _check(squares: list[Square], shape: tuple[int, int], reduction: float) -> None:
    """Refuse what is no set of equal squares, and say where the first doubtful one lies."""
    if len(squares) < 2:
        found = "only one piece" if squares else "no pieces"
        raise InputError(f"{found} found; lay separate square pieces on a plain background of another colour")
    sizes = _sizes(squares)
    for square, good in zip(squares, _equal(sizes), strict=True):
        x, y = (round(value * reduction) for value in square.centre)
        if square.touches(shape):
            raise InputError(f"the piece at ({x}, {y}) is cut off by the edge of the photo; leave some space around")
        if not good:
            width, height, usual = (value * reduction for value in (square.width, square.height, np.median(sizes)))
            raise InputError(
                f"{len(squares)} pieces found, but not equal squares: the one at ({x}, {y}) measures {width:.0f}x"
                f"{height:.0f} pixels, most are {usual:.0f} wide; keep pieces apart, photograph from above, "
                "remove other things"
            )


def _in_reading_order(squares: list[Square], stretch: np.ndarray) -> Squares:
    """Rows from the top, each from the left; pieces whose centres lie within half a side are in one row."""
    side = float(np.median(_sizes(squares)))
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
        raise InputError(f"the pieces found are {squares.side:.0f} pixels wide: too small; take a larger photo")
    return ImagePieces(_straightened(picture, squares, inner, size)), squares


def _straightened(picture: Float[Tensor, "3 H W"], squares: Squares, inner: float, size: int) -> Tensor:
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


def find_pieces(path: Path | str, size: int | None = None) -> tuple[ImagePieces, Image.Image]:
    """The separate square pieces that a photograph shows on a plain background, and a picture of where they lie.

    Pieces are as large as in the photograph, or `size` pixels a side.
    """
    if size is not None and not SMALLEST_PIECE <= size <= 4096:
        raise InputError(f"a piece size of {size} pixels is out of range; give {SMALLEST_PIECE} to 4096")
    picture = read_picture(path)
    try:
        pieces, squares = cut_scattered(picture, size)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    check_pieces(pieces, [f"piece {number}" for number in range(len(pieces))], Path(path))
    return pieces, draw_outlines(to_image(picture), list(squares.corners()))
