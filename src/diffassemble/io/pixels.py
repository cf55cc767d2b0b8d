"""Loops over the pixels of photographs that numba compiles: CIE Lab, how fast colours change, means around pixels.

Colours are sRGB levels in [0, 1] as planes (3, h, w). Type checkers are kept away, as in `assembly/forest.py`.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Float, Float32
from numba import njit

# sRGB to XYZ, of which each row is divided by that of white (D65).
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_TO_XYZ = (_TO_XYZ / _TO_XYZ.sum(1, keepdims=True)).astype(np.float32)
# Both curves of Lab as tables: levels to light, and light, in finer steps, to what is seen.
_LEVELS, _LIGHT = np.linspace(0, 1, 4097), np.linspace(0, 1, 32769)
_LINEAR = np.where(_LEVELS <= 0.04045, _LEVELS / 12.92, ((_LEVELS + 0.055) / 1.055) ** 2.4).astype(np.float32)
_SEEN = np.where(_LIGHT > 0.008856, np.cbrt(_LIGHT), 7.787 * _LIGHT + 16 / 116).astype(np.float32)
# A bell of standard deviation 0.8, in pixels: its middle and one side.
_BELL = np.exp(-0.5 * (np.arange(4) / 0.8) ** 2)
_BELL = (_BELL / (2 * _BELL.sum() - _BELL[0])).astype(np.float32)


def to_lab(colours: Float[np.ndarray, "3 h w"]) -> Float32[np.ndarray, "3 h w"]:
    """CIE Lab of sRGB colours, to a hundredth of what can be seen."""
    return _lab(colours.astype(np.float32), _TO_XYZ, _LINEAR, _SEEN)


def smoothed(colours: Float[np.ndarray, "3 h w"]) -> Float32[np.ndarray, "3 h w"]:
    """The least noise smoothed away: by a bell of 0.8 pixels; beyond the edge colours are mirrored."""
    padded = np.pad(colours.astype(np.float32), ((0, 0), (3, 3), (3, 3)), "symmetric")
    height, width = colours.shape[1:]
    down = _BELL[0] * padded[:, 3 : 3 + height]
    for off in range(1, 4):
        down += _BELL[off] * (padded[:, 3 - off : 3 - off + height] + padded[:, 3 + off : 3 + off + height])
    found = _BELL[0] * down[:, :, 3 : 3 + width]
    for off in range(1, 4):
        found += _BELL[off] * (down[:, :, 3 - off : 3 - off + width] + down[:, :, 3 + off : 3 + off + width])
    return found


def slope(lab: Float32[np.ndarray, "3 h w"]) -> Float32[np.ndarray, "h w"]:
    """How fast colours change, a pixel: Sobel's operator, over all channels and both directions."""
    return _slope(lab)


def apart_and_tint(
    own: Float32[np.ndarray, "3 h w"], ground: Float32[np.ndarray, "3 h w"]
) -> tuple[Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w"]]:
    """How far colours are from those below, in Lab; and how far from those below in less light, if they are darker.

    Where light is taken away, colours fade in the same measure. What is not darker has an infinite tint.
    """
    return _apart_and_tint(own, ground)


def mean_around(
    levels: Float32[np.ndarray, "h w"], chosen: Bool[np.ndarray, "h w"], reach: int
) -> Float32[np.ndarray, "h w"]:
    """The mean of the chosen pixels in a square around each; not a number where there are none."""
    return _mean_around(levels, chosen, reach)


@njit(cache=True, nogil=True)
@no_type_check
def _lab(colours, matrix, linear, seen):
    _, rows, columns = colours.shape
    found = np.empty((3, rows, columns), np.float32)
    for row in range(rows):
        for column in range(columns):
            x, y, z = np.float32(0.5), np.float32(0.5), np.float32(0.5)  # half a step: the nearest entry
            for channel in range(3):
                level = min(max(colours[channel, row, column], np.float32(0)), np.float32(1))
                amount = linear[int(level * np.float32(4096) + np.float32(0.5))] * np.float32(32768)
                x += matrix[0, channel] * amount
                y += matrix[1, channel] * amount
                z += matrix[2, channel] * amount
            x, y, z = seen[min(int(x), 32768)], seen[min(int(y), 32768)], seen[min(int(z), 32768)]
            found[0, row, column] = np.float32(116) * y - np.float32(16)
            found[1, row, column] = np.float32(500) * (x - y)
            found[2, row, column] = np.float32(200) * (y - z)
    return found


@njit(cache=True, nogil=True)
@no_type_check
def _apart_and_tint(own, ground):
    _, rows, columns = own.shape
    apart, tint = np.empty((rows, columns), np.float32), np.empty((rows, columns), np.float32)
    for row in range(rows):
        for column in range(columns):
            light, a, b = own[0, row, column], own[1, row, column], own[2, row, column]
            below, under_a, under_b = ground[0, row, column], ground[1, row, column], ground[2, row, column]
            apart[row, column] = np.sqrt((light - below) ** 2 + (a - under_a) ** 2 + (b - under_b) ** 2)
            fade = min(max(light / max(below, np.float32(1)), np.float32(0)), np.float32(1))
            tint[row, column] = np.sqrt((a - fade * under_a) ** 2 + (b - fade * under_b) ** 2)
            if light >= below:
                tint[row, column] = np.inf
    return apart, tint


@njit(cache=True, nogil=True)
@no_type_check
def _slope(lab):
    _, rows, columns = lab.shape
    found = np.empty((rows, columns), np.float32)
    for row in range(rows):
        up, low = max(row - 1, 0), min(row + 1, rows - 1)
        for column in range(columns):
            left, right = max(column - 1, 0), min(column + 1, columns - 1)
            total = np.float32(0)
            for channel in range(3):
                plane = lab[channel]
                slanting, other = plane[low, right] - plane[up, left], plane[low, left] - plane[up, right]
                across = slanting - other + np.float32(2) * (plane[row, right] - plane[row, left])
                down = slanting + other + np.float32(2) * (plane[low, column] - plane[up, column])
                total += across * across + down * down
            found[row, column] = np.sqrt(total) * np.float32(0.125)
    return found


@njit(cache=True, nogil=True)
@no_type_check
def _mean_around(levels, chosen, reach):
    rows, columns = levels.shape
    found = np.empty((rows, columns), np.float32)
    # Sums over the rows around, for each column: one comes, one goes.
    total, count = np.zeros(columns), np.zeros(columns, np.int64)
    for row in range(-reach, rows):
        for column in range(columns):
            if row + reach < rows and chosen[row + reach, column]:
                total[column] += levels[row + reach, column]
                count[column] += 1
            if row - reach - 1 >= 0 and chosen[row - reach - 1, column]:
                total[column] -= levels[row - reach - 1, column]
                count[column] -= 1
        if row < 0:
            continue
        height, number = 0.0, 0
        for column in range(-reach, columns):
            if column + reach < columns:
                height += total[column + reach]
                number += count[column + reach]
            if column - reach - 1 >= 0:
                height -= total[column - reach - 1]
                number -= count[column - reach - 1]
            if column >= 0:
                found[row, column] = height / number if number > 0 else np.nan
    return found
