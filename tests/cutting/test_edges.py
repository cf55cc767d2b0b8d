"""Squares move from where a mask ended to where the picture has its edges."""

from __future__ import annotations

import numpy as np

from diffassemble.squares.photo import Square, sharpen


def test_shadows_do_not_count() -> None:
    colours = np.full((3, 100, 200), 0.8)
    random = np.random.default_rng(0)
    for left in (30, 120):
        # A soft shadow to the lower right, then the piece.
        for depth in range(8):
            colours[:, 34 : 72 + depth, left + 4 : left + 42 + depth] -= 0.02
        colours[:, 30:70, left : left + 40] = random.uniform(0, 0.5, (3, 40, 40))
    rough = [Square((left + 24.0, 54.0), 0.0, 47.0, 47.0, 0.9) for left in (30, 120)]
    found = sharpen(colours, rough)
    for square, left in zip(found, (30, 120), strict=True):
        assert np.abs(np.array(square.centre) - (left + 20, 50)).max() < 1
        assert abs(square.width - 40) < 1.5
