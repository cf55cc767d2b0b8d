"""Outlines lie where the pieces lie, and the photograph is left alone elsewhere."""

from __future__ import annotations

import torch
from PIL import Image

from diffassemble.rendering.picture import OUTLINE, draw_outlines


def test_outlines_are_drawn() -> None:
    photo = Image.new("RGB", (100, 80), "white")
    corners = torch.tensor([[[20.0, 20.0], [60.0, 20.0], [60.0, 60.0], [20.0, 60.0]]])
    drawn = draw_outlines(photo, corners)
    assert drawn.getpixel((40, 20)) == OUTLINE
    assert drawn.getpixel((20, 40)) == OUTLINE
    assert drawn.getpixel((90, 70)) == (255, 255, 255)
    assert photo.getpixel((40, 20)) == (255, 255, 255)
