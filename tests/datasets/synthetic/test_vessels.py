"""Open vessels hold something: much of their hull is empty, and the emptiness opens upwards."""

from collections.abc import Callable

import pytest
import torch
from manifold3d import Manifold

from diffassemble.fragments.shapes import vessels
from diffassemble.fragments.shapes.tools import Dice
from diffassemble.fragments.solids import bounds


def drawn(build: Callable[[Dice], Manifold], count: int = 3) -> list[Manifold]:
    return [build(Dice(torch.Generator().manual_seed(seed))) for seed in range(count)]


@pytest.mark.parametrize(
    "build",
    [vessels.bowl, vessels.cup, vessels.drinking_utensil, vessels.plate, vessels.vase, vessels.wine_glass],
)
def test_one_body_without_cavities(build: Callable[[Dice], Manifold]) -> None:
    assert all(len(solid.decompose()) == 1 for solid in drawn(build))


def test_bowls_are_hollow_from_above() -> None:
    for solid in drawn(vessels.bowl):
        low, high = bounds(solid)
        middle = (low + high)[1] / 2
        column = Manifold.cube((0.02, high[1] - middle + 1, 0.02)).translate((0, middle, 0))
        assert (solid ^ column).volume() == pytest.approx(0, abs=1e-9)
        assert solid.volume() < 0.6 * solid.hull().volume()


def test_plates_are_flat_and_glasses_tall() -> None:
    for solid in drawn(vessels.plate):
        low, high = bounds(solid)
        assert (high - low)[1] < 0.4 * (high - low)[0]
    for solid in drawn(vessels.wine_glass):
        low, high = bounds(solid)
        assert (high - low)[1] > 1.5 * (high - low)[0]
