"""A picture becomes square pieces with true poses."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import Board, ImagePieces, InputError, Puzzle, turn_pixels
from diffassemble.core.pieces import erode_pixels, surviving
from diffassemble.core.seeds import check_seed
from diffassemble.files.pictures import MOST_PIXELS, read_picture
from diffassemble.squares.files import SMALLEST_PIECE, check_pieces


def crop_to_board(picture: Float[Tensor, "3 H W"], board: Board) -> Float[Tensor, "3 h w"]:
    """The largest centred part of the picture with the board's shape, so that cells are square."""
    height, width = picture.shape[-2:]
    unit = min(height / board.rows, width / board.cols)
    rows, cols = round(unit * board.rows), round(unit * board.cols)
    top, left = (height - rows) // 2, (width - cols) // 2
    return picture[:, top : top + rows, left : left + cols]


def resize_to_board(picture: Float[Tensor, "3 H W"], board: Board, size: int) -> Float[Tensor, "3 h w"]:
    """Resize so that every cell measures size × size pixels."""
    shape = (board.rows * size, board.cols * size)
    if picture.shape[-2:] == shape:
        return picture
    return F.interpolate(picture[None], shape, mode="bicubic", antialias=True)[0].clamp(0, 1)


def fitted(picture: Float[Tensor, "3 H W"], board: Board, size: int) -> Float[Tensor, "3 h w"]:
    """The picture with cells of size × size pixels, in 8 bits: cut, if its cells have that size, else resized.

    Real pieces are files of 8 bits: finer colours would give away which borders belong together.
    """
    if min(picture.shape[-2] // board.rows, picture.shape[-1] // board.cols) == size:
        top, left = picture.shape[-2] - size * board.rows, picture.shape[-1] - size * board.cols
        sharp = picture[:, top // 2 :, left // 2 :][:, : size * board.rows, : size * board.cols]
    else:
        sharp = resize_to_board(picture, board, size)
    return (sharp * 255).round() / 255


def tiles(picture: Float[Tensor, "3 h w"], board: Board) -> Float[Tensor, "cells 3 s s"]:
    """The cells of a picture whose sides are multiples of the board's, row by row."""
    size = picture.shape[-1] // board.cols
    cells = picture.reshape(3, board.rows, size, board.cols, size)
    return cells.permute(1, 3, 0, 2, 4).reshape(board.cells, 3, size, size)


def cut_picture(
    picture: Float[Tensor, "3 H W"],
    board: Board,
    generator: torch.Generator,
    *,
    size: int | None = None,
    turn: bool = True,
    missing: float = 0.0,
    erode: int = 0,
) -> Puzzle:
    """Cut the centre of a picture into shuffled pieces, each turned by a random quarter turn.

    Without `size` the pieces keep as many pixels as the picture has; with it the picture is resized.
    """
    cropped = crop_to_board(picture, board)
    natural = min(cropped.shape[-2] // board.rows, cropped.shape[-1] // board.cols)
    size = natural if size is None else size
    if min(natural, size - 2 * erode) < SMALLEST_PIECE:
        height, width = picture.shape[-2:]
        raise InputError(
            f"a {width}x{height} picture cut {board.rows}x{board.cols} leaves pieces of under {SMALLEST_PIECE} pixels; "
            "use a larger picture, a coarser grid or less erosion"
        )
    cells = surviving(board.cells, missing, generator)
    turns = torch.randint(0, 4 if turn else 1, (len(cells),), generator=generator)
    pixels = turn_pixels(erode_pixels(tiles(fitted(cropped, board, size), board)[cells], erode), -turns)
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
) -> Puzzle:
    """Cut the centre of a picture file into rows × cols shuffled square pieces, turned by quarter turns.

    Pieces are as large as the picture allows, or `size` pixels a side before `erode` of them are lost at
    every side; `missing` is the share of pieces taken away. The same seed gives the same puzzle.
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
    picture, board = read_picture(path), Board(rows, cols)
    generator = torch.Generator().manual_seed(seed)
    try:
        puzzle = cut_picture(picture, board, generator, size=size, turn=turn, missing=missing, erode=erode)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    assert puzzle.truth is not None
    places = [divmod(cell, cols) for cell in board.snap(puzzle.truth)[0].tolist()]
    check_pieces(puzzle.pictures, [f"the piece of row {row}, column {col}" for row, col in places], Path(path))
    return puzzle
