"""A photograph of loose square pieces becomes equal upright pictures: rectangles around outlines, moved to edges.

The outline of a piece ends where colours stop to differ from the ground: too early at parts of the ground's colour, too
late in shadows. An edge that runs along a whole side is neither, however faint it is: squares are moved to such edges.
Lengths are pixels of a reduced copy, until the squares are found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64
from PIL import Image
from scipy import ndimage
from torch import Tensor

from diffassemble.core import ImagePieces, InputError
from diffassemble.core.poses import plane_rotations
from diffassemble.io.photo.ground import GROUND, Colours
from diffassemble.io.photo.pieces import (
    SEGMENTATION,
    Rectangle,
    find_pieces,
    in_reading_order,
    reduced,
    smallest_rectangle,
)
from diffassemble.io.pictures import read_picture, to_image
from diffassemble.rendering.picture import draw_outlines
from diffassemble.squares.cut import SMALLEST_PIECE, check_pieces


@dataclass(frozen=True)
class SquareConfig:
    """How squares are moved to the edges of pieces, and what is cut out of them."""

    sizes: tuple[float, float, float] = (0.8, 1.06, 0.005)
    """common sides that are tried: least, most, step, of the median side of the rectangles"""
    tilts: tuple[float, float] = (4.0, 1.0)
    """degrees by which rectangles are turned to both sides at most, and the step"""
    doubt: float = 4.0
    """edge that a tilt of one radian must show more"""
    step: float = 0.5
    """pixels between two places where edges are looked for"""
    reach: float = 0.2
    """share of a side around a rectangle's within which an edge may be"""
    middle: float = 0.8
    """middle share of a side that is used: corners are round in photographs"""
    lines: int = 21
    """lines across a side along which edges are looked for"""
    near: float = 3.0
    """pixels around a side in which the steepest points are fitted by a line"""
    steepest: float = 0.03
    """radians that such lines may turn a square by at once"""
    too_large: float = 1.4
    """times the common side from which a rectangle is no square with its shadow"""
    unequal: float = 0.06
    """share by which sides of equal squares may differ"""
    clearly: float = 1.5
    """times the edge of the best square that a rectangle of another size must show to be believed"""
    blend: float = 1.0
    """pixels left out at every side, in which cameras mix piece and ground"""
    frayed: float = 0.01
    """share of the side left out at every side: cuts are not straight"""
    largest: int = 4096
    """pixels that a side of a piece may be asked to have"""


SQUARE = SquareConfig()


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
        return box @ plane_rotations(self.angles).mT + self.centres[:, None]


def find_squares(picture: Float[Tensor, "3 H W"], path: Path = Path(), config: SquareConfig = SQUARE) -> Squares:
    """The pieces, in reading order; refuses when there are none, or when they are not equal squares."""
    # 1. Outlines of all that lies in the photograph, and the rectangles around them.
    photo = find_pieces(path, picture)
    small = reduced(picture, max(1.0, max(picture.shape[-2:]) / SEGMENTATION.longest_side))
    stretch = np.array(picture.shape[:0:-1]) / np.array(small.shape[:0:-1])
    found = [smallest_rectangle(outline.curve / stretch) for _, outline in photo.outlined]
    # 2. Moved to edges.
    if len(found) > 1:
        smooth = GROUND.smooth
        found = sharpen(ndimage.gaussian_filter(small.double().numpy(), (0, smooth, smooth)), found, config)
    # 3. Checked, in reading order.
    cut_off = [piece.status == "cut off" for piece, _ in photo.outlined]
    _check(found, cut_off, float(stretch.mean()), config)
    side = float(np.median(_sizes(found)))
    found = in_reading_order(found, side)
    centres = torch.tensor([square.centre for square in found]) * torch.from_numpy(stretch)
    return Squares(centres.float(), torch.tensor([square.angle for square in found]), side * float(stretch.mean()))


def _sizes(squares: Sequence[Rectangle]) -> Float64[np.ndarray, "n 2"]:
    return np.array([(square.width, square.height) for square in squares]).reshape(-1, 2)


def _check(squares: Sequence[Rectangle], cut_off: Sequence[bool], scale: float, config: SquareConfig) -> None:
    """Refuse what is no set of equal squares, and report where the first doubtful one is."""
    if len(squares) < 2:
        found = "only one piece" if squares else "no pieces"
        raise InputError(f"{found} found; lay separate square pieces on a plain background of another colour")
    usual = np.median(_sizes(squares))
    for square, at_edge in zip(squares, cut_off, strict=True):
        x, y = (round(value * scale) for value in square.centre)
        if at_edge:
            raise InputError(f"the piece at ({x}, {y}) is cut off by the edge of the photo; leave some space around")
        if max(abs(square.width / usual - 1), abs(square.height / usual - 1)) >= config.unequal:
            width, height, most = (value * scale for value in (square.width, square.height, usual))
            raise InputError(
                f"{len(squares)} pieces found, but not equal squares: the one at ({x}, {y}) measures {width:.0f}x"
                f"{height:.0f} pixels, most are {most:.0f} wide; keep pieces apart, photograph from above, "
                "remove other things"
            )


@dataclass(frozen=True)
class Profiles:
    """How much edge there is along lines across a piece: `across[0]` by x and `across[1]` by y in its turned frame."""

    places: Float64[np.ndarray, "u"]
    across: Float64[np.ndarray, "2 u"]
    config: SquareConfig = SQUARE

    def best(self, side: float) -> tuple[float, tuple[float, float]]:
        """How much edge the best square of this side has, and its shift along x and y."""
        half, reach, step = side / 2, self.config.reach * side, self.config.step / 2
        shifts = np.arange(-reach, reach + step, step)
        x, y = (
            np.interp(shifts - half, self.places, line) + np.interp(shifts + half, self.places, line)
            for line in self.across
        )
        return float(x.max()) + float(y.max()), (float(shifts[x.argmax()]), float(shifts[y.argmax()]))

    def free(self) -> tuple[float, float, float]:
        """How much edge the best rectangle of any size has, its width and its height."""
        first, amounts, sizes = self.places < 0, 0.0, []
        for line in self.across:
            low, high = line[first].argmax(), line[~first].argmax()
            amounts += float(line[first][low] + line[~first][high])
            sizes.append(float(self.places[~first][high] - self.places[first][low]))
        return amounts, sizes[0], sizes[1]


def sharpen(colours: Colours, squares: Sequence[Rectangle], config: SquareConfig = SQUARE) -> list[Rectangle]:
    """The same squares at one common size where their edges are; the sizes of those that clearly differ stay theirs."""
    rough = float(np.median(_sizes(squares)))
    profiles = [_profiles(colours, square, rough, config) for square in squares]
    sizes = np.arange(*config.sizes)
    amounts = [sum(profile.best(rough * size)[0] for profile in profiles) for size in sizes]
    side = rough * float(sizes[int(np.argmax(amounts))])
    return [_sharpened(colours, square, side, config) for square in squares]


def _sharpened(colours: Colours, square: Rectangle, side: float, config: SquareConfig) -> Rectangle:
    """One square at its edges: the rectangle's angle, or another one that shows clearly more edge."""
    most, step = config.tilts
    tilts = np.deg2rad(np.arange(-most, most + step / 10, step))
    amounts = [_profiles(colours, _tilted(square, tilt), side, config).best(side)[0] for tilt in tilts]
    square = _tilted(square, tilts[int(np.argmax(np.array(amounts) - config.doubt * np.abs(tilts)))])
    if max(square.width, square.height) > config.too_large * side:
        return square
    square = _settle(square, _profiles(colours, square, side, config), side, config)
    for _ in range(2):
        square = _tilted(square, _edge_slant(colours, square, config))
        square = _settle(square, _profiles(colours, square, side, config), side, config)
    return square


def _settle(square: Rectangle, profile: Profiles, side: float, config: SquareConfig) -> Rectangle:
    """The square where its edges are, or with the size that it clearly has instead."""
    amount, shift = profile.best(side)
    free, width, height = profile.free()
    differs = max(abs(width / side - 1), abs(height / side - 1)) > config.unequal
    if not differs or free < config.clearly * amount:
        width = height = side
    across, down = square.centre + _turn(square.angle) @ shift
    return Rectangle((float(across), float(down)), square.angle, width, height)


def _tilted(square: Rectangle, tilt: float) -> Rectangle:
    return replace(square, angle=square.angle + float(tilt))


def _turn(angle: float) -> Float64[np.ndarray, "2 2"]:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _edge_slant(colours: Colours, square: Rectangle, config: SquareConfig) -> float:
    """By how much the four sides ask for the square to be turned: lines through the steepest points near them."""
    along = np.linspace(-config.middle, config.middle, config.lines) * square.width / 2
    slopes, weights = [], []
    for axis in (0, 1):
        for sign in (-1, 1):
            near = sign * square.width / 2 + np.arange(-config.near, config.near + 0.01, config.step)
            change = _change(colours, square, axis, near, along)
            steepest, weight = near[1:-1][change.argmax(0)], change.max(0)
            kept = np.abs(steepest - np.median(steepest)) <= 1
            slope = np.polyfit(along[kept], steepest[kept], 1, w=weight[kept])[0] if kept.sum() > 2 else 0.0
            slopes.append(np.arctan(slope) * (1 if axis else -1))
            weights.append(np.median(weight) * kept.mean() ** 2)
    most = config.steepest
    return float(np.clip(np.average(slopes, weights=weights), -most, most)) if sum(weights) else 0.0


def _profiles(colours: Colours, square: Rectangle, side: float, config: SquareConfig) -> Profiles:
    """The amount of edge along both axes: the median, along a line, of how fast colours change across it."""
    reach = side * (0.5 + config.reach) * config.sizes[1]
    across = np.arange(-reach, reach + config.step, config.step)
    along = np.linspace(-config.middle, config.middle, config.lines) * side / 2
    # The root, so that one strong side does not outvote three weak ones.
    lines = [np.sqrt(np.median(_change(colours, square, axis, across, along), 1)) for axis in (0, 1)]
    return Profiles(across[1:-1], np.stack(lines), config)


def _change(
    colours: Colours, square: Rectangle, axis: int, across: np.ndarray, along: np.ndarray
) -> Float64[np.ndarray, "u v"]:
    """How fast colours change along one axis of the square, at places across (but the outermost) and along it."""
    u, v = np.meshgrid(across, along, indexing="ij")
    turned = np.tensordot(_turn(square.angle), (u, v) if axis == 0 else (v, u), 1)
    where = turned[::-1] + np.reshape(square.centre[::-1], (2, 1, 1)) - 0.5
    seen = np.stack([ndimage.map_coordinates(plane, where, order=1, mode="nearest") for plane in colours])
    return np.sqrt(((seen[:, 2:] - seen[:, :-2]) ** 2).sum(0))


def cut_scattered(
    picture: Float[Tensor, "3 H W"], size: int | None = None, path: Path = Path(), config: SquareConfig = SQUARE
) -> tuple[ImagePieces, Squares]:
    """The pieces that lie in a photograph, row by row, each turned upright by less than half a quarter turn.

    Pieces measure `size` pixels a side, or as many as they have in the photograph.
    """
    squares = find_squares(picture, path, config)
    inner = squares.side * (1 - 2 * config.frayed) - 2 * config.blend
    size = math.floor(inner) if size is None else size
    if size < SMALLEST_PIECE:
        raise InputError(f"the pieces found are {squares.side:.0f} pixels wide: too small; take a larger photo")
    return ImagePieces(_straightened(picture, squares, inner, size)), squares


def _straightened(picture: Float[Tensor, "3 H W"], squares: Squares, inner: float, size: int) -> Tensor:
    """Every square as an upright picture; where pixels are left over, several are averaged into one."""
    finer = max(1, round(inner / size))
    steps = ((torch.arange(size * finer) + 0.5) / (size * finer) - 0.5) * inner
    grid = torch.stack(torch.meshgrid(steps, steps, indexing="xy"), -1)
    scale = torch.tensor(picture.shape[:0:-1])
    pieces = []
    for centre, turn in zip(squares.centres, plane_rotations(squares.angles), strict=True):
        where = (grid @ turn.T + centre) / scale * 2 - 1
        fine = F.grid_sample(picture[None], where[None], mode="bicubic", padding_mode="border", align_corners=False)
        pieces.append(F.avg_pool2d(fine, finer)[0])
    # Files hold 8 bits; finer colours would not survive being written.
    return (torch.stack(pieces).clamp(0, 1) * 255).round() / 255


def cut_squares(path: Path | str, size: int | None = None) -> tuple[ImagePieces, Image.Image]:
    """The separate square pieces that a photograph shows on a plain ground, and a picture of where they lie.

    Pieces are as large as in the photograph, or `size` pixels a side.
    """
    path = Path(path)
    if size is not None and not SMALLEST_PIECE <= size <= SQUARE.largest:
        raise InputError(f"a piece size of {size} pixels is out of range; give {SMALLEST_PIECE} to {SQUARE.largest}")
    picture = read_picture(path)
    try:
        pieces, squares = cut_scattered(picture, size, path)
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(f"{path}:") else f"{path}: {error}") from error
    check_pieces(pieces, [f"piece {number}" for number in range(len(pieces))], path)
    return pieces, draw_outlines(to_image(picture), list(squares.corners()))
