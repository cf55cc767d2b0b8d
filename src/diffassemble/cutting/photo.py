"""A picture file becomes a puzzle, or a photograph of pieces becomes pieces."""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image

from diffassemble.cutting.image import SMALLEST_PIECE, cut_picture
from diffassemble.cutting.scattered import cut_scattered
from diffassemble.files import check_pieces, read_picture
from diffassemble.files.images import MOST_PIXELS, to_image
from diffassemble.puzzle import Board, ImagePieces, InputError, Puzzle
from diffassemble.rendering.outlines import draw_outlines


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
    _check_numbers(rows, cols, seed, size, missing, erode)
    picture, board = read_picture(path), Board(rows, cols)
    generator = torch.Generator().manual_seed(seed)
    try:
        puzzle = cut_picture(picture, board, generator, size=size, turn=turn, missing=missing, erode=erode)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    check_pieces(puzzle.pictures, _origins(puzzle), Path(path))
    return puzzle


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
    return pieces, draw_outlines(to_image(picture), squares.corners())


def _check_numbers(rows: int, cols: int, seed: int, size: int | None, missing: float, erode: int) -> None:
    if min(rows, cols) < 1:
        raise InputError(f"a grid of {rows} rows and {cols} columns has no cells; give 1 or more of each")
    if not 0 <= missing < 1:
        raise InputError(f"missing share {missing} is not at least 0 and under 1; 0.3 takes 30 % of the pieces away")
    if erode < 0:
        raise InputError(f"cannot erode {erode} pixels; give 0 or more")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed {seed} is out of range; give a number from 0 to 2^63 − 1")
    if size is not None and not (size > 0 and rows * cols * size**2 <= MOST_PIXELS):
        raise InputError(
            f"a piece size of {size} pixels is out of range; all pieces together may have "
            f"{MOST_PIXELS // 10**6} megapixels"
        )


def _origins(puzzle: Puzzle) -> list[str]:
    """Where in the picture each piece was, in words."""
    assert puzzle.truth is not None
    cells, _ = puzzle.board.snap(puzzle.truth)
    places = [divmod(cell, puzzle.board.cols) for cell in cells.tolist()]
    return [f"the piece of row {row}, column {col}" for row, col in places]
