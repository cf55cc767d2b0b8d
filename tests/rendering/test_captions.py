"""Words and scales."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageChops

from diffassemble.rendering.picture import beside, confidence_colour, under_title, with_legend


def test_the_ramp_runs_from_red_to_blue_and_stops_at_its_ends() -> None:
    red, blue = confidence_colour(0.0), confidence_colour(1.0)
    assert red[0] > 2 * red[2]
    assert blue[2] > 2 * blue[0]
    assert (confidence_colour(-3.0), confidence_colour(2.0)) == (red, blue)
    steps = np.array([confidence_colour(value) for value in np.linspace(0, 1, 101)])
    assert np.abs(np.diff(steps, axis=0)).max() < 8


def test_pictures_stay_whole_under_and_beside_words() -> None:
    picture = Image.effect_mandelbrot((90, 60), (-2, -1, 1, 1), 50).convert("RGB")
    titled = under_title(picture, "a title that is wider than its picture")
    left = (titled.width - 90) // 2
    inner = titled.crop((left, titled.height - 60, left + 90, titled.height))
    assert ImageChops.difference(inner, picture).getbbox() is None
    pair = beside(titled, titled)
    assert pair.width > 2 * titled.width
    first = pair.crop((20, 20, 20 + titled.width, 20 + titled.height))
    assert ImageChops.difference(first, titled).getbbox() is None


def test_a_legend_shows_the_whole_ramp() -> None:
    plain = Image.new("RGB", (320, 50))
    picture = with_legend(plain, "confidence")
    bar = [picture.getpixel((x, 20 + 50 + 16 + 4)) for x in range(20, 340)]
    assert bar[0] == confidence_colour(0.0)
    assert bar[-1] == confidence_colour(1.0)
