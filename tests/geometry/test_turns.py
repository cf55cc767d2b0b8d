"""Quarter turns of pixels and of points are the same turns."""

from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffassemble.core import nearest_turn, turn_matrix, turn_pixels

turns = st.integers(-9, 9)


@settings(deadline=None)
@given(st.integers(1, 7), st.data())
def test_a_marked_pixel_moves_where_the_matrix_says(size: int, data: st.DataObject) -> None:
    row, col = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    turn = torch.tensor([data.draw(turns)])
    picture = torch.zeros(1, 1, size, size)
    picture[0, 0, row, col] = 1
    middle = (size - 1) / 2
    x, y = (turn_matrix(turn)[0] @ torch.tensor([col - middle, row - middle]) + middle).tolist()
    turned = turn_pixels(picture, turn)
    assert turned.sum() == 1
    assert turned[0, 0, round(y), round(x)] == 1


def test_a_positive_turn_is_clockwise_as_seen() -> None:
    picture = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    assert turn_pixels(picture, torch.tensor([1])).flatten().tolist() == [3, 1, 4, 2]
    # x to the right, y down: what points to the right then points down.
    assert (turn_matrix(torch.tensor(1)) @ torch.tensor([1.0, 0.0])).tolist() == [0, 1]


@settings(deadline=None)
@given(turns, turns)
def test_turns_add(first: int, second: int) -> None:
    matrices = turn_matrix(torch.tensor([first, second, first + second]))
    assert torch.equal(matrices[0] @ matrices[1], matrices[2])
    picture = torch.rand(1, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    one_by_one = turn_pixels(turn_pixels(picture, torch.tensor([first])), torch.tensor([second]))
    assert torch.equal(one_by_one, turn_pixels(picture, torch.tensor([first + second])))


def test_every_picture_has_its_own_turn_and_the_given_ones_stay() -> None:
    pictures = torch.rand(9, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    kept, own = pictures.clone(), torch.arange(-4, 5)
    together = turn_pixels(pictures, own)
    for picture, turn, turned in zip(pictures, own, together, strict=True):
        assert torch.equal(turn_pixels(picture[None], turn[None])[0], turned)
    assert torch.equal(pictures, kept)


@settings(deadline=None)
@given(turns, st.floats(-0.78, 0.78), st.floats(1e-3, 1e3))
def test_the_nearest_turn_of_any_angle_within_45_degrees_at_any_scale(turn: int, off: float, scale: float) -> None:
    angle = turn * math.pi / 2 + off
    rotation = scale * torch.tensor([[[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]])
    assert nearest_turn(rotation).tolist() == [turn % 4]


def test_the_nearest_turn_has_the_smallest_distance_even_for_noisy_matrices() -> None:
    noisy = torch.randn(500, 2, 2, generator=torch.Generator().manual_seed(0))
    distance = (noisy[:, None] - turn_matrix(torch.arange(4))).square().sum((-1, -2))
    assert torch.equal(nearest_turn(noisy), distance.argmin(1))
