"""Triangles become pixels, the nearer hiding the farther: a loop that numba compiles.

Type checkers are kept away from it: they would wrap the function, and then numba couldn't compile it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Float32, Int32, Int64
from numba import njit

NOTHING = -1
# Rounding must not open gaps between triangles that share an edge.
_TOUCH = 1e-9


@dataclass(frozen=True)
class Layers:
    """What each pixel shows: whose surface (`NOTHING` for none), how near (1/distance, 0 for none), facing where."""

    owner: Int32[np.ndarray, "h w"]
    nearness: Float32[np.ndarray, "h w"]
    normal: Float32[np.ndarray, "h w 3"]


def rasterise(
    corners: Float32[np.ndarray, "f 3 3"],
    normals: Float32[np.ndarray, "f 3 3"],
    owner: Int64[np.ndarray, "f"],
    size: tuple[int, int],
) -> Layers:
    """The pixels of a picture of `size` (width, height) whose centres triangles cover.

    Corners are (x, y, nearness) with x to the right and y down, in pixels from the upper left corner of the picture;
    they run counter-clockwise as seen from outside. Both sides of a triangle are seen, and the normals of inner sides
    are turned round. Triangles without area, or with corners that aren't numbers, cover nothing.
    """
    width, height = size
    layers = Layers(
        np.full((height, width), NOTHING, np.int32),
        np.zeros((height, width), np.float32),
        np.zeros((height, width, 3), np.float32),
    )
    _fill(corners, normals, owner, layers.owner, layers.nearness, layers.normal)
    return layers


@njit(cache=True)
@no_type_check
def _fill(corners, normals, owner, shown, nearness, normal):
    height, width = shown.shape
    for index in range(len(corners)):
        ax, ay, aw = corners[index, 0]
        bx, by, bw = corners[index, 1]
        cx, cy, cw = corners[index, 2]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if not math.isfinite(area) or area == 0:
            continue
        outside = -1.0 if area > 0 else 1.0
        left = max(math.ceil(max(min(ax, bx, cx), 0.0) - 0.5), 0)
        right = min(math.floor(min(max(ax, bx, cx), float(width)) - 0.5), width - 1)
        top = max(math.ceil(max(min(ay, by, cy), 0.0) - 0.5), 0)
        bottom = min(math.floor(min(max(ay, by, cy), float(height)) - 0.5), height - 1)
        for row in range(top, bottom + 1):
            y = row + 0.5
            for column in range(left, right + 1):
                x = column + 0.5
                first = ((bx - x) * (cy - y) - (by - y) * (cx - x)) / area
                second = ((cx - x) * (ay - y) - (cy - y) * (ax - x)) / area
                third = 1 - first - second
                if first < -_TOUCH or second < -_TOUCH or third < -_TOUCH:
                    continue
                near = first * aw + second * bw + third * cw
                if near <= nearness[row, column]:
                    continue
                nearness[row, column] = near
                shown[row, column] = owner[index]
                for axis in range(3):
                    normal[row, column, axis] = outside * (
                        first * normals[index, 0, axis]
                        + second * normals[index, 1, axis]
                        + third * normals[index, 2, axis]
                    )
