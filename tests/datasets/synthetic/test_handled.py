"""A handle is a hole to put a finger through, on the side of +x."""

from collections.abc import Callable

import pytest
import torch
from manifold3d import Manifold

from diffassemble.fragments.shapes import vessels as handled
from diffassemble.fragments.shapes.tools import Dice
from diffassemble.fragments.solids import bounds


@pytest.mark.parametrize("build", [handled.mug, handled.teacup])
def test_handles_have_a_hole(build: Callable[[Dice], Manifold]) -> None:
    for seed in range(3):
        solid = build(Dice(torch.Generator().manual_seed(seed)))
        assert len(solid.decompose()) == 1
        assert solid.genus() == 1


def test_teapots_reach_out_on_both_sides() -> None:
    for seed in range(3):
        solid = handled.teapot(Dice(torch.Generator().manual_seed(seed)))
        low, high = bounds(solid)
        assert high[0] > 1.2 * high[2]
        assert low[0] < 1.2 * low[2]
        assert solid.genus() >= 1
