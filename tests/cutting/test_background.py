"""A smooth background is found under whatever lies on it."""

from __future__ import annotations

import numpy as np

from diffassemble.squares.photo import background_colours


def test_a_slope_under_pieces() -> None:
    y, x = np.mgrid[0:90, 0:120] / 100
    table = np.stack([0.8 - 0.2 * x, 0.7 - 0.1 * y, 0.6 + 0.1 * x * y])
    seen = table + np.random.default_rng(0).normal(0, 0.01, table.shape)
    seen[:, 30:60, 40:80] = 0.2
    found, noise = background_colours(seen)
    assert np.abs(found - table).max() < 0.02
    assert 0.005 < noise < 0.03
