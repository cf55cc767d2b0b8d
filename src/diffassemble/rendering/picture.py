"""What all pictures share: style, colours, titles, scales and panels; and photographs with the pieces found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64, UInt8
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from diffassemble.assembly.layout import in_rows
from diffassemble.core.pieces import Colour, to_srgb


@dataclass(frozen=True)
class Style:
    """How pictures look. Lengths are pixels, shares are of 1, colours sRGB levels."""

    table: Colour = (250, 250, 248)
    empty_cell: Colour = (221, 224, 227)
    ink: Colour = (70, 74, 80)
    found: Colour = (220, 30, 110)  # outline of a piece that was found in a photograph …
    wrong: Colour = (235, 60, 20)  # … and of what is no piece
    doubtful: Colour = (201, 52, 60)
    arrow: Colour = (20, 84, 158)
    # Confidence 0, ½ and 1: red, yellow and blue differ for every common kind of colour vision.
    ramp: tuple[Colour, ...] = ((201, 52, 60), (246, 196, 84), (38, 110, 178))
    by_person: Colour = (150, 154, 160)
    tint: float = 0.55  # how much of a piece's look its confidence takes
    panel: int = 480  # longest side of a table or a whole, side by side …
    map: int = 1600  # … of a whole in the colours of confidence …
    moving: int = 440  # … of an animation of flat pieces …
    pair: int = 280  # … and of two pieces to be joined
    title: int = 30  # height of a title
    gap: int = 56  # between panels
    edge: int = 20  # around panels
    room: float = 0.12  # between pieces on a table, of their mean size …
    around: float = 0.03  # … and around them, of the whole
    covered: float = 0.7  # a pixel counts as covered from this alpha on: rounding leaves seams a little short of 1
    numbered: int = 96  # across a piece of a plan, so that its number can be read …
    longest_plan: int = 7000  # … unless the plan becomes longer
    pale: float = 0.35  # how much of the picture is left under the numbers of a plan
    photo: int = 2000  # longest side of a photograph with what was found in it …
    sheet: int = 3200  # … and of several
    letters: float = 14.0  # least height of letters on photographs
    moments: int = 5  # of a long history so many are passed through
    frames: int = 48  # of an animation
    milliseconds: int = 60  # a frame of an animation …
    rest: int = 2000  # … and its last one
    gif_widths: tuple[int, ...] = (480, 400, 340, 280, 220, 160)
    gif_bytes: int = 3_000_000  # widths are tried until an animation has no more bytes
    names: int = 12  # that are listed in a row of a report …
    doubtful_rows: int = 10  # … and doubtful pieces in its table


STYLE = Style()
TABLE, INK = STYLE.table, STYLE.ink


def confidence_colour(sure: float, style: Style = STYLE) -> Colour:
    """Red for 0, yellow for one half, blue for 1; grey for NaN: what a person placed has no confidence."""
    if math.isnan(sure):
        return style.by_person
    place = min(max(sure, 0.0), 1.0) * (len(style.ramp) - 1)
    below = min(int(place), len(style.ramp) - 2)
    low, high = list(pairwise(style.ramp))[below]
    red, green, blue = (round(a + (b - a) * (place - below)) for a, b in zip(low, high, strict=True))
    return red, green, blue


def under_title(picture: Image.Image, title: str) -> Image.Image:
    """The picture with a line of text above it; the canvas grows if the text is wider."""
    font, high = ImageFont.load_default(size=18), STYLE.title
    width = max(picture.width, round(font.getlength(title)) + 4)
    canvas = Image.new("RGB", (width, picture.height + high), TABLE)
    ImageDraw.Draw(canvas).text((width / 2, high / 2 - 3), title, fill=INK, font=font, anchor="mm")
    canvas.paste(picture, ((width - picture.width) // 2, high))
    return canvas


def in_a_row(panels: Sequence[Image.Image], gap: int = 0, edge: int = 0, length: float = math.inf) -> Image.Image:
    """Pictures side by side, `gap` pixels apart, with `edge` pixels of table around; in rows of at most that length."""
    sizes = np.array([panel.size for panel in panels], float)
    corners = in_rows(np.zeros_like(sizes), sizes, (float(edge), float(edge)), float(gap), length)
    canvas = Image.new("RGB", tuple(((corners + sizes).max(0) + edge).astype(int).tolist()), TABLE)
    for panel, corner in zip(panels, corners.astype(int).tolist(), strict=True):
        canvas.paste(panel, tuple(corner))
    return canvas


def beside(left: Image.Image, right: Image.Image, *more: Image.Image) -> Image.Image:
    """Pictures of equal height in a row, an arrow from the first to the second, framed by some table."""
    canvas = in_a_row((left, right, *more), STYLE.gap, STYLE.edge)
    arrow = Image.new("RGB", (128, 128), TABLE)  # drawn large and reduced for smooth edges
    draw = ImageDraw.Draw(arrow)
    draw.line((12, 64, 108, 64), fill=INK, width=11)
    draw.line((72, 26, 110, 64, 72, 102), fill=INK, width=11, joint="curve")
    at = STYLE.edge + left.width + STYLE.gap // 2 - 16, STYLE.edge + (left.height + STYLE.title) // 2 - 16
    canvas.paste(arrow.resize((32, 32), Image.Resampling.LANCZOS), at)
    return canvas


def with_legend(picture: Image.Image, confidence: Float[Tensor, "n"]) -> Image.Image:
    """The picture over a scale of the confidence colours, with the mean confidence."""
    font, edge, bar = ImageFont.load_default(size=15), STYLE.edge, 12
    width = max(picture.width, 300)
    canvas = Image.new("RGB", (width + 2 * edge, picture.height + 2 * edge + 54), TABLE)
    canvas.paste(picture, (edge + (width - picture.width) // 2, edge))
    draw, top = ImageDraw.Draw(canvas), edge + picture.height + 16
    for x in range(width):
        draw.line((edge + x, top, edge + x, top + bar - 1), fill=confidence_colour(x / (width - 1)))
    known = confidence[~confidence.isnan()]
    mean = f"confidence, mean {float(known.mean()):.2f}" if len(known) else "confidence"
    for share, text, anchor in ((0.0, "0 doubtful", "la"), (0.5, mean, "ma"), (1.0, "sure 1", "ra")):
        draw.text((edge + share * width, top + bar + 8), text, fill=INK, font=font, anchor=anchor)
    return canvas


# A golden step round the circle never comes near an earlier hue soon; lightness changes along, so that hues which do
# come near, or look alike to some eyes, still differ. Start and levels keep the first eight far apart for all eyes.
@dataclass(frozen=True)
class Palette:
    """Colours in Oklch that differ from each other: first hue and step of the hue (turns), lightness, chroma."""

    hue: float = 0.184
    step: float = (5**0.5 - 1) / 2
    lightness: tuple[float, ...] = (0.68, 0.57, 0.80, 0.51, 0.62, 0.74, 0.855)
    chroma: float = 0.117


PALETTE = Palette()


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


def fragment_colours(count: int, palette: Palette = PALETTE) -> Float32[np.ndarray, "n 3"]:
    """A colour (sRGB, 0…1) for each of `count` fragments; the first ones stay the same when more are asked for."""
    order = np.arange(count)
    hue = 2 * np.pi * (palette.hue + order * palette.step)
    lightness = np.array(palette.lightness)[order % len(palette.lightness)]
    lab = np.stack([lightness, palette.chroma * np.cos(hue), palette.chroma * np.sin(hue)], -1)
    linear = (lab @ _CONES_FROM_LAB.T) ** 3 @ _LINEAR_FROM_CONES.T
    return to_srgb(linear.clip(0, 1)).astype(np.float32)


def draw_outlines(
    photo: Image.Image, curves: Sequence[Float[Tensor, "_ 2"]], labels: Sequence[str] | None = None
) -> Image.Image:
    """The photograph with outlines and what is written on them, numbers by default; points (x, y) in pixels.

    What has an empty label is no piece: it is filled with a colour and marked by an exclamation mark.
    """
    canvas = photo.convert("RGB")
    draw, width = ImageDraw.Draw(canvas, "RGBA"), max(2, max(photo.size) // 500)
    reach = np.median([np.ptp(np.asarray(curve), axis=0).min() for curve in curves]) if len(curves) else 40
    font = ImageFont.load_default(size=max(STYLE.letters, float(reach) / 3))
    for curve, label in zip(curves, labels or [str(number) for number in range(len(curves))], strict=True):
        points = [(float(x), float(y)) for x, y in curve]
        colour = STYLE.found if label else STYLE.wrong
        if not label:
            draw.polygon(points, fill=(*STYLE.wrong, 90))
        draw.line([*points, points[0]], fill=colour, width=width, joint="curve")
        x, y = np.asarray(curve).mean(0).tolist()
        draw.text((x, y), label or "!", fill="white", stroke_fill=colour, stroke_width=width, font=font, anchor="mm")
    return canvas


def draw_found(
    photos: Sequence[tuple[UInt8[Tensor, "3 _ _"], Sequence[Float64[np.ndarray, "_ 2"]], Sequence[str]]],
) -> Image.Image:
    """Photographs with what was found in them and its labels, one beside the other.

    Of a photograph of one piece only that is shown; others are whole, so that overlooked pieces can be seen.
    """
    boxes = [_box_around(levels, curves, labels) for levels, curves, labels in photos]
    width, height = (max(box[axis + 2] - box[axis] for box in boxes) for axis in (0, 1))
    # About as wide as high, and one row if there are two.
    columns = min(len(photos), math.ceil(math.sqrt(len(photos) * height / width)))
    rows = math.ceil(len(photos) / columns)
    scale = min(1.0, STYLE.photo / max(height, width), STYLE.sheet / max(columns * width, rows * height))
    drawn = []
    for (levels, curves, labels), box in zip(photos, boxes, strict=True):
        image = Image.fromarray(levels.movedim(0, -1).contiguous().numpy()).crop(box)
        small = image.resize([max(1, round(side * scale)) for side in image.size])
        stretch = np.array(small.size) / np.array(image.size)
        # A point a pixel is enough.
        shown = [torch.from_numpy((curve[:: max(1, int(1 / scale))] - box[:2]) * stretch) for curve in curves]
        drawn.append(draw_outlines(small, shown, labels))
    return in_a_row(drawn, length=float(columns * max(image.width for image in drawn)))


def _box_around(
    levels: UInt8[Tensor, "3 H W"], curves: Sequence[Float64[np.ndarray, "_ 2"]], labels: Sequence[str]
) -> tuple[int, int, int, int]:
    """What to show of a photograph: left, top, right, bottom."""
    height, width = levels.shape[-2:]
    if len(curves) != 1 or not labels[0]:
        return 0, 0, width, height
    low, high = curves[0].min(0), curves[0].max(0)
    margin = 0.1 * float((high - low).max())
    left, top = np.floor(low - margin).clip(0).astype(int).tolist()
    right, bottom = np.ceil(high + margin).clip(0, (width, height)).astype(int).tolist()
    return left, top, right, bottom
