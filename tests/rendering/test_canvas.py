"""Pieces on the table: where they land, and how exactly; words, scales and outlines around them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image, ImageChops

from diffassemble.core import Poses, turn_matrix
from diffassemble.rendering.picture import (
    OUTLINE,
    TABLE,
    angles,
    beside,
    confidence_colour,
    draw_outlines,
    lay_pieces,
    piece_images,
    under_title,
    with_legend,
)


def lay_piece(canvas: Image.Image, piece: Image.Image, centre: tuple[float, float], angle: float) -> None:
    lay_pieces(canvas, [piece], np.array([centre]), np.array([angle]))


def test_angles_are_those_of_the_nearest_rotation() -> None:
    wanted = torch.tensor([0.3, -2.0, 3.0])
    rotation = torch.stack(
        [torch.stack([wanted.cos(), -wanted.sin()], -1), torch.stack([wanted.sin(), wanted.cos()], -1)], -2
    )
    # Scaling, and anything symmetric and traceless, leaves the nearest rotation as it is.
    stretched = 2.5 * rotation + torch.tensor([[0.2, 0.1], [0.1, -0.2]])
    assert np.allclose(angles(Poses(stretched, torch.zeros(3, 2))), wanted.numpy(), atol=1e-6)


def test_pixels_survive_at_their_own_size() -> None:
    levels = torch.randint(0, 256, (2, 3, 5, 5), generator=torch.Generator().manual_seed(0))
    for image, expected in zip(piece_images(levels / 255, 5), levels, strict=True):
        assert np.array_equal(np.asarray(image), expected.movedim(0, -1).numpy())
    assert piece_images(levels / 255, 9)[0].size == (9, 9)


@pytest.mark.parametrize("turns", range(4))
def test_quarter_turns_are_exact_and_clockwise(turns: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    canvas = Image.new("RGB", (10, 10))
    matrix = turn_matrix(torch.tensor([turns]))
    angle = float(angles(Poses(matrix, torch.zeros(1, 2)))[0])
    lay_piece(canvas, Image.fromarray(pixels), (5.0, 4.0), angle)
    assert np.array_equal(np.asarray(canvas)[1:7, 2:8], np.rot90(pixels, -turns))


def test_any_angle_agrees_with_the_exact_turn_nearby() -> None:
    # Red above, blue below, turned by a little more than a quarter: red is on the right.
    piece = Image.new("RGB", (40, 40), (0, 0, 255))
    piece.paste((255, 0, 0), (0, 0, 40, 20))
    canvas = Image.new("RGB", (80, 80), TABLE)
    lay_piece(canvas, piece, (40.3, 39.8), math.pi / 2 + 0.05)
    assert canvas.getpixel((52, 40)) == (255, 0, 0)
    assert canvas.getpixel((28, 40)) == (0, 0, 255)
    assert canvas.getpixel((3, 3)) == TABLE


def test_smooth_edges_have_no_fringe() -> None:
    # A piece of the table's own colour must not show, whatever its angle.
    canvas = Image.new("RGB", (60, 60), TABLE)
    lay_piece(canvas, Image.new("RGB", (30, 30), TABLE), (30.2, 30.7), 0.6)
    assert np.abs(np.asarray(canvas).astype(int) - TABLE).max() <= 2


def test_turned_pieces_keep_their_area() -> None:
    canvas = Image.new("RGB", (100, 100))
    lay_piece(canvas, Image.new("RGB", (40, 40), (255, 255, 255)), (50.0, 50.0), math.pi / 5)
    assert np.asarray(canvas)[..., 0].sum() / 255 == pytest.approx(1600, rel=0.01)


def test_pieces_may_hang_over_the_edge() -> None:
    canvas = Image.new("RGB", (20, 20), TABLE)
    lay_piece(canvas, Image.new("RGB", (10, 10)), (0.0, 0.0), 0.0)
    lay_piece(canvas, Image.new("RGB", (10, 10)), (-50.0, 400.0), 1.0)
    assert (canvas.getpixel((4, 4)), canvas.getpixel((6, 6))) == ((0, 0, 0), TABLE)


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


def test_outlines_are_drawn() -> None:
    photo = Image.new("RGB", (100, 80), "white")
    corners = torch.tensor([[[20.0, 20.0], [60.0, 20.0], [60.0, 60.0], [20.0, 60.0]]])
    drawn = draw_outlines(photo, corners)
    assert drawn.getpixel((40, 20)) == OUTLINE
    assert drawn.getpixel((20, 40)) == OUTLINE
    assert drawn.getpixel((90, 70)) == (255, 255, 255)
    assert photo.getpixel((40, 20)) == (255, 255, 255)
