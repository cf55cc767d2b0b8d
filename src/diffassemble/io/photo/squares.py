"""A photograph of loose square pieces becomes equal upright pictures: rectangles around outlines, moved to edges.

Outlines end too early at parts of the ground's colour and too late in shadows; edges along whole sides are neither.
Lengths are pixels of a reduced copy, until the squares are found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
from diffassemble.io.photo.ground import GROUND, Colours, reduced
from diffassemble.io.photo.segmentation import (
    SEGMENTATION,
    Rectangle,
    find_pieces,
    in_reading_order,
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
    step: float = 0.5
    """pixels between two places where edges are looked for"""
    reach: float = 0.2
    """share of a side around a rectangle's within which an edge may be"""
    middle: float = 0.8
    """middle share of a side that is used: corners are round in photographs"""
    lines: int = 21
    """lines across a side along which edges are looked for"""
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
    # 1. Outlines of all that is in the photograph, and the rectangles around them.
    photo = find_pieces(path, picture)
    small = reduced(picture, max(1.0, max(picture.shape[-2:]) / SEGMENTATION.longest_side))
    stretch = np.array(picture.shape[:0:-1]) / np.array(small.shape[:0:-1])
    scale = float(stretch.mean())
    found = [smallest_rectangle(outline.curve / stretch) for _, outline in photo.outlined]
    if len(found) < 2:
        words = "only one piece" if found else "no pieces"
        raise InputError(f"{words} found; lay separate square pieces on a plain background of another colour")
    # 2. Moved to edges.
    smooth = GROUND.smooth
    found = sharpen(ndimage.gaussian_filter(small.double().numpy(), (0, smooth, smooth)), found, config)
    # 3. Checked: since their number determines the grid, none is set aside.
    side = _median_side(found)
    for square, (piece, _) in zip(found, photo.outlined, strict=True):
        x, y = (round(value * scale) for value in square.centre)
        if piece.status == "cut off":
            raise InputError(f"the piece at ({x}, {y}) is cut off by the edge of the photo; leave some space around")
        if max(abs(square.width / side - 1), abs(square.height / side - 1)) >= config.unequal:
            width, height, most = (value * scale for value in (square.width, square.height, side))
            raise InputError(
                f"{len(found)} pieces found, but not equal squares: the one at ({x}, {y}) measures {width:.0f}x"
                f"{height:.0f} pixels, most are {most:.0f} wide; keep pieces apart, photograph from above, "
                "remove other things"
            )
    found = in_reading_order(found, side)
    centres = torch.tensor([square.centre for square in found]) * torch.from_numpy(stretch)
    return Squares(centres.float(), torch.tensor([square.angle for square in found]), side * scale)


def _median_side(squares: Sequence[Rectangle]) -> float:
    return float(np.median([(square.width, square.height) for square in squares]))


def sharpen(colours: Colours, squares: Sequence[Rectangle], config: SquareConfig = SQUARE) -> list[Rectangle]:
    """The same squares at one common size where their edges are; the sizes of those that clearly differ stay theirs."""
    rough = _median_side(squares)
    profiles = [_profiles(colours, square, rough, config) for square in squares]
    sizes = rough * np.arange(*config.sizes)
    side = float(sizes[np.argmax([sum(_best(profile, size, config)[0] for profile in profiles) for size in sizes])])
    found = list(squares)
    for index, square in enumerate(squares):
        if max(square.width, square.height) > config.too_large * side:
            continue
        places, lines = _profiles(colours, square, side, config)
        amount, shift = _best((places, lines), side, config)
        # The best rectangle of any size.
        first = places < 0
        edges = [(line[first].argmax(), line[~first].argmax()) for line in lines]
        free = sum(line[first][low] + line[~first][high] for line, (low, high) in zip(lines, edges, strict=True))
        width, height = (float(places[~first][high] - places[first][low]) for low, high in edges)
        differs = max(abs(width / side - 1), abs(height / side - 1)) > config.unequal
        if not differs or free < config.clearly * amount:
            width = height = side
        x, y = square.centre + _turn(square.angle) @ shift
        found[index] = Rectangle((float(x), float(y)), square.angle, width, height)
    return found


Profiles = tuple[Float64[np.ndarray, "u"], Float64[np.ndarray, "2 u"]]
"""places along an axis of a square, and how much edge there is across it at each, by x and by y in its turned frame"""


def _best(profiles: Profiles, side: float, config: SquareConfig) -> tuple[float, Float64[np.ndarray, "2"]]:
    """How much edge the best square of this side has, and its shift along x and y."""
    reach, step = config.reach * side, config.step / 2
    shifts = np.arange(-reach, reach + step, step)
    places, lines = profiles
    sums = [np.interp(shifts - side / 2, places, line) + np.interp(shifts + side / 2, places, line) for line in lines]
    return sum(float(line.max()) for line in sums), np.array([shifts[line.argmax()] for line in sums])


def _profiles(colours: Colours, square: Rectangle, side: float, config: SquareConfig) -> Profiles:
    """The amount of edge along both axes: the median, along a line, of how fast colours change across it."""
    reach = side * (0.5 + config.reach) * config.sizes[1]
    across = np.arange(-reach, reach + config.step, config.step)
    along = np.linspace(-config.middle, config.middle, config.lines) * side / 2
    u, v = np.meshgrid(across, along, indexing="ij")
    lines = []
    for pair in ((u, v), (v, u)):
        where = np.tensordot(_turn(square.angle), pair, 1)[::-1] + np.reshape(square.centre[::-1], (2, 1, 1)) - 0.5
        seen = np.stack([ndimage.map_coordinates(plane, where, order=1, mode="nearest") for plane in colours])
        change = np.sqrt(((seen[:, 2:] - seen[:, :-2]) ** 2).sum(0))
        # The root, so that one strong side does not outvote three weak ones.
        lines.append(np.sqrt(np.median(change, 1)))
    return across[1:-1], np.stack(lines)


def _turn(angle: float) -> Float64[np.ndarray, "2 2"]:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def cut_scattered(
    picture: Float[Tensor, "3 H W"], size: int | None = None, path: Path = Path(), config: SquareConfig = SQUARE
) -> tuple[ImagePieces, Squares]:
    """The pieces in a photograph, row by row, each turned upright by at most π/4; see `cut_squares`."""
    squares = find_squares(picture, path, config)
    inner = squares.side * (1 - 2 * config.frayed) - 2 * config.blend
    size = math.floor(inner) if size is None else size
    if size < SMALLEST_PIECE:
        raise InputError(f"the pieces found are {squares.side:.0f} pixels wide: too small; take a larger photo")
    # Where pixels are left over, several are averaged into one.
    finer = max(1, round(inner / size))
    steps = ((torch.arange(size * finer) + 0.5) / (size * finer) - 0.5) * inner
    grid = torch.stack(torch.meshgrid(steps, steps, indexing="xy"), -1)
    pieces = []
    for centre, turn in zip(squares.centres, plane_rotations(squares.angles), strict=True):
        where = (grid @ turn.T + centre) / torch.tensor(picture.shape[:0:-1]) * 2 - 1
        fine = F.grid_sample(picture[None], where[None], mode="bicubic", padding_mode="border", align_corners=False)
        pieces.append(F.avg_pool2d(fine, finer)[0])
    # Files hold 8 bits; finer colours would not survive being written.
    return ImagePieces((torch.stack(pieces).clamp(0, 1) * 255).round() / 255), squares


def cut_squares(path: Path | str, size: int | None = None) -> tuple[ImagePieces, Image.Image]:
    """The square pieces that a photograph shows, `size` pixels a side or as large as there, and a picture of them."""
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
