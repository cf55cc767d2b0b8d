"""Loose pieces: read from folders or out of one picture, and checked before anybody works on them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from diffassemble.core import Board, ImagePieces, InputError
from diffassemble.files.pictures import MOST_PIXELS, picture_size, read_picture, to_levels

SMALLEST_PIECE = 4
_SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".ppm"}


def read_pieces(folder: Path | str) -> tuple[ImagePieces, tuple[str, ...]]:
    """All pictures of a folder, in the order of their names, as pieces; other files are passed over."""
    folder = Path(folder)
    try:
        files = sorted(file for file in folder.iterdir() if _is_picture_name(file))
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error
    if not files:
        raise InputError(f"{folder}: has no pictures; give a folder of equal square pictures")
    names = tuple(file.name for file in files)
    pieces = load_pieces(files)
    check_pieces(pieces, names, folder)
    return pieces, names


def load_pieces(files: Sequence[Path]) -> ImagePieces:
    """Equal square pictures as pieces; their sizes are checked before any is decoded."""
    width, height = picture_size(files[0])
    if width != height:
        raise InputError(f"{files[0]}: is {width}x{height} pixels; pieces must be square")
    for file in files[1:]:
        if picture_size(file) != (width, height):
            found = "x".join(map(str, picture_size(file)))
            raise InputError(
                f"{file}: is {found} pixels, but {files[0].name} is {width}x{height}; pieces must be of equal size"
            )
    if len(files) * width * height > MOST_PIXELS:
        raise InputError(f"{files[0].parent}: pieces of more than {MOST_PIXELS // 10**6} megapixels; make them smaller")
    return ImagePieces(torch.stack([read_picture(file) for file in files]))


def split_picture(path: Path | str, board: Board) -> tuple[ImagePieces, tuple[str, ...]]:
    """The cells of a picture that is a shuffled grid, row by row."""
    path = Path(path)
    picture = read_picture(path)
    height, width = picture.shape[-2:]
    grid = f"{board.rows}x{board.cols}"
    if height % board.rows or width % board.cols:
        raise InputError(
            f"{path}: {width}x{height} pixels do not divide into {board.rows} rows and {board.cols} columns; "
            "pass the --grid it was made with"
        )
    size = height // board.rows
    if size != width // board.cols:
        raise InputError(
            f"{path}: grid {grid} gives pieces of {width // board.cols}x{size} pixels; pieces must be square"
        )
    cells = picture.reshape(3, board.rows, size, board.cols, size).permute(1, 3, 0, 2, 4)
    names = tuple(f"{path.name}[{row},{col}]" for row in range(board.rows) for col in range(board.cols))
    pieces = ImagePieces(cells.reshape(board.cells, 3, size, size))
    check_pieces(pieces, names, path)
    return pieces, names


def check_pieces(pieces: ImagePieces, names: Sequence[str], source: Path) -> None:
    """Refuse pieces that no solver could tell apart.

    Identical pieces of one flat colour pass (a clear sky has many): swapping them changes nothing.
    """
    if len(pieces) < 2:
        raise InputError(f"{source}: has only {len(pieces)} piece; a puzzle needs at least 2")
    if pieces.size < SMALLEST_PIECE:
        raise InputError(f"{source}: pieces are {pieces.size} pixels wide; they need {SMALLEST_PIECE} or more")
    flat = (pieces.pixels == pieces.pixels[..., :1, :1]).flatten(1).all(-1)
    if flat.all():
        raise InputError(f"{source}: every piece is one flat colour, so there is nothing to fit; use another picture")
    seen: dict[bytes, int] = {}
    for index in (~flat).nonzero().flatten().tolist():
        twin = seen.setdefault(_fingerprint(to_levels(pieces.pixels[index])), index)
        if twin != index:
            raise InputError(
                f"{source}: {names[twin]} and {names[index]} are identical, "
                "so their places cannot be told apart; remove one, or cut a coarser grid"
            )


def check_count(count: int, board: Board, source: Path) -> None:
    """Refuse more pieces than the board has cells, and propose a board that holds them."""
    if count > board.cells:
        room = _roomy_board(count)
        raise InputError(
            f"{source}: grid {board.rows}x{board.cols} has {board.cells} cells, got {count} pieces; "
            f"pass --grid {room.rows}x{room.cols}"
        )


def _is_picture_name(file: Path) -> bool:
    return file.suffix.lower() in _SUFFIXES and not file.name.startswith(".") and file.is_file()


def _fingerprint(levels: UInt8[Tensor, "3 s s"]) -> bytes:
    """The same bytes for a piece and its quarter turns, and for no other piece."""
    turned = (torch.rot90(levels, turns, (-2, -1)).contiguous().numpy().tobytes() for turns in range(4))
    return min(hashlib.blake2b(content, digest_size=16).digest() for content in turned)


def _roomy_board(count: int) -> Board:
    """A board near the square, rather high than wide, with few spare cells."""

    def waste(board: Board) -> tuple[int, int]:
        spare = board.cells - count
        return spare + board.rows - board.cols, spare

    boards = [Board(math.ceil(count / cols), cols) for cols in range(1, math.isqrt(count) + 2)]
    return min((board for board in boards if board.rows >= board.cols), key=waste)
