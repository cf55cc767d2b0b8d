"""Pictures of puzzles and assemblies: pieces laid on a board, captions and scales around them, and all colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64, UInt8
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, Poses, Puzzle, turn_pixels
from diffassemble.core.colours import Colour, to_srgb
from diffassemble.core.poses import angles

TABLE: Colour = (250, 250, 248)
EMPTY_CELL: Colour = (221, 224, 227)
CELL_LINE: Colour = (208, 212, 216)

_CLOCKWISE = {1: Image.Transpose.ROTATE_270, 2: Image.Transpose.ROTATE_180, 3: Image.Transpose.ROTATE_90}


def piece_images(pixels: Float[Tensor, "n 3 h w"], cell: int) -> list[Image.Image]:
    """Each piece as it lies, `cell` pixels wide; untouched pixels when that is its own width."""
    bytes_ = (pixels.detach().cpu() * 255).round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy()
    images = [Image.fromarray(piece) for piece in bytes_]
    if cell == pixels.shape[-1]:
        return images
    height = max(1, round(cell * pixels.shape[-2] / pixels.shape[-1]))
    return [image.resize((cell, height), Image.Resampling.LANCZOS) for image in images]


def centres(board: Board, poses: Poses, cell: int) -> NDArray[np.float64]:
    """Centre (x, y) of each piece in pixels, from the board's upper left corner."""
    middle = np.array([board.cols, board.rows]) / 2
    return (poses.translation.detach().cpu().double().numpy() / board.pitch + middle) * (
        cell,
        _cell_height(board, cell),
    )


def _cell_height(board: Board, cell: int) -> int:
    """How high cells are that are so wide."""
    return max(1, round(cell * board.aspect))


def empty_board(board: Board, cell: int, margin: int = 0) -> Image.Image:
    """A board without pieces, its cells faintly drawn, with `margin` pixels of table around it."""
    high = _cell_height(board, cell)
    width, height = board.cols * cell, board.rows * high
    canvas = Image.new("RGB", (width + 2 * margin, height + 2 * margin), TABLE)
    draw = ImageDraw.Draw(canvas)
    for row in range(board.rows):
        for col in range(board.cols):
            left, top = margin + col * cell, margin + row * high
            corners = (left, top, left + cell - 1, top + high - 1)
            draw.rectangle(corners, fill=EMPTY_CELL, outline=CELL_LINE if min(cell, high) >= 8 else None)
    return canvas


def lay_pieces(
    canvas: Image.Image, pieces: Sequence[Image.Image], places: NDArray[np.float64], turned: NDArray[np.float64]
) -> None:
    """Draw pieces into `canvas` one after another, at their centres (pixels) and angles (radians).

    Pixels are exact at quarter turns on whole pixels, edges smooth elsewhere.
    """
    for piece, (x, y), angle in zip(pieces, places.tolist(), turned.tolist(), strict=True):
        left, top, quarters = x - piece.width / 2, y - piece.height / 2, angle / (math.pi / 2)
        # Single precision leaves a lattice pose a little beside its pixel.
        if max(abs(value - round(value)) for value in (left, top, quarters)) < 2e-3:
            turn = _CLOCKWISE.get(round(quarters) % 4)
            canvas.paste(piece if turn is None else piece.transpose(turn), (round(left), round(top)))
        else:
            patch, corner = _turned_patch(piece, (x, y), angle)
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


INK: Colour = (70, 74, 80)
LINE = 30
GAP = 56

# Red to blue by way of yellow: told apart with every common kind of colour vision.
_CONFIDENCE_RAMP: tuple[Colour, ...] = ((201, 52, 60), (246, 196, 84), (38, 110, 178))
_BY_PERSON: Colour = (150, 154, 160)


def confidence_colour(sure: float) -> Colour:
    """Red for 0, yellow for one half, blue for 1; grey for NaN: what a person placed has no confidence."""
    if math.isnan(sure):
        return _BY_PERSON
    place = min(max(sure, 0.0), 1.0) * (len(_CONFIDENCE_RAMP) - 1)
    below = min(int(place), len(_CONFIDENCE_RAMP) - 2)
    low, high = list(pairwise(_CONFIDENCE_RAMP))[below]
    red, green, blue = (round(a + (b - a) * (place - below)) for a, b in zip(low, high, strict=True))
    return red, green, blue


def under_title(picture: Image.Image, title: str) -> Image.Image:
    """The picture with a line of text above it; the canvas grows if the text is wider."""
    font = ImageFont.load_default(size=18)
    width = max(picture.width, round(font.getlength(title)) + 4)
    canvas = Image.new("RGB", (width, picture.height + LINE), TABLE)
    ImageDraw.Draw(canvas).text((width / 2, LINE / 2 - 3), title, fill=INK, font=font, anchor="mm")
    canvas.paste(picture, ((width - picture.width) // 2, LINE))
    return canvas


def beside(left: Image.Image, right: Image.Image, *more: Image.Image) -> Image.Image:
    """Pictures of equal height in a row, an arrow from the first to the second, framed by some table."""
    edge, panels = 20, (left, right, *more)
    width = sum(panel.width for panel in panels) + GAP * (len(panels) - 1)
    canvas = Image.new("RGB", (width + 2 * edge, left.height + 2 * edge), TABLE)
    place = edge
    for panel in panels:
        canvas.paste(panel, (place, edge))
        place += panel.width + GAP
    canvas.paste(_arrow(), (edge + left.width + GAP // 2 - 16, edge + LINE + (left.height - LINE) // 2 - 16))
    return canvas


def in_a_row(panels: Sequence[Image.Image]) -> Image.Image:
    """Pictures of equal height side by side."""
    canvas = Image.new("RGB", (sum(panel.width for panel in panels), panels[0].height), TABLE)
    place = 0
    for panel in panels:
        canvas.paste(panel, (place, 0))
        place += panel.width
    return canvas


def with_legend(picture: Image.Image, title: str) -> Image.Image:
    """The picture over a scale of the confidence colours."""
    font, edge, bar = ImageFont.load_default(size=15), 20, 12
    width = max(picture.width, 300)
    canvas = Image.new("RGB", (width + 2 * edge, picture.height + 2 * edge + 54), TABLE)
    canvas.paste(picture, (edge + (width - picture.width) // 2, edge))
    draw, top = ImageDraw.Draw(canvas), edge + picture.height + 16
    for x in range(width):
        colour = confidence_colour(x / (width - 1))
        draw.line((edge + x, top, edge + x, top + bar - 1), fill=colour)
    for share, text, anchor in ((0.0, "0 doubtful", "la"), (0.5, title, "ma"), (1.0, "sure 1", "ra")):
        draw.text((edge + share * width, top + bar + 8), text, fill=INK, font=font, anchor=anchor)
    return canvas


def _arrow() -> Image.Image:
    """A small arrow to the right, drawn large and reduced for smooth edges."""
    canvas = Image.new("RGB", (128, 128), TABLE)
    draw = ImageDraw.Draw(canvas)
    draw.line((12, 64, 108, 64), fill=INK, width=11)
    draw.line((72, 26, 110, 64, 72, 102), fill=INK, width=11, joint="curve")
    return canvas.resize((32, 32), Image.Resampling.LANCZOS)


# A golden step round the circle never comes near an earlier hue soon; lightness changes along, so that hues which do
# come near, or look alike to some eyes, still differ. Start and levels keep the first eight far apart for all eyes.
_FIRST_HUE = 0.184
_HUE_STEP = (5**0.5 - 1) / 2
_LIGHTNESS = (0.68, 0.57, 0.80, 0.51, 0.62, 0.74, 0.855)
_CHROMA = 0.117

# Oklab (Ottosson 2020): cube roots of cone responses, and linear sRGB from them.
_CONES_FROM_LAB = np.array(
    [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480]]
)
_LINEAR_FROM_CONES = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def fragment_colours(count: int) -> Float32[np.ndarray, "n 3"]:
    """A colour (sRGB, 0…1) for each of `count` fragments; the first ones stay the same when more are asked for."""
    order = np.arange(count)
    hue = 2 * np.pi * (_FIRST_HUE + order * _HUE_STEP)
    lightness = np.array(_LIGHTNESS)[order % len(_LIGHTNESS)]
    lab = np.stack([lightness, _CHROMA * np.cos(hue), _CHROMA * np.sin(hue)], -1)
    linear = (lab @ _CONES_FROM_LAB.T) ** 3 @ _LINEAR_FROM_CONES.T
    return to_srgb(linear.clip(0, 1)).astype(np.float32)


PANEL = 480


def draw_poses(
    puzzle: Puzzle, poses: Poses, cell: int, margin: int = 0, confidence: Float[Tensor, "n"] | None = None
) -> Image.Image:
    """Draw the pieces wherever they stand, over the board; later pieces lie on top of earlier ones.

    `cell` is the width of a cell in pixels, `margin` the table around the board. With `confidence` the pieces are
    tinted by it.
    """
    images = piece_images(puzzle.pixels, cell)
    if confidence is not None:
        images = [tinted(image, float(sure)) for image, sure in zip(images, confidence, strict=True)]
    canvas = empty_board(puzzle.board, cell, margin)
    lay_pieces(canvas, images, centres(puzzle.board, poses, cell) + margin, angles(poses))
    return canvas


def draw_assembly(assembly: Answer) -> Image.Image:
    """The assembled picture itself, pixel by pixel and without margins; empty cells stay grey."""
    board, pieces = assembly.puzzle.board, assembly.puzzle.pictures
    cells, turns = board.snap(assembly.poses)
    upright = turn_pixels(pieces.pixels, turns)
    canvas = Image.new("RGB", (board.cols * pieces.width, board.rows * pieces.height), EMPTY_CELL)
    for image, cell in zip(piece_images(upright, pieces.width), cells.tolist(), strict=True):
        canvas.paste(image, (cell % board.cols * pieces.width, cell // board.cols * pieces.height))
    return canvas


def draw_table(puzzle: Puzzle, width: int = PANEL) -> Image.Image:
    """The pieces as they lie, in the order given, a little apart from each other, on a board-shaped table."""
    board = puzzle.board
    pitch = width / board.extent
    gap = max(1, round(pitch / 16))
    canvas = Image.new("RGB", (round(board.cols * pitch), round(board.rows * pitch * board.aspect)), TABLE)
    for index, image in enumerate(piece_images(puzzle.pixels, max(1, math.floor(pitch) - gap))):
        left, top = index % board.cols * pitch, index // board.cols * pitch * board.aspect
        canvas.paste(image, (round(left + gap / 2), round(top + gap / 2)))
    return canvas


def draw_before_after(assembly: Answer) -> Image.Image:
    """The pieces as they were given beside what became of them, captioned."""
    before = draw_table(assembly.puzzle)
    after = draw_assembly(assembly).resize(before.size, Image.Resampling.LANCZOS)
    count, board = len(assembly.puzzle), assembly.puzzle.board
    empty = board.cells - count
    result = f"assembled, {board.rows} by {board.cols}" + (f", {empty} missing" if empty else "")
    return beside(under_title(before, f"{count} pieces, shuffled and turned"), under_title(after, result))


def draw_confidence(assembly: Answer) -> Image.Image:
    """The assembled picture tinted by how sure each piece is, with a legend."""
    board = assembly.puzzle.board
    cell = max(assembly.puzzle.pictures.width, int(PANEL // board.extent))
    cells, turns = board.snap(assembly.poses)
    poses = board.poses(cells, turns)
    picture = draw_poses(assembly.puzzle, poses, cell, confidence=assembly.confidence)
    return with_legend(picture, f"confidence, mean {float(assembly.confidence.nanmean()):.2f}")


def tinted(image: Image.Image, sure: float, share: float = 0.5) -> Image.Image:
    """A piece in shades of the colour of its confidence."""
    colour = Image.new("RGB", image.size, confidence_colour(sure))
    return Image.blend(image.convert("L").convert("RGB"), colour, share)


OUTLINE: Colour = (220, 30, 110)


WRONG: Colour = (235, 60, 20)
_LARGEST_PHOTO, _LARGEST_SHEET = 2000, 3200
# The least size of letters in pixels; what is shown around a single piece, of its length.
_LEGIBLE, _AROUND = 14.0, 0.1


def draw_outlines(
    photo: Image.Image, curves: Sequence[Float[Tensor, "_ 2"]], labels: Sequence[str] | None = None
) -> Image.Image:
    """The photograph with outlines and what is written on them, numbers if nothing is told; points (x, y) in pixels.

    What has an empty label is no piece: it is filled with a colour and marked by an exclamation mark.
    """
    canvas = photo.convert("RGB")
    draw, width = ImageDraw.Draw(canvas, "RGBA"), max(2, max(photo.size) // 500)
    reach = np.median([np.ptp(np.asarray(curve), axis=0).min() for curve in curves]) if len(curves) else 40
    font = ImageFont.load_default(size=max(_LEGIBLE, float(reach) / 3))
    for curve, label in zip(curves, labels or [str(number) for number in range(len(curves))], strict=True):
        points = [(float(x), float(y)) for x, y in curve]
        colour = OUTLINE if label else WRONG
        if not label:
            draw.polygon(points, fill=(*WRONG, 90))
        draw.line([*points, points[0]], fill=colour, width=width, joint="curve")
        x, y = np.asarray(curve).mean(0).tolist()
        draw.text((x, y), label or "!", fill="white", stroke_fill=colour, stroke_width=width, font=font, anchor="mm")
    return canvas


def draw_found(
    photos: Sequence[tuple[UInt8[Tensor, "3 _ _"], Sequence[Float64[np.ndarray, "_ 2"]], Sequence[str]]],
) -> Image.Image:
    """Photographs with what was found in them and its labels, one beside the other.

    Of photographs that show one piece, only the piece and a little around it: many of them are drawn larger so. All
    others are whole, since a piece that was overlooked lies where there seems to be background.
    """
    boxes = [_box_around(levels, curves, labels) for levels, curves, labels in photos]
    width, height = (max(box[axis + 2] - box[axis] for box in boxes) for axis in (0, 1))
    # About as wide as high, and one row if there are two.
    columns = min(len(photos), math.ceil(math.sqrt(len(photos) * height / width)))
    rows = math.ceil(len(photos) / columns)
    scale = min(1.0, _LARGEST_PHOTO / max(height, width), _LARGEST_SHEET / max(columns * width, rows * height))
    drawn = []
    for (levels, curves, labels), (left, top, right, low) in zip(photos, boxes, strict=True):
        image = Image.fromarray(levels[:, top:low, left:right].movedim(0, -1).contiguous().numpy())
        small = image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))))
        stretch = np.array(small.size) / np.array(image.size)
        # A point a pixel is enough.
        shown = [torch.from_numpy((curve[:: max(1, int(1 / scale))] - (left, top)) * stretch) for curve in curves]
        drawn.append(draw_outlines(small, shown, labels))
    cell = max(image.width for image in drawn), max(image.height for image in drawn)
    sheet = Image.new("RGB", (cell[0] * columns, cell[1] * rows), TABLE)
    for index, image in enumerate(drawn):
        sheet.paste(image, (index % columns * cell[0], index // columns * cell[1]))
    return sheet


def _box_around(
    levels: UInt8[Tensor, "3 H W"], curves: Sequence[Float64[np.ndarray, "_ 2"]], labels: Sequence[str]
) -> tuple[int, int, int, int]:
    """What to show of a photograph: left, top, right, bottom."""
    height, width = levels.shape[-2:]
    if len(curves) != 1 or not labels[0]:
        return 0, 0, width, height
    low, high = curves[0].min(0), curves[0].max(0)
    margin = _AROUND * float((high - low).max())
    left, top = np.floor(low - margin).clip(0).astype(int).tolist()
    right, bottom = np.ceil(high + margin).clip(0, (width, height)).astype(int).tolist()
    return left, top, right, bottom
