"""Words and scales around pictures."""

from __future__ import annotations

from itertools import pairwise

from PIL import Image, ImageDraw, ImageFont

from diffassemble.rendering.canvas import TABLE, Colour

INK: Colour = (70, 74, 80)
LINE = 30
GAP = 56

# Red to blue by way of yellow: told apart with every common kind of colour vision.
_CONFIDENCE_RAMP: tuple[Colour, ...] = ((201, 52, 60), (246, 196, 84), (38, 110, 178))


def confidence_colour(sure: float) -> Colour:
    """Red for 0, yellow for one half, blue for 1."""
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
    words = ((0.0, "0 doubtful", "la"), (0.5, title, "ma"), (1.0, "sure 1", "ra"))
    for share, text, anchor in words:
        draw.text((edge + share * width, top + bar + 8), text, fill=INK, font=font, anchor=anchor)
    return canvas


def _arrow() -> Image.Image:
    """A small arrow to the right, drawn large and reduced for smooth edges."""
    canvas = Image.new("RGB", (128, 128), TABLE)
    draw = ImageDraw.Draw(canvas)
    draw.line((12, 64, 108, 64), fill=INK, width=11)
    draw.line((72, 26, 110, 64, 72, 102), fill=INK, width=11, joint="curve")
    return canvas.resize((32, 32), Image.Resampling.LANCZOS)
