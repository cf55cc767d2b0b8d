"""Squares are found where they were laid, to a pixel and a degree, and nothing else is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from diffassemble.core import InputError
from diffassemble.squares.photo import Squares, find_squares

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
    angle = photo.angles[apart.argmin(1)]
    assert ((squares.angles.rad2deg() - angle + 45) % 90 - 45).abs().max() < 1.5


def test_reading_order(photograph: Photograph) -> None:
    photo = photograph()
    nearest = torch.cdist(find_squares(photo.picture).centres, photo.centres).argmin(1)
    assert nearest.tolist() == list(range(9))


def test_corners_run_clockwise_around_the_centre() -> None:
    squares = Squares(torch.tensor([[10.0, 20.0]]), torch.tensor([math.pi / 6]), 4.0)
    corners = squares.corners()[0]
    assert torch.allclose(corners.mean(0), torch.tensor([10.0, 20.0]))
    sides = corners.roll(-1, 0) - corners
    assert torch.allclose(sides.norm(dim=-1), torch.full((4,), 4.0))
    assert torch.allclose(sides[0], 4 * torch.tensor([math.cos(math.pi / 6), math.sin(math.pi / 6)]))
    # y runs down, so clockwise as seen is a positive turn.
    assert float(sides[0, 0] * sides[1, 1] - sides[0, 1] * sides[1, 0]) > 0


def test_an_empty_table(photograph: Photograph) -> None:
    table = torch.full((3, 120, 160), 0.7) + 0.01 * torch.randn(3, 120, 160, generator=torch.Generator().manual_seed(0))
    with pytest.raises(InputError, match="no pieces found; lay separate square pieces"):
        find_squares(table.clamp(0, 1))


def test_one_piece_is_too_few() -> None:
    table = torch.full((3, 120, 160), 0.7)
    table[:, 40:80, 50:90] = torch.rand(3, 40, 40, generator=torch.Generator().manual_seed(0))
    with pytest.raises(InputError, match="only one piece found"):
        find_squares(table)


def test_a_smaller_one_among_equals(photograph: Photograph) -> None:
    with pytest.raises(InputError, match="not equal squares: the one at"):
        find_squares(photograph(sides=[56] * 4 + [40] + [56] * 4, shadow=0.0).picture)


def test_one_that_is_no_square() -> None:
    table = torch.full((3, 140, 220), 0.8)
    generator = torch.Generator().manual_seed(0)
    for left in (20, 80):
        table[:, 30:70, left : left + 40] = torch.rand(3, 40, 40, generator=generator) / 2
    table[:, 30:110, 145:185] = torch.rand(3, 80, 40, generator=generator) / 2
    with pytest.raises(InputError, match="not equal squares"):
        find_squares(table)


def test_one_at_the_edge(photograph: Photograph) -> None:
    photo = photograph()
    with pytest.raises(InputError, match="cut off by the edge of the photo"):
        find_squares(photo.picture[:, :, 50:])


def test_a_picture_that_is_no_photo_of_pieces() -> None:
    with pytest.raises(InputError, match="pieces found"):
        find_squares(torch.rand(3, 100, 100, generator=torch.Generator().manual_seed(0)))
