"""How much of each pixel an outline covers, exactly: the soft alpha of a piece."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float
from numba import njit


def coverage(curve: Float[np.ndarray, "c 2"], height: int, width: int) -> Float[np.ndarray, "{height} {width}"]:
    """The share of every pixel that lies inside a closed curve, which runs clockwise as seen and within the picture.

    Outlines that share a border share out its pixels: their shares add up to 1.
    """
    amount = np.zeros((height, width + 1))
    _add_edges(np.ascontiguousarray(curve, dtype=np.float64), amount)
    return amount.cumsum(1)[:, :-1]


@njit(cache=True, nogil=True)
@no_type_check
def _add_edges(curve, amount):
    """Add what each edge covers to its right, row by row; summed up along the rows that is the coverage.

    Upward edges have the inside to their right, downward ones the outside. In the pixels that an edge crosses, it
    covers what lies to its right there; in all further ones, its height.
    """
    for index in range(len(curve)):
        x0, y0 = curve[index, 0], curve[index, 1]
        following = index + 1 if index + 1 < len(curve) else 0
        x1, y1 = curve[following, 0], curve[following, 1]
        if y0 == y1:
            continue
        sign = 1.0
        if y0 < y1:
            sign = -1.0
        else:
            x0, y0, x1, y1 = x1, y1, x0, y0
        slope = (x1 - x0) / (y1 - y0)
        row = int(np.floor(y0))
        while row < y1 and row < len(amount):
            top = y0 if y0 > row else float(row)
            bottom = y1 if y1 < row + 1 else float(row + 1)
            left, right = x0 + (top - y0) * slope, x0 + (bottom - y0) * slope
            if left > right:
                left, right = right, left
            column = int(np.floor(left))
            while True:
                begin = left if left > column else float(column)
                end = right if right < column + 1 else float(column + 1)
                share = sign * (bottom - top)
                if right > left:
                    share *= (end - begin) / (right - left)
                beyond = (begin + end) / 2 - column
                amount[row, column] += share * (1 - beyond)
                amount[row, column + 1] += share * beyond
                column += 1
                if column >= right or column + 1 >= amount.shape[1]:
                    break
            row += 1
