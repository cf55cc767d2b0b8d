"""The table that pieces are drawn on: an empty board, and one piece laid down at any place and angle."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.puzzle import Board

Colour = tuple[int, int, int]

TABLE: Colour = (250, 250, 248)
EMPTY_CELL: Colour = (221, 224, 227)
CELL_LINE: Colour = (208, 212, 216)

_CLOCKWISE = {1: Image.Transpose.ROTATE_270, 2: Image.Transpose.ROTATE_180, 3: Image.Transpose.ROTATE_90}


def piece_images(pixels: Float[Tensor, "n 3 s s"], cell: int) -> list[Image.Image]:
    """Each piece as it lies, `cell` pixels wide; untouched pixels when that is its own size."""
    bytes_ = (pixels.detach().cpu() * 255).round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy()
    images = [Image.fromarray(piece) for piece in bytes_]
    if cell == pixels.shape[-1]:
        return images
    return [image.resize((cell, cell), Image.Resampling.LANCZOS) for image in images]


def angles(poses: Poses) -> NDArray[np.float64]:
    """Angle (radians, clockwise as seen) of the rotation nearest to each pose, which may be noisy."""
    rotation = poses.rotation.detach().cpu().double().numpy()
    return np.arctan2(rotation[:, 1, 0] - rotation[:, 0, 1], rotation[:, 0, 0] + rotation[:, 1, 1])


def centres(board: Board, poses: Poses, cell: int) -> NDArray[np.float64]:
    """Centre (x, y) of each piece in pixels, from the board's upper left corner."""
    middle = np.array([board.cols, board.rows]) / 2
    return (poses.translation.detach().cpu().double().numpy() / board.pitch + middle) * cell


def empty_board(board: Board, cell: int, margin: int, background: Colour) -> Image.Image:
    """A board without pieces, its cells faintly drawn, with `margin` pixels of table around it."""
    width, height = board.cols * cell, board.rows * cell
    canvas = Image.new("RGB", (width + 2 * margin, height + 2 * margin), background)
    draw = ImageDraw.Draw(canvas)
    for row in range(board.rows):
        for col in range(board.cols):
            left, top = margin + col * cell, margin + row * cell
            corners = (left, top, left + cell - 1, top + cell - 1)
            draw.rectangle(corners, fill=EMPTY_CELL, outline=CELL_LINE if cell >= 8 else None)
    return canvas


def lay_pieces(
    canvas: Image.Image,
    pieces: Sequence[Image.Image],
    places: NDArray[np.float64],
    turned: NDArray[np.float64],
) -> None:
    """Draw pieces into `canvas` one after another, at their centres (pixels) and angles (radians)."""
    for piece, (x, y), angle in zip(pieces, places.tolist(), turned.tolist(), strict=True):
        lay_piece(canvas, piece, (x, y), angle)


def lay_piece(canvas: Image.Image, piece: Image.Image, centre: tuple[float, float], angle: float) -> None:
    """Draw a piece into `canvas`: exact pixels at quarter turns on whole pixels, smooth edges elsewhere."""
    left, top = centre[0] - piece.width / 2, centre[1] - piece.height / 2
    quarters = angle / (math.pi / 2)
    # Single precision leaves a lattice pose a little beside its pixel.
    if max(abs(value - round(value)) for value in (left, top, quarters)) < 2e-3:
        turn = _CLOCKWISE.get(round(quarters) % 4)
        canvas.paste(piece if turn is None else piece.transpose(turn), (round(left), round(top)))
        return
    patch, corner = _turned_patch(piece, centre, angle)
    canvas.paste(patch, corner, patch)


def _turned_patch(piece: Image.Image, centre: tuple[float, float], angle: float) -> tuple[Image.Image, tuple[int, int]]:
    """The piece at its angle on a transparent patch, and the patch's upper left corner on the canvas."""
    padded = Image.new("RGBA", (piece.width + 2, piece.height + 2))
    padded.paste(piece, (1, 1))
    reach = math.hypot(*padded.size) / 2
    left, top = math.floor(centre[0] - reach), math.floor(centre[1] - reach)
    side = math.ceil(2 * reach) + 1
    cosine, sine = math.cos(angle), math.sin(angle)
    # Pillow asks where each pixel of the patch comes from: the inverse motion, about both centres.
    x, y = centre[0] - left, centre[1] - top
    start_x = padded.width / 2 - cosine * x - sine * y
    start_y = padded.height / 2 + sine * x - cosine * y
    inverse = (cosine, sine, start_x, -sine, cosine, start_y)
    patch = padded.transform((side, side), Image.Transform.AFFINE, inverse, resample=Image.Resampling.BILINEAR)
    return patch, (left, top)
