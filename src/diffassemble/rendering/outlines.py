"""A photograph with the pieces that were found in it."""

from __future__ import annotations

from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from diffassemble.rendering.canvas import Colour

OUTLINE: Colour = (220, 30, 110)


def draw_outlines(photo: Image.Image, corners: Float[Tensor, "n 4 2"]) -> Image.Image:
    """The photograph with numbered outlines, in the order of the pieces' files; corners are (x, y) in pixels."""
    canvas = photo.convert("RGB")
    draw, width = ImageDraw.Draw(canvas), max(2, max(photo.size) // 500)
    side = float((corners[:, 0] - corners[:, 1]).norm(dim=-1).mean())
    font = ImageFont.load_default(size=max(10, side / 4))
    for number, corner in enumerate(corners):
        points = [(float(x), float(y)) for x, y in corner]
        draw.line([*points, points[0]], fill=OUTLINE, width=width, joint="curve")
        x, y = corner.mean(0).tolist()
        draw.text((x, y), str(number), fill="white", stroke_fill=OUTLINE, stroke_width=width, font=font, anchor="mm")
    return canvas
