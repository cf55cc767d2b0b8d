"""Bottles are round, stand upright and are taller than wide; some are empty."""

from collections.abc import Callable

import pytest
import torch
from manifold3d import Manifold

from diffassemble.fragments.shapes import vessels as bottles
from diffassemble.fragments.shapes.tools import Dice
from diffassemble.fragments.solids import bounds


@pytest.mark.parametrize(
    "build",
    [bottles.beer_bottle, bottles.wine_bottle, bottles.bottle, bottles.drink_bottle, bottles.pill_bottle],
)
def test_tall_and_in_one_body(build: Callable[[Dice], Manifold]) -> None:
    for seed in range(3):
        solid = build(Dice(torch.Generator().manual_seed(seed)))
        low, high = bounds(solid)
        assert (high - low)[1] == (high - low).max()
        assert len(solid.decompose()) == 1


def test_some_are_empty() -> None:
    solids = [bottles.beer_bottle(Dice(torch.Generator().manual_seed(seed))) for seed in range(12)]
    filled = [solid.volume() / solid.hull().volume() for solid in solids]
    assert min(filled) < 0.45
    assert max(filled) > 0.7
