"""Rectangles laid out in rows, as pieces are on a table."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def shelves(sizes: Float[np.ndarray, "n 2"], width_to_depth: float = 1.0) -> Float[np.ndarray, "n 2"]:
    """Middles of rectangles that stand in centred rows, deep ones first, at the row length that fills a table best."""
    total = float(np.prod(sizes, 1).sum())
    longest = float(sizes[:, 0].max())
    lengths = np.maximum(longest, np.sqrt(total * width_to_depth) * np.linspace(0.8, 2.0, 25))
    layouts = [_rows(sizes, float(length)) for length in lengths]
    return min(layouts, key=lambda layout: max(layout[1], width_to_depth * layout[2]))[0]


def _rows(sizes: Float[np.ndarray, "n 2"], length: float) -> tuple[Float[np.ndarray, "n 2"], float, float]:
    """Middles of rectangles in rows no longer than `length`, and the width and depth of it all."""
    rows: list[list[int]] = [[]]
    for index in np.argsort(-sizes[:, 1], kind="stable").tolist():
        if rows[-1] and sizes[rows[-1], 0].sum() + sizes[index, 0] > length + 1e-9:
            rows.append([])
        rows[-1].append(index)
    middles, depth, widest = np.zeros_like(sizes), 0.0, 0.0
    for row in rows:
        ends, deepest = sizes[row, 0].cumsum(), float(sizes[row, 1].max())
        middles[row, 0] = ends - sizes[row, 0] / 2 - ends[-1] / 2
        middles[row, 1] = depth + deepest / 2
        depth, widest = depth + deepest, max(widest, float(ends[-1]))
    middles[:, 1] -= depth / 2
    return middles, widest, depth
