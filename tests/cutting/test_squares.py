"""Rectangles in masks are measured to a fraction of a pixel, bites or not."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.squares.photo import fit_square


def tilted(angle: float, width: float, height: float) -> np.ndarray:
    y, x = np.mgrid[0:120, 0:120] + 0.5
    x, y = x - 60, y - 60
    u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    return (np.abs(u) < width / 2) & (np.abs(v) < height / 2)


@pytest.mark.parametrize("degrees", [-40, -12, 0, 3, 30])
def test_squares(degrees: float) -> None:
    square = fit_square(tilted(np.deg2rad(degrees), 50, 50), (7, 3))
    assert square.centre == pytest.approx((63, 67), abs=0.5)
    assert np.rad2deg(square.angle) == pytest.approx(degrees, abs=1)
    assert (square.width, square.height) == pytest.approx((50, 50), abs=1)
    assert square.filled > 0.95
    assert not square.touches((130, 130))
    assert square.touches((90, 130))


def test_a_bite_does_not_count() -> None:
    mask = tilted(np.deg2rad(20), 50, 50)
    mask[40:46, 40:50] = False
    square = fit_square(mask, (0, 0))
    assert (square.width, square.height) == pytest.approx((50, 50), abs=1.5)


def test_other_rectangles_are_told() -> None:
    square = fit_square(tilted(0.1, 60, 30), (0, 0))
    assert sorted((square.width, square.height)) == pytest.approx([30, 60], abs=1)
