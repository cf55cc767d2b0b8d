"""Pictures of puzzles and assemblies."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from diffassemble.geometry import Poses, turn_pixels
from diffassemble.puzzle import Assembly, Puzzle
from diffassemble.rendering.canvas import (
    EMPTY_CELL,
    TABLE,
    Colour,
    angles,
    centres,
    empty_board,
    lay_pieces,
    piece_images,
)
from diffassemble.rendering.captions import beside, confidence_colour, under_title, with_legend

PANEL = 480


def draw_poses(
    puzzle: Puzzle,
    poses: Poses,
    *,
    cell: int | None = None,
    confidence: Float[Tensor, "n"] | None = None,
    background: Colour = TABLE,
    margin: int | None = None,
) -> Image.Image:
    """Draw the pieces wherever they stand, over the board; later pieces lie on top of earlier ones.

    `cell` is the width of a cell in pixels (default: a piece's own), `margin` the table around the board
    (default: as much as the pieces need, up to half a board). With `confidence` the pieces are tinted by it.
    """
    cell = cell or puzzle.pictures.size
    if margin is None:
        margin = needed_margin(puzzle, poses, cell)
    images = piece_images(puzzle.pixels, cell)
    if confidence is not None:
        images = [_tinted(image, float(sure)) for image, sure in zip(images, confidence, strict=True)]
    canvas = empty_board(puzzle.board, cell, margin, background)
    lay_pieces(canvas, images, centres(puzzle.board, poses, cell) + margin, angles(poses))
    return canvas


def needed_margin(puzzle: Puzzle, poses: Poses, cell: int) -> int:
    """Pixels of table that pieces outside the board need, but at most half the board's longer side."""
    board, angle = puzzle.board, torch.from_numpy(angles(poses))
    reach = cell / 2 * (angle.cos().abs() + angle.sin().abs())[:, None]
    places = torch.from_numpy(centres(board, poses, cell))
    size = torch.tensor([board.cols * cell, board.rows * cell])
    outside = torch.maximum(reach - places, places + reach - size).clamp(min=0).max()
    # A thousandth of a pixel is rounding, not a piece that sticks out.
    return math.ceil(min(float(outside) - 1e-3, max(board.rows, board.cols) * cell / 2))


def draw_assembly(assembly: Assembly) -> Image.Image:
    """The assembled picture itself, pixel by pixel and without margins; empty cells stay grey."""
    board, pieces = assembly.puzzle.board, assembly.puzzle.pictures
    cells, turns = board.snap(assembly.poses)
    upright = turn_pixels(pieces.pixels, turns)
    canvas = Image.new("RGB", (board.cols * pieces.size, board.rows * pieces.size), EMPTY_CELL)
    for image, cell in zip(piece_images(upright, pieces.size), cells.tolist(), strict=True):
        canvas.paste(image, (cell % board.cols * pieces.size, cell // board.cols * pieces.size))
    return canvas


def draw_table(puzzle: Puzzle, width: int = PANEL) -> Image.Image:
    """The pieces as they lie, in the order given, a little apart from each other, on a board-shaped table."""
    board = puzzle.board
    pitch = width / max(board.rows, board.cols)
    gap = max(1, round(pitch / 16))
    canvas = Image.new("RGB", (round(board.cols * pitch), round(board.rows * pitch)), TABLE)
    for index, image in enumerate(piece_images(puzzle.pixels, max(1, math.floor(pitch) - gap))):
        left, top = index % board.cols * pitch, index // board.cols * pitch
        canvas.paste(image, (round(left + gap / 2), round(top + gap / 2)))
    return canvas


def draw_before_after(assembly: Assembly) -> Image.Image:
    """The pieces as they were given beside what became of them, captioned."""
    before = draw_table(assembly.puzzle)
    after = draw_assembly(assembly).resize(before.size, Image.Resampling.LANCZOS)
    count, board = len(assembly.puzzle), assembly.puzzle.board
    empty = board.cells - count
    result = f"assembled, {board.rows} by {board.cols}" + (f", {empty} missing" if empty else "")
    return beside(under_title(before, f"{count} pieces, shuffled and turned"), under_title(after, result))


def draw_confidence(assembly: Assembly) -> Image.Image:
    """The assembled picture tinted by how sure each piece is, with a legend."""
    board = assembly.puzzle.board
    cell = max(assembly.puzzle.pictures.size, PANEL // max(board.rows, board.cols))
    cells, turns = board.snap(assembly.poses)
    picture = draw_poses(
        assembly.puzzle, board.poses(cells, turns), cell=cell, confidence=assembly.confidence, margin=0
    )
    return with_legend(picture, f"confidence, mean {float(assembly.confidence.mean()):.2f}")


def _tinted(image: Image.Image, sure: float) -> Image.Image:
    """A piece in shades of the colour of its confidence."""
    colour = Image.new("RGB", image.size, confidence_colour(sure))
    return Image.blend(image.convert("L").convert("RGB"), colour, 0.5)
