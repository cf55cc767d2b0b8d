"""Colours that tell fragments apart."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Float64

# A golden step round the circle never comes near an earlier hue soon; lightness changes along, so that hues which do
# come near, or look alike to some eyes, still differ. Start and levels keep the first eight far apart for all eyes.
_FIRST_HUE = 0.184
_HUE_STEP = (5**0.5 - 1) / 2
_LIGHTNESS = (0.68, 0.57, 0.80, 0.51, 0.62, 0.74, 0.855)
_CHROMA = 0.117

# Oklab (Ottosson 2020): cube roots of cone responses, and linear sRGB from them.
_CONES_FROM_LAB = np.array(
    [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480]]
)
_LINEAR_FROM_CONES = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def fragment_colours(count: int) -> Float32[np.ndarray, "n 3"]:
    """A colour (sRGB, 0…1) for each of `count` fragments; the first ones stay the same when more are asked for."""
    order = np.arange(count)
    hue = 2 * np.pi * (_FIRST_HUE + order * _HUE_STEP)
    lightness = np.array(_LIGHTNESS)[order % len(_LIGHTNESS)]
    lab = np.stack([lightness, _CHROMA * np.cos(hue), _CHROMA * np.sin(hue)], -1)
    linear = (lab @ _CONES_FROM_LAB.T) ** 3 @ _LINEAR_FROM_CONES.T
    return to_srgb(linear.clip(0, 1)).astype(np.float32)


def to_srgb(linear: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """Amounts of light (0…1) as screens and files count them."""
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def to_linear(srgb: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """The amounts of light (0…1) behind the numbers of screens and files."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
