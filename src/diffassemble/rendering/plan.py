"""A plan that a person at the table can follow: every piece's number at its place, and how far to turn it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFont

from diffassemble.assembly.answer import Answer
from diffassemble.core.colours import Colour
from diffassemble.core.poses import angles
from diffassemble.core.puzzle import labels
from diffassemble.rendering.outlines import blended, placed, stage_around, textures_at
from diffassemble.rendering.picture import INK, TABLE

# Pixels across a piece, so that its number can be read, unless the plan becomes longer than this.
_PIECE, _LONGEST = 96, 7000
# How much of the picture is left under the numbers.
_PALE = 0.35
_DOUBTFUL: Colour = (201, 52, 60)
_ARROW: Colour = (20, 84, 158)


def draw_plan(assembly: Answer) -> Image.Image:
    """The whole, pale, with outlines, numbers, arrows to where the top of each piece's picture points, and degrees."""
    pieces, shown = assembly.puzzle.outlines, placed(assembly)
    outlines = pieces.placed_contours(assembly.poses)
    chosen = [index for index, here in enumerate(shown.tolist()) if here]
    sizes = pieces.areas.sqrt().tolist()
    whole = stage_around([outlines[index] for index in chosen], 0.01)
    scale = min(_PIECE / float(np.median(sizes)), _LONGEST / max(whole.width, whole.height))
    stage = stage_around([outlines[index] for index in chosen], 0.01, scale=scale)
    picture = blended(textures_at(pieces, min(scale, 1.0)), pieces, assembly.poses, stage, shown)
    canvas = Image.blend(Image.new("RGB", picture.size, "white"), picture, _PALE)
    draw, turned = ImageDraw.Draw(canvas), angles(assembly.poses)
    names, sure = labels(assembly.puzzle.names), assembly.confidence.tolist()
    for index in chosen:
        points = stage.shown(outlines[index])
        doubtful = assembly.objects is not None and sure[index] < 0.5
        ring = [(float(x), float(y)) for x, y in points]
        draw.line([*ring, ring[0]], fill=_DOUBTFUL if doubtful else INK, width=3 if doubtful else 1)
    for index in chosen:
        place = stage.shown(assembly.poses.translation[index].double().numpy()[None])[0]
        _mark(draw, place, scale * sizes[index], names[index], float(turned[index]))
    left_out = [names[index] for index in range(len(names)) if not shown[index]]
    return _with_key(canvas, left_out, assembly.objects is not None)


def _mark(draw: ImageDraw.ImageDraw, place: Float[np.ndarray, "2"], size: float, label: str, angle: float) -> None:
    """A piece's number, an arrow to where its top points, and by how many degrees it was turned clockwise."""
    x, y = place.tolist()
    big = ImageFont.load_default(size=max(8.0, 0.26 * size))
    draw.text((x, y), label, fill=INK, font=big, anchor="mm", stroke_width=2, stroke_fill="white")
    towards = np.array([math.sin(angle), -math.cos(angle)])
    begin, end = place + 0.22 * size * towards, place + 0.45 * size * towards
    across = np.array([-towards[1], towards[0]])
    neck = end - 0.12 * size * towards
    for colour, width in (("white", 5), (_ARROW, 2)):
        draw.line([tuple(begin.tolist()), tuple(neck.tolist())], fill=colour, width=width)
    head = (end, neck + 0.07 * size * across, neck - 0.07 * size * across)
    draw.polygon([tuple(point.tolist()) for point in head], fill=_ARROW, outline="white")
    if size >= 48:
        small = ImageFont.load_default(size=max(9.0, 0.14 * size))
        # Above or below the number, wherever the arrow is not.
        at = x, y + math.copysign(0.25 * size, -towards[1])
        degrees = f"{round(math.degrees(angle)) % 360}°"
        draw.text(at, degrees, fill=_ARROW, font=small, anchor="mm", stroke_width=2, stroke_fill="white")


def _with_key(plan: Image.Image, left_out: Sequence[str], tells_doubt: bool) -> Image.Image:
    """The plan over a few lines that say how to read it."""
    told = ["Numbers are those of the pieces' files, and of found.png."]
    told.append("The arrow shows where the top of the piece's picture points; degrees are its turn, clockwise.")
    told += ["Pieces outlined in red are guessed."] if tells_doubt else []
    told += [f"Left out: {', '.join(left_out)}"] if left_out else []
    font, line = ImageFont.load_default(size=16), 24
    lines = [part for text in told for part in _wrapped(text, font, max(plan.width, 320) - 24)]
    canvas = Image.new("RGB", (max(plan.width, 320), plan.height + line * len(lines) + 20), TABLE)
    canvas.paste(plan, ((canvas.width - plan.width) // 2, 0))
    draw = ImageDraw.Draw(canvas)
    for number, text in enumerate(lines):
        draw.text((12, plan.height + 10 + line * number), text, fill=INK, font=font)
    return canvas


def _wrapped(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: int) -> list[str]:
    """The same words in lines no wider than that, if words allow it."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and font.getlength(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
