"""Cookies lie flat, rings have a hole, mirrors stand, spoons are long."""

from collections.abc import Callable

import numpy as np
import torch
from manifold3d import Manifold

from diffassemble.fragments.shapes import figures as flat
from diffassemble.fragments.shapes.tools import Dice
from diffassemble.fragments.solids import bounds


def sides(build: Callable[[Dice], Manifold]) -> list[np.ndarray]:
    """Extents of a few solids, each checked to be one body."""
    solids = [build(Dice(torch.Generator().manual_seed(seed))) for seed in range(3)]
    assert all(len(solid.decompose()) == 1 for solid in solids)
    return [high - low for low, high in map(bounds, solids)]


def test_cookies_lie_flat() -> None:
    assert all(side[1] < 0.5 * side[0] for side in sides(flat.cookie))


def test_mirrors_stand_and_are_thin() -> None:
    assert all(side[1] > side[2] for side in sides(flat.mirror))


def test_spoons_lie_along_z() -> None:
    assert all(side[2] > 2 * max(side[0], side[1]) for side in sides(flat.spoon))


def test_rings_have_one_hole() -> None:
    for seed in range(3):
        solid = flat.ring(Dice(torch.Generator().manual_seed(seed)))
        assert solid.genus() == 1
        low, high = bounds(solid)
        assert (high - low)[1] > (high - low)[2]
