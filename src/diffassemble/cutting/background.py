"""The plain background of a photograph: a smooth surface of colour, and the noise around it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float64

# Pixels used for fitting, at most; more change nothing.
_SAMPLE = 40_000
_ROUNDS = 12


def background_colours(
    colours: Float64[np.ndarray, "3 h w"],
) -> tuple[Float64[np.ndarray, "3 h w"], float]:
    """The background everywhere, also under the pieces, and its noise (standard deviation).

    A cubic surface is fitted to the rim of the picture, then to all pixels that are close to it, again and again:
    so the background grows from the rim inwards, and what lies on it stays out.
    """
    height, width = colours.shape[1:]
    step = max(1, round((height * width / _SAMPLE) ** 0.5))
    sample = colours[:, ::step, ::step]
    terms = _terms(*sample.shape[1:])
    close, noise = _rim(*sample.shape[1:]), 0.05
    weights = np.zeros((terms.shape[-1], 3))
    for _ in range(_ROUNDS):
        weights = np.linalg.lstsq(terms[close], sample[:, close].T, rcond=None)[0]
        apart = np.abs(sample - np.moveaxis(terms @ weights, -1, 0)).max(0)
        noise = float(np.clip(1.4826 * np.median(apart[close]), 0.004, 0.05))
        close = apart < 3.5 * noise
    return np.moveaxis(_terms(height, width) @ weights, -1, 0), noise


def _rim(height: int, width: int) -> Bool[np.ndarray, "h w"]:
    """The outermost part, which pieces rarely reach."""
    rim = np.ones((height, width), bool)
    deep = max(1, min(height, width) // 30)
    rim[deep:-deep, deep:-deep] = False
    return rim


def _terms(height: int, width: int) -> Float64[np.ndarray, "h w k"]:
    """All products of x and y up to the third degree."""
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    return np.stack([x**i * y**j for i in range(4) for j in range(4 - i)], -1)
