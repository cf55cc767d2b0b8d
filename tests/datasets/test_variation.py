"""A varied picture stands as upright as the given one, and nothing about the variation itself tells which way is up."""

from __future__ import annotations

import torch
from torch import Tensor

from diffassemble.training.pictures import UNKNOWN, Variation, tilted_crops, vary, with_holes

STRONG = Variation(smallest_crop=0.7, tilt=6.0, light=0.3, holed_share=1.0)
NONE = Variation(smallest_crop=1.0, tilt=0.0, light=0.0, holed_share=0.0)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def bright_above(count: int) -> Tensor:
    return torch.linspace(0.9, 0.1, 48)[:, None].expand(count, 3, 48, 48).contiguous()


def test_colours_stay_colours_and_the_seed_decides() -> None:
    pictures = torch.rand(8, 3, 40, 40, generator=generator())
    varied = vary(pictures, 24, STRONG, generator(1))
    assert varied.shape == (8, 3, 24, 24)
    assert varied.min() >= 0
    assert varied.max() <= 1
    assert torch.equal(varied, vary(pictures, 24, STRONG, generator(1)))
    assert not torch.equal(varied, vary(pictures, 24, STRONG, generator(2)))


def test_above_stays_above() -> None:
    crops = tilted_crops(bright_above(64), 24, STRONG, generator())
    assert (crops[:, :, :12].mean((1, 2, 3)) > crops[:, :, 12:].mean((1, 2, 3)) + 0.1).all()


def test_half_are_mirrored() -> None:
    picture = torch.linspace(0.9, 0.1, 48).expand(400, 3, 48, 48).contiguous()
    crops = tilted_crops(picture, 24, NONE, generator())
    mirrored = crops[..., :12].mean((1, 2, 3)) < crops[..., 12:].mean((1, 2, 3))
    assert 150 < mirrored.sum() < 250


def test_holes_tell_nothing_about_the_turn() -> None:
    """Where cells may begin and end is the same after a quarter turn, for every number of cells."""
    holed = with_holes(torch.zeros(512, 3, 48, 48), 1.0, generator())
    borders = (holed[:, 0].diff(dim=1) != 0).any(2).any(0)
    assert borders.any()
    assert torch.equal(borders, borders.flip(0))
    assert torch.equal(borders, (holed[:, 0].diff(dim=2) != 0).any(1).any(0))


def test_holes_take_the_asked_share() -> None:
    holed = with_holes(torch.zeros(400, 3, 48, 48), 0.25, generator())
    share = (holed == UNKNOWN).flatten(1).any(1).float().mean()
    assert 0.18 < share < 0.32
    assert set(holed.unique().tolist()) == {0.0, UNKNOWN}
    assert not with_holes(torch.zeros(8, 3, 48, 48), 0.0, generator()).any()


def test_between_two_variations() -> None:
    assert NONE.towards(STRONG, 0.0) == NONE
    assert NONE.towards(STRONG, 1.0).tilt == STRONG.tilt
    assert NONE.towards(STRONG, 0.5).tilt == 3.0
