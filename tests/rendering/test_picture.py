"""Words, scales and colours around pictures."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image, ImageChops

from diffassemble.core import Poses
from diffassemble.core.pieces import to_linear, to_srgb
from diffassemble.core.poses import angles, plane_rotations
from diffassemble.rendering import picture


def test_angles_are_those_of_the_nearest_rotation() -> None:
    wanted = torch.tensor([0.3, -2.0, 3.0])
    rotation = plane_rotations(wanted)
    # Scaling, and anything symmetric and traceless, leaves the nearest rotation as it is.
    stretched = 2.5 * rotation + torch.tensor([[0.2, 0.1], [0.1, -0.2]])
    assert np.allclose(angles(Poses(stretched, torch.zeros(3, 2))), wanted.numpy(), atol=1e-6)


def test_the_ramp_runs_from_red_to_blue_and_stops_at_its_ends() -> None:
    red, blue = picture.confidence_colour(0.0), picture.confidence_colour(1.0)
    assert red[0] > 2 * red[2]
    assert blue[2] > 2 * blue[0]
    assert (picture.confidence_colour(-3.0), picture.confidence_colour(2.0)) == (red, blue)
    assert np.ptp(picture.confidence_colour(float("nan"))) < 15  # grey: what a person placed has no confidence
    steps = np.array([picture.confidence_colour(value) for value in np.linspace(0, 1, 101)])
    assert np.abs(np.diff(steps, axis=0)).max() < 8


def test_pictures_stay_whole_under_and_beside_words() -> None:
    photo = Image.effect_mandelbrot((90, 60), (-2, -1, 1, 1), 50).convert("RGB")
    titled = picture.under_title(photo, "a title that is wider than its picture")
    left = (titled.width - 90) // 2
    inner = titled.crop((left, titled.height - 60, left + 90, titled.height))
    assert ImageChops.difference(inner, photo).getbbox() is None
    pair = picture.beside(titled, titled)
    assert pair.width > 2 * titled.width
    first = pair.crop((20, 20, 20 + titled.width, 20 + titled.height))
    assert ImageChops.difference(first, titled).getbbox() is None
    scale = picture.with_legend(Image.new("RGB", (320, 50)), torch.tensor([0.2, torch.nan]))
    ends = [picture.confidence_colour(sure) for sure in (0.0, 1.0)]
    assert [scale.getpixel((x, 20 + 50 + 16 + 4)) for x in (20, 339)] == ends


def test_outlines_are_drawn() -> None:
    photo = Image.new("RGB", (100, 80), "white")
    corners = torch.tensor([[[20.0, 20.0], [60.0, 20.0], [60.0, 60.0], [20.0, 60.0]]])
    drawn = picture.draw_outlines(photo, list(corners))
    assert drawn.getpixel((40, 20)) == drawn.getpixel((20, 40)) == picture.STYLE.found
    assert drawn.getpixel((90, 70)) == photo.getpixel((40, 20)) == (255, 255, 255)


# How strong red-green and blue-yellow blindness change linear sRGB (Machado, Oliveira and Fernandes 2009).
EYES = {
    "all cones": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.052]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.96888]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}


def test_colours_keep_their_places_and_the_first_eight_differ_for_all_eyes() -> None:
    for eyes in EYES.values():
        seen = to_srgb((to_linear(picture.fragment_colours(8).astype(float)) @ eyes.T).clip(0, 1))
        distance = np.linalg.norm(seen[:, None] - seen, axis=-1)[~np.eye(8, dtype=bool)]
        assert distance.min() > 0.09
    many, levels = picture.fragment_colours(200), np.linspace(0, 1, 101)
    assert 0 <= many.min() <= many.max() <= 1
    assert np.array_equal(many[:5], picture.fragment_colours(5))
    assert len(np.unique((many * 255).round(), axis=0)) == 200
    assert picture.fragment_colours(0).shape == (0, 3)
    assert np.allclose(to_srgb(to_linear(levels)), levels, atol=1e-6)
    assert to_linear(np.array(0.5)) == pytest.approx(0.2140, abs=1e-4)
