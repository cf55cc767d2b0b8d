"""Pieces out of photos."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from skimage.measure import find_contours

from diffassemble.core import InputError, Puzzle, turn_pixels
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.io.photo.segmentation import Rectangle, smallest_rectangle
from diffassemble.io.photo.squares import Squares, cut_scattered, find_squares, sharpen
from diffassemble.kinds import solve

Photograph = Callable[..., Any]


@pytest.mark.parametrize(
    ("name", "background", "shadow"),
    [
        ("coffee", (225, 220, 210), 0.35),
        ("astronaut", (90, 140, 90), 0.35),
        ("chelsea", (250, 250, 250), 0.35),
        ("chelsea", (40, 45, 60), 0.0),
    ],
)
def test_squares_are_found(photograph: Photograph, name: str, background: tuple[int, int, int], shadow: float) -> None:
    photo = photograph(name, background=background, shadow=shadow)
    squares = find_squares(photo.picture)
    assert len(squares) == 9
    assert abs(squares.side - 56) < 1.5
    apart = torch.cdist(squares.centres, photo.centres)
    assert apart.min(1).values.max() < 1.0
    assert apart.argmin(1).tolist() == list(range(9))  # in reading order
    angle = photo.angles[apart.argmin(1)]
    assert ((squares.angles.rad2deg() - angle + 45) % 90 - 45).abs().max() < 1.5


def test_corners_run_clockwise_around_the_centre() -> None:
    squares = Squares(torch.tensor([[10.0, 20.0]]), torch.tensor([math.pi / 6]), 4.0)
    corners = squares.corners()[0]
    assert torch.allclose(corners.mean(0), torch.tensor([10.0, 20.0]))
    sides = corners.roll(-1, 0) - corners
    assert torch.allclose(sides.norm(dim=-1), torch.full((4,), 4.0))
    assert torch.allclose(sides[0], 4 * torch.tensor([math.cos(math.pi / 6), math.sin(math.pi / 6)]))
    # y runs down, so clockwise as seen is a positive turn.
    assert float(sides[0, 0] * sides[1, 1] - sides[0, 1] * sides[1, 0]) > 0


def table(*boxes: tuple[int, int, int, int]) -> torch.Tensor:
    """A plain table with rectangles of noise on it: top, bottom, left and right of each."""
    generator = torch.Generator().manual_seed(0)
    seen = torch.full((3, 140, 220), 0.8) + 0.01 * torch.randn(3, 140, 220, generator=generator)
    for top, bottom, left, right in boxes:
        seen[:, top:bottom, left:right] = torch.rand(3, bottom - top, right - left, generator=generator) / 2
    return seen.clamp(0, 1)


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        ([], "no pieces found; lay separate square pieces"),
        ([(40, 80, 50, 90)], "only one piece found"),
        ([(30, 70, 20, 60), (30, 70, 80, 120), (30, 110, 145, 185)], "not equal squares"),
        ([(0, 140, 0, 220)], "no pieces found"),
    ],
)
def test_what_is_no_set_of_equal_squares_is_refused(boxes: list[tuple[int, int, int, int]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        find_squares(table(*boxes))


def test_a_smaller_one_and_one_at_the_edge_are_refused(photograph: Photograph) -> None:
    with pytest.raises(InputError, match="not equal squares: the one at"):
        find_squares(photograph(sides=[56] * 4 + [40] + [56] * 4, shadow=0.0).picture)
    with pytest.raises(InputError, match="cut off by the edge of the photo"):
        find_squares(photograph().picture[:, :, 50:])


def shrunk(pixels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.interpolate(pixels, (16, 16), mode="bilinear", antialias=True)


def nearest_turns(pieces: torch.Tensor, truth: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The quarter turn that brings each piece closest to its truth, and how far it then is."""
    count = len(pieces)
    turned = [turn_pixels(shrunk(pieces), torch.full((count,), by)) for by in range(4)]
    apart = torch.stack([(one - shrunk(truth)).abs().flatten(1).mean(1) for one in turned])
    return apart.argmin(0), apart.min(0).values


@pytest.mark.parametrize("size", [None, 20])
def test_pieces_show_what_was_laid(photograph: Photograph, size: int | None) -> None:
    photo = photograph()
    pieces, squares = cut_scattered(photo.picture, size)
    assert len(pieces) == len(squares) == 9
    assert pieces.size == size if size else 50 <= pieces.size <= 56
    assert nearest_turns(pieces.pixels, photo.puzzle.pixels)[1].max() < 0.05


def test_the_photo_of_a_puzzle_is_solved(photograph: Photograph) -> None:
    photo = photograph()
    pieces, _ = cut_scattered(photo.picture)
    turns, _ = nearest_turns(pieces.pixels, photo.puzzle.pixels)
    board = photo.puzzle.board
    cells, true_turns = board.snap(photo.puzzle.truth)
    puzzle = Puzzle(pieces, board, photo.puzzle.names)
    answer = board.snap(solve(puzzle).poses)
    assert direct_comparison_free(board, *answer, cells, (turns + true_turns) % 4) == 100


def tilted(angle: float, width: float, height: float) -> np.ndarray:
    y, x = np.mgrid[0:120, 0:120] + 0.5
    x, y = x - 60, y - 60
    u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    return (np.abs(u) < width / 2) & (np.abs(v) < height / 2)


@pytest.mark.parametrize("degrees", [-40, -12, 0, 3, 30])
@pytest.mark.parametrize("height", [50, 30])
def test_rectangles_are_measured_and_a_bite_does_not_count(degrees: float, height: float) -> None:
    mask = tilted(np.deg2rad(degrees), 50, height)
    square = smallest_rectangle(find_contours(mask, 0.5)[0][:, ::-1] + 0.5)
    assert square.centre == pytest.approx((60, 60), abs=0.5)
    assert np.rad2deg(square.angle) == pytest.approx(degrees, abs=1)
    assert sorted((square.width, square.height)) == pytest.approx([height, 50], abs=1)
    mask[56:62, 58:64] &= np.indices((6, 6)).sum(0) > 5
    bitten = smallest_rectangle(find_contours(mask, 0.5)[0][:, ::-1] + 0.5)
    assert (bitten.width, bitten.height) == pytest.approx((square.width, square.height), abs=1.5)


def test_shadows_do_not_count() -> None:
    colours = np.full((3, 100, 200), 0.8)
    random = np.random.default_rng(0)
    for left in (30, 120):
        # A soft shadow to the lower right, then the piece.
        for depth in range(8):
            colours[:, 34 : 72 + depth, left + 4 : left + 42 + depth] -= 0.02
        colours[:, 30:70, left : left + 40] = random.uniform(0, 0.5, (3, 40, 40))
    rough = [Rectangle((left + 24.0, 54.0), 0.0, 47.0, 47.0) for left in (30, 120)]
    found = sharpen(colours, rough)
    for square, left in zip(found, (30, 120), strict=True):
        assert np.abs(np.array(square.centre) - (left + 20, 50)).max() < 1
        assert abs(square.width - 40) < 1.5
