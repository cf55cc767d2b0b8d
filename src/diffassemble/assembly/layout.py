"""One layout of boxes in rows, in the plane or in space: of pieces on a table, and of parts beside each other.

A box is its least and greatest corner. Rows run along the first axis; the next row follows along the axis `down`.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float


def in_rows(
    low: Float[np.ndarray, "n d"],
    high: Float[np.ndarray, "n d"],
    start: tuple[float, float] = (0.0, 0.0),
    gap: float = 0.0,
    length: float = math.inf,
    down: int = 1,
) -> Float[np.ndarray, "n d"]:
    """Shifts that lay boxes in rows, in the order given, none over another.

    Arguments:
        low, high: least and greatest corner of each box.
        start: where the first box begins along the first axis and along `down`.
        gap: room between boxes and between rows.
        length: a row ends before the box that would make it longer; without it there is one row.
        down: the axis along which the next row follows, by the deepest box of the row; along any other axis boxes are
            centred about 0.

    Example:
        >>> low + in_rows(low, high, gap=0.1)   # the least corners in one row
    """
    shift = -(low + high) / 2
    x, y, deepest = *start, 0.0
    for box, (wide, deep) in enumerate((high - low)[:, [0, down]].tolist()):
        if x > start[0] and x + wide > start[0] + length:
            x, y, deepest = start[0], y + deepest + gap, 0.0
        shift[box, [0, down]] = np.array([x, y]) - low[box, [0, down]]
        x, deepest = x + wide + gap, max(deepest, deep)
    return shift


def on_table(
    low: Float[np.ndarray, "n d"], high: Float[np.ndarray, "n d"], gap: float, aspect: float = 1.0, down: int = 1
) -> Float[np.ndarray, "n d"]:
    """Shifts that lay boxes in centred rows about the origin, deep ones first, on a table `aspect` times as wide as
    deep: of 25 lengths of a row the one that fills such a table best. Along other axes boxes keep their places."""
    sizes = (high - low)[:, [0, down]] + gap
    order = np.argsort(-sizes[:, 1], kind="stable")
    total, nothing = float(np.prod(sizes, 1).sum()), np.zeros_like(sizes)
    best, shift = math.inf, np.zeros_like(low)
    for share in np.linspace(0.8, 2.0, 25):
        length = max(float(sizes[:, 0].max()), math.sqrt(total * aspect) * share)
        corners = np.empty_like(sizes)
        corners[order] = in_rows(nothing, sizes[order], length=length + 1e-9)
        rows = [corners[:, 1] == row for row in np.unique(corners[:, 1])]
        widths = [float((corners + sizes)[row, 0].max()) for row in rows]
        depth = float((corners + sizes)[:, 1].max())
        if (needed := max(*widths, aspect * depth)) < best:
            best, middles = needed, corners + sizes / 2
            for row, width in zip(rows, widths, strict=True):
                middles[row, 0] -= width / 2
                middles[row, 1] = corners[row, 1] + sizes[row, 1].max() / 2 - depth / 2
            shift[:, [0, down]] = middles - ((low + high) / 2)[:, [0, down]]
    return shift
