"""sRGB levels and the amounts of light behind them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

Colour = tuple[int, int, int]


def to_linear(srgb: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """The amounts of light (0…1) behind the numbers of screens and files."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def to_srgb(linear: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """Amounts of light (0…1) as screens and files count them."""
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
