"""Augmented pictures are still pictures, and different ones."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diffassemble.core import Board
from diffassemble.training.pictures import mirror_and_relight, random_crop, uniform


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.floats(-5, 5), st.floats(0.1, 5), st.integers(0, 1000))
def test_uniform_numbers_stay_in_range(low: float, width: float, seed: int) -> None:
    assert low <= uniform(low, low + width, generator(seed)) < low + width


@given(st.integers(1, 12), st.integers(1, 12), st.integers(60, 90), st.integers(60, 90), st.integers(0, 1000))
def test_crops_have_the_shape_of_the_board_and_lie_inside(
    rows: int, cols: int, height: int, width: int, seed: int
) -> None:
    # Every pixel tells where it was, so a crop can be compared with its place.
    places = torch.stack([torch.arange(height)[:, None].expand(-1, width), torch.arange(width).expand(height, -1)])
    picture = torch.cat([places, places[:1]]).float()
    crop = random_crop(picture, Board(rows, cols), 0.75, generator(seed))
    largest = min(height / rows, width / cols)
    assert 0.75 * largest * rows - 1 <= crop.shape[1] <= largest * rows
    assert 0.75 * largest * cols - 1 <= crop.shape[2] <= largest * cols
    top, left = int(crop[0, 0, 0]), int(crop[1, 0, 0])
    assert torch.equal(crop, picture[:, top : top + crop.shape[1], left : left + crop.shape[2]])


def test_crops_reach_every_border() -> None:
    picture = torch.arange(40.0).expand(3, 40, -1)
    crops = [random_crop(picture, Board(2, 2), 0.9, generator(seed)) for seed in range(100)]
    assert min(float(crop.min()) for crop in crops) == 0
    assert max(float(crop.max()) for crop in crops) == 39


@pytest.mark.parametrize("strength", [0.0, 0.25, 1.0])
def test_other_light_gives_pictures_again(strength: float) -> None:
    picture = torch.rand(3, 8, 10, generator=generator())
    for seed in range(50):
        changed = mirror_and_relight(picture, strength, generator(seed))
        assert changed.shape == picture.shape
        assert 0 <= changed.min() <= changed.max() <= 1


def test_without_strength_only_mirror_images_and_grey_ones() -> None:
    picture = torch.rand(3, 8, 10, generator=generator())
    mirror, grey = picture.flip(-1), picture.mean(0, keepdim=True).expand(3, -1, -1)
    kinds = {"same": picture, "mirror": mirror, "grey": grey, "grey mirror": grey.flip(-1)}
    changed = [mirror_and_relight(picture, 0.0, generator(seed)) for seed in range(200)]
    found = [next(name for name, kind in kinds.items() if torch.allclose(kind, one)) for one in changed]
    assert set(found) == set(kinds)
    assert 60 < found.count("mirror") < 120
    assert found.count("grey") + found.count("grey mirror") < 40


def test_the_same_generator_gives_the_same_picture() -> None:
    picture = torch.rand(3, 8, 10, generator=generator())
    first, second = (mirror_and_relight(picture, 0.5, generator(3)) for _ in range(2))
    assert torch.equal(first, second)
