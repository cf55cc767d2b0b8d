"""Outlines of discs and boxes against what geometry says."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from diffassemble.core import InputError
from diffassemble.core.contours import middle, outline_pieces, perimeter, resample, signed_area, trace


def disc(size: int, radius: float, x: float, y: float) -> torch.Tensor:
    """A disc whose border is soft over a pixel."""
    at = torch.arange(size) + 0.5
    far = torch.hypot(at[None, :] - x, at[:, None] - y)
    return ((radius - far + 0.5).clamp(0, 1) * 255).round().to(torch.uint8)


def test_a_disc_is_traced_finer_than_pixels() -> None:
    curve = trace(disc(100, 31.3, 48.2, 51.7))
    assert np.abs(np.hypot(*(curve - [48.2, 51.7]).T) - 31.3).max() < 0.1
    assert signed_area(curve) == pytest.approx(math.pi * 31.3**2, rel=2e-3)
    assert perimeter(curve) == pytest.approx(2 * math.pi * 31.3, rel=5e-3)
    assert np.abs(middle(curve) - [48.2, 51.7]).max() < 0.02


def test_points_are_evenly_spaced_and_run_clockwise() -> None:
    curve = trace(disc(80, 20, 40, 40))
    steps = np.linalg.norm(np.roll(curve, -1, 0) - curve, axis=1)
    assert steps.std() < 0.05 * steps.mean()
    x, y = (curve[1] - curve[0], curve[0] - 40)
    assert x[0] * -y[1] + x[1] * y[0] > 0  # with y down, clockwise: the centre lies to the right of the way


def test_a_piece_that_fills_its_picture_has_the_picture_as_outline() -> None:
    pieces = outline_pieces([torch.full((4, 30, 50), 255, dtype=torch.uint8)])
    assert pieces.areas[0] == pytest.approx(30 * 50, rel=0.01)
    assert torch.allclose(pieces.origins[0], torch.tensor([25.0, 15.0]), atol=0.01)


def test_resampling_keeps_length_and_area() -> None:
    square = np.array([[0.0, 0.0], [10, 0], [10, 10], [0, 10]])
    fine = resample(square, 400)
    assert perimeter(fine) == pytest.approx(40)
    assert signed_area(fine) == pytest.approx(100)


def test_nothing_opaque_is_refused() -> None:
    with pytest.raises(InputError, match="nowhere opaque"):
        trace(torch.zeros(5, 5, dtype=torch.uint8))
