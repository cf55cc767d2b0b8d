"""Pictures of puzzles and assemblies: where pieces land, and how exactly; words, scales and colours around them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image, ImageChops

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, Poses, Puzzle, turn_matrix
from diffassemble.core.colours import to_linear, to_srgb
from diffassemble.core.poses import angles
from diffassemble.rendering.picture import (
    EMPTY_CELL,
    OUTLINE,
    TABLE,
    beside,
    confidence_colour,
    draw_assembly,
    draw_before_after,
    draw_confidence,
    draw_outlines,
    draw_poses,
    draw_table,
    fragment_colours,
    lay_pieces,
    piece_images,
    under_title,
    with_legend,
)
from diffassemble.squares.cut import crop_to_board, resize_to_board


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
    drawn = draw_outlines(photo, list(corners))
    assert drawn.getpixel((40, 20)) == OUTLINE
    assert drawn.getpixel((20, 40)) == OUTLINE
    assert drawn.getpixel((90, 70)) == (255, 255, 255)
    assert photo.getpixel((40, 20)) == (255, 255, 255)


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


@pytest.mark.parametrize("eyes", EYES)
def test_the_first_eight_differ_for_all_eyes(eyes: str) -> None:
    seen = to_srgb((to_linear(fragment_colours(8).astype(float)) @ EYES[eyes].T).clip(0, 1))
    distance = np.linalg.norm(seen[:, None] - seen, axis=-1)[~np.eye(8, dtype=bool)]
    assert distance.min() > 0.09


def test_colours_are_colours_and_keep_their_places() -> None:
    many = fragment_colours(200)
    assert many.shape == (200, 3)
    assert 0 <= many.min() <= many.max() <= 1
    assert np.array_equal(many[:5], fragment_colours(5))
    assert len(np.unique((many * 255).round(), axis=0)) == 200
    assert fragment_colours(0).shape == (0, 3)


def test_light_and_screen_numbers_are_inverse() -> None:
    levels = np.linspace(0, 1, 101)
    assert np.allclose(to_srgb(to_linear(levels)), levels, atol=1e-6)
    assert to_linear(np.array(0.5)) == pytest.approx(0.2140, abs=1e-4)


Make = Callable[..., Puzzle]
Solved = Callable[..., Answer]


def original(cat: torch.Tensor, board: Board) -> np.ndarray:
    picture = resize_to_board(crop_to_board(cat, board), board, (16, 16))
    return (picture * 255).round().byte().movedim(0, -1).numpy()


@pytest.mark.parametrize(("rows", "cols"), [(4, 4), (3, 5), (5, 2), (7, 9)])
def test_a_right_assembly_is_the_original_pixel_by_pixel(
    cat: torch.Tensor, make_puzzle: Make, solved: Solved, rows: int, cols: int
) -> None:
    assembly = solved(make_puzzle(rows, cols))
    expected = original(cat, Board(rows, cols))
    assert np.array_equal(np.asarray(draw_assembly(assembly)), expected)
    assert np.array_equal(np.asarray(draw_poses(assembly.puzzle, assembly.poses, 16)), expected)


def test_missing_pieces_leave_grey_cells(cat: torch.Tensor, make_puzzle: Make, solved: Solved) -> None:
    assembly = solved(make_puzzle(4, 4, missing=0.25))
    picture = np.asarray(draw_assembly(assembly))
    expected = original(cat, Board(4, 4)).copy()
    filled = set(assembly.puzzle.board.snap(assembly.poses)[0].tolist())
    for cell in set(range(16)) - filled:
        row, col = divmod(cell, 4)
        expected[16 * row : 16 * row + 16, 16 * col : 16 * col + 16] = EMPTY_CELL
    assert np.array_equal(picture, expected)


def test_confidence_tints_from_red_to_blue(make_puzzle: Make) -> None:
    puzzle = make_puzzle(2, 2)
    assert puzzle.truth is not None
    flat = replace(puzzle, pieces=replace(puzzle.pieces, pixels=torch.full_like(puzzle.pieces.pixels, 0.5)))
    sure, doubtful = (draw_poses(flat, puzzle.truth, 16, confidence=torch.full((4,), value)) for value in (1.0, 0.0))
    assert np.asarray(sure)[8, 8, 2] > np.asarray(sure)[8, 8, 0]
    assert np.asarray(doubtful)[8, 8, 0] > np.asarray(doubtful)[8, 8, 2]


@pytest.mark.parametrize(("rows", "cols", "missing"), [(6, 6, 0.0), (3, 5, 0.3), (1, 2, 0.0), (40, 40, 0.0)])
def test_presentable_pictures_of_any_board(
    make_puzzle: Make, solved: Solved, rows: int, cols: int, missing: float
) -> None:
    assembly = solved(make_puzzle(rows, cols, missing=missing))
    pair, tinted = draw_before_after(assembly), draw_confidence(assembly)
    assert 900 < pair.width < 1300
    assert pair.height < 700
    assert 300 < tinted.width < 1000
    assert draw_table(assembly.puzzle, 480).width == 480


def test_the_result_stands_on_the_right(make_puzzle: Make, solved: Solved) -> None:
    assembly = solved(make_puzzle(4, 4))
    pair = draw_before_after(assembly)
    result = draw_assembly(assembly).resize((480, 480), Image.Resampling.LANCZOS)
    inner = pair.crop((pair.width - 20 - 480, pair.height - 20 - 480, pair.width - 20, pair.height - 20))
    assert np.array_equal(np.asarray(inner), np.asarray(result))
