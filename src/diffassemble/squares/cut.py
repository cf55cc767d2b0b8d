"""A picture becomes square or oblong pieces with true poses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Num, UInt8
from torch import Tensor

from diffassemble.core import Board, ImagePieces, InputError, Puzzle, turn_pixels
from diffassemble.core.limits import check_memory
from diffassemble.core.pieces import erode_pixels, surviving
from diffassemble.core.seeds import check_seed
from diffassemble.io.pictures import MOST_PIXELS, picture_size, read_picture, to_levels

SMALLEST_PIECE = 4
"""pixels a side of the smallest piece"""


@dataclass(frozen=True)
class CutConfig:
    """Memory that cutting takes."""

    read: int = 15
    """bytes for each pixel of the picture while it is read"""
    cut: int = 21
    """bytes for each pixel of all pieces: once as colours, three times as levels"""
    rows: int = 256
    """rows of a picture that are rounded at a time"""


DEFAULT = CutConfig()


def crop_to_board(picture: Float[Tensor, "3 H W"], board: Board) -> Float[Tensor, "3 h w"]:
    """The largest centred part of the picture with the board's shape, so that cells are square."""
    height, width = picture.shape[-2:]
    unit = min(height / board.rows, width / board.cols)
    rows, cols = round(unit * board.rows), round(unit * board.cols)
    top, left = (height - rows) // 2, (width - cols) // 2
    return picture[:, top : top + rows, left : left + cols]


def resize_to_board(picture: Float[Tensor, "3 H W"], board: Board, cell: tuple[int, int]) -> Float[Tensor, "3 h w"]:
    """Resize so that every cell has this height and width in pixels."""
    shape = (board.rows * cell[0], board.cols * cell[1])
    if picture.shape[-2:] == shape:
        return picture
    return F.interpolate(picture[None], shape, mode="bicubic", antialias=True)[0].clamp_(0, 1)


def fitted(
    picture: Float[Tensor, "3 H W"], board: Board, cell: tuple[int, int], config: CutConfig = DEFAULT
) -> UInt8[Tensor, "3 h w"]:
    """The picture with cells of this height and width, cropped or resized, in 8 bits like pieces from files."""
    height, width = board.rows * cell[0], board.cols * cell[1]
    top, left = picture.shape[-2] - height, picture.shape[-1] - width
    # A crop of the board's shape may be a few pixels too wide or high.
    if min(top, left) >= 0 and (top < board.rows or left < board.cols):
        sharp = picture[:, top // 2 :, left // 2 :][:, :height, :width]
    else:
        sharp = resize_to_board(picture, board, cell)
    levels = torch.empty(sharp.shape, dtype=torch.uint8)
    for part, whole in zip(levels.split(config.rows, 1), sharp.split(config.rows, 1), strict=True):
        part[:] = (whole * 255).round()
    return levels


def cut_picture(
    picture: Float[Tensor, "3 H W"],
    board: Board,
    generator: torch.Generator,
    *,
    size: int | None = None,
    turn: bool = True,
    missing: float = 0.0,
    erode: int = 0,
    whole: bool = False,
) -> Puzzle:
    """Cut the centre of a picture into shuffled square pieces, each turned by a random quarter turn.

    The `whole` picture is cut into pieces of its own shape, turned by half turns unless that is square. `size` is the
    longer side of a piece in pixels; without it the picture is not resized.
    """
    # 1. The part of the picture that is cut, and the size of a piece.
    cropped = picture if whole else crop_to_board(picture, board)
    natural = cropped.shape[-2] // board.rows, cropped.shape[-1] // board.cols
    cell = natural if whole else (min(natural), min(natural))
    if size is not None:
        shape = cropped.shape[-2] / board.rows, cropped.shape[-1] / board.cols
        high, wide = (max(1, round(size * part / max(shape))) for part in shape)
        cell = (high, wide) if whole else (size, size)
    if min(*natural, min(cell) - 2 * erode) < SMALLEST_PIECE:
        height, width = picture.shape[-2:]
        raise InputError(
            f"a {width}x{height} picture cut {board.rows}x{board.cols} leaves pieces of under {SMALLEST_PIECE} pixels; "
            "use a larger picture, a coarser grid or less erosion"
        )
    # 2. The cells of the pieces, in random order.
    cells = surviving(board.cells, missing, generator)
    levels = fitted(cropped, board, cell)
    # Large pictures fill the memory: each form of them is released when the next is made.
    del picture, cropped
    # 3. Their pixels, eroded and turned.
    pixels = erode_pixels(tiles(levels, board)[cells], erode)
    ways = torch.arange(0, 4, 1 if pixels.shape[-1] == pixels.shape[-2] else 2)[: None if turn else 1]
    turns = ways[torch.randint(0, len(ways), (len(cells),), generator=generator)]
    pixels = turn_pixels(pixels, -turns).float().div_(255)
    names = tuple(f"piece_{index:03d}.png" for index in range(len(cells)))
    return Puzzle(ImagePieces(pixels), board, names, board.poses(cells, turns))


def cut_image(
    path: Path | str,
    rows: int,
    cols: int,
    seed: int = 0,
    size: int | None = None,
    missing: float = 0.0,
    erode: int = 0,
    turn: bool = True,
    whole: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Puzzle:
    """Cut the centre of a picture file into rows × cols shuffled square pieces, turned by quarter turns.

    Pieces are as large as the picture allows, or `size` pixels a side before `erode` of them are lost at every side;
    `missing` is the share of pieces taken away. The `whole` picture is cut into pieces that need not be square, turned
    by half turns. `say` receives a line about what is cut away.
    """
    if min(rows, cols) < 1:
        raise InputError(f"a grid of {rows} rows and {cols} columns has no cells; give 1 or more of each")
    if not 0 <= missing < 1:
        raise InputError(f"missing share {missing} is not at least 0 and under 1; 0.3 takes 30 % of the pieces away")
    if erode < 0:
        raise InputError(f"cannot erode {erode} pixels; give 0 or more")
    check_seed(seed)
    if size is not None and not (size > 0 and rows * cols * size**2 <= MOST_PIXELS):
        raise InputError(
            f"a piece size of {size} pixels is out of range; all pieces together may have "
            f"{MOST_PIXELS // 10**6} megapixels"
        )
    board, (width, height) = Board(rows, cols), picture_size(path)
    made = width * height if size is None else board.cells * size**2
    reading = DEFAULT.read * width * height
    needed = max(reading, DEFAULT.cut * made) + (0 if size is None else reading)
    check_memory(needed, f"{path}: cutting it", "use a smaller picture or --size")
    generator = torch.Generator().manual_seed(seed)
    given = [read_picture(path)]
    height, width = given[0].shape[-2:]  # upright
    try:
        # No other name refers to the picture, so that it is released as soon as it is cut.
        puzzle = cut_picture(
            given.pop(), board, generator, size=size, turn=turn, missing=missing, erode=erode, whole=whole
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    used = (height, width) if whole else crop_to_board(torch.empty(1, 1, 1).expand(3, height, width), board).shape[-2:]
    if used != (height, width):
        say(f"cut to {used[1]} × {used[0]} of {width} × {height} pixels, so that pieces are square; --fit keeps all")
    assert puzzle.truth is not None
    places = [divmod(cell, cols) for cell in board.snap(puzzle.truth)[0].tolist()]
    check_pieces(puzzle.pictures, [f"the piece of row {row}, column {col}" for row, col in places], Path(path))
    return puzzle


def tiles(picture: Num[Tensor, "3 H W"], board: Board) -> Num[Tensor, "cells 3 h w"]:
    """The cells of a picture whose sides are multiples of the board's, row by row."""
    height, width = picture.shape[-2] // board.rows, picture.shape[-1] // board.cols
    cells = picture.reshape(3, board.rows, height, board.cols, width)
    return cells.permute(1, 3, 0, 2, 4).reshape(board.cells, 3, height, width)


def check_pieces(pieces: ImagePieces, names: Sequence[str], source: Path) -> None:
    """Refuse pieces that no solver could distinguish; identical pieces of one flat colour may be exchanged and pass."""
    if len(pieces) < 2:
        raise InputError(f"{source}: has only {len(pieces)} piece; a puzzle needs at least 2")
    if (least := min(pieces.height, pieces.width)) < SMALLEST_PIECE:
        raise InputError(f"{source}: pieces are {least} pixels wide; they need {SMALLEST_PIECE} or more")
    flat = (pieces.pixels == pieces.pixels[..., :1, :1]).flatten(1).all(-1)
    if flat.all():
        raise InputError(f"{source}: every piece is one flat colour, so there is nothing to fit; use another picture")
    seen: dict[bytes, int] = {}
    for index in (~flat).nonzero().flatten().tolist():
        levels = to_levels(pieces.pixels[index])
        turned = (torch.rot90(levels, turns, (-2, -1)).contiguous().numpy().tobytes() for turns in range(4))
        # The same bytes for a piece and its quarter turns, and for no other piece.
        twin = seen.setdefault(min(hashlib.blake2b(content, digest_size=16).digest() for content in turned), index)
        if twin != index:
            raise InputError(
                f"{source}: {names[twin]} and {names[index]} are identical, "
                "so their places cannot be distinguished; remove one, or cut a coarser grid"
            )
