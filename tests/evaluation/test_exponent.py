"""Exponents of costs that grow by a known power."""

from __future__ import annotations

import pytest

from diffassemble.evaluation.exponent import exponent


@pytest.mark.parametrize("power", [0.0, 1.0, 1.3, 2.0])
def test_the_power_is_found_whatever_small_puzzles_cost(power: float) -> None:
    sizes = [36, 400, 900, 2500, 10_000]
    costs = [99.0, *(0.3 * size**power for size in sizes[1:])]
    assert exponent(sizes, costs) == pytest.approx(power)


def test_one_size_tells_nothing() -> None:
    assert exponent([36, 144, 900, 900], [1.0, 2.0, 3.0, 4.0]) is None
    assert exponent([], []) is None
