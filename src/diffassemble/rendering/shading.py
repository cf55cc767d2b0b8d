"""Light on what a camera sees: loops over pixels that numba compiles.

Everything lies before the eye: x to the right, y down, z away. A pixel at (x, y) shows what lies in direction
((x − middle) / focal, 1). Type checkers are kept away from the loops: they would wrap them, and then numba couldn't
compile them.
"""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np
from numba import njit

# From the upper left, before the object; and a weak one from the right, to brighten its shadow.
KEY_LIGHT = np.array([-0.46, -0.78, -0.62]) / np.linalg.norm([-0.46, -0.78, -0.62])
FILL_LIGHT = np.array([0.85, -0.1, -0.5]) / np.linalg.norm([0.85, -0.1, -0.5])
_KEY, _FILL, _SKY, _FLOOR = 0.74, 0.20, 0.46, 0.26
_GLOSS, _SHINE = 0.10, 36
_LINE = 0.62

# Points spread evenly over a disc of radius 1, along a spiral; turned otherwise for each pixel of a tile, so that the
# mean over a tile knows many more.
TILE = 4
_SAMPLES = 12
_ANGLE = np.arange(_SAMPLES) * np.pi * (3 - np.sqrt(5)) + np.arange(TILE * TILE)[:, None] * 2 * np.pi * (5**0.5 - 1) / 2
_DISC = np.sqrt((np.arange(_SAMPLES) + 0.5) / _SAMPLES)[:, None] * np.stack([np.cos(_ANGLE), np.sin(_ANGLE)], -1)


@njit(cache=True)
@no_type_check
def lay_ground(nearness, normal, focal, middle_x, middle_y, up, height):
    """Fill pixels that show nothing with the plane up·p = height, as far as it reaches below the horizon."""
    for row in range(nearness.shape[0]):
        for column in range(nearness.shape[1]):
            if nearness[row, column] > 0:
                continue
            x, y = (column + 0.5 - middle_x) / focal, (row + 0.5 - middle_y) / focal
            near = (up[0] * x + up[1] * y + up[2]) / height
            if near > 0:
                nearness[row, column] = near
                for axis in range(3):
                    normal[row, column, axis] = up[axis]


@njit(cache=True)
@no_type_check
def find_occlusion(nearness, normal, focal, middle_x, middle_y, reach, occlusion):
    """How much of the sky above each pixel is hidden by what lies within `reach` of it: 0 nothing, 1 all."""
    height, width = nearness.shape
    for row in range(height):
        for column in range(width):
            near = nearness[row, column]
            if near <= 0:
                continue
            x, y = (column + 0.5 - middle_x) / focal / near, (row + 0.5 - middle_y) / focal / near
            spread, hidden = min(focal * reach * near, 0.25 * width), 0.0
            tile = row % TILE * TILE + column % TILE
            for sample in range(_SAMPLES):
                other_column = int(column + 0.5 + spread * _DISC[tile, sample, 0])
                other_row = int(row + 0.5 + spread * _DISC[tile, sample, 1])
                if not (0 <= other_column < width and 0 <= other_row < height):
                    continue
                other = nearness[other_row, other_column]
                if other <= 0:
                    continue
                dx = (other_column + 0.5 - middle_x) / focal / other - x
                dy = (other_row + 0.5 - middle_y) / focal / other - y
                dz = 1 / other - 1 / near
                squared = dx * dx + dy * dy + dz * dz + 1e-12
                above = dx * normal[row, column, 0] + dy * normal[row, column, 1] + dz * normal[row, column, 2]
                fade = 1 - squared / (reach * reach)
                if fade > 0:
                    hidden += fade * max(0.0, above / math.sqrt(squared) - 0.12)
            occlusion[row, column] = min(1.0, 2.2 * hidden / _SAMPLES)


@njit(cache=True)
@no_type_check
def find_shadow(
    owner, nearness, normal, focal, middle_x, middle_y, light, scale, shift, shadow_map, softness, bias, shade
):
    """How much of the key light each pixel misses: 0 nothing, 1 all, with soft borders.

    Rows of `light` are the axes of the shadow map, the last one towards the light; a point p falls on its pixel
    scale · light[:2] p + shift[:2], at nearness light[2] p + shift[2]. What is nearer by less than `bias`
    casts no shade.
    """
    side = shadow_map.shape[0]
    for row in range(nearness.shape[0]):
        for column in range(nearness.shape[1]):
            near = nearness[row, column]
            if near <= 0:
                continue
            facing = 0.0
            for axis in range(3):
                facing += normal[row, column, axis] * light[2, axis]
            if facing <= 0:
                shade[row, column] = 1.0
                continue
            x, y, z = (column + 0.5 - middle_x) / focal / near, (row + 0.5 - middle_y) / focal / near, 1 / near
            u = scale * (light[0, 0] * x + light[0, 1] * y + light[0, 2] * z) + shift[0]
            v = scale * (light[1, 0] * x + light[1, 1] * y + light[1, 2] * z) + shift[1]
            # The table casts no shadow, so it can't be mistaken for its own shade, and needs hardly any bias.
            wide, closeness = (2.5 * softness, 0.1 * bias) if owner[row, column] < 0 else (softness, bias)
            depth = light[2, 0] * x + light[2, 1] * y + light[2, 2] * z + shift[2] + closeness
            hidden = 0
            tile = row % TILE * TILE + column % TILE
            for sample in range(_SAMPLES):
                a, b = (
                    math.floor(u + wide * _DISC[tile, sample, 0]),
                    math.floor(v + wide * _DISC[tile, sample, 1]),
                )
                if 0 <= a < side and 0 <= b < side and shadow_map[b, a] > max(depth, 0.0):
                    hidden += 1
            shade[row, column] = hidden / _SAMPLES


@njit(cache=True)
@no_type_check
def shine(owner, nearness, normal, occlusion, shade, colours, table, up, focal, middle_x, middle_y, line, light):
    """Amounts of light (linear) of each pixel, into `light`; `line` is how wide contours are, in pixels."""
    height, width = owner.shape
    for row in range(height):
        for column in range(width):
            piece, dark = owner[row, column], 1.0
            right, below = owner[row, min(column + line, width - 1)], owner[min(row + line, height - 1), column]
            if right != piece or below != piece:
                dark = _LINE
            if piece < 0:
                level = dark * (1 - 0.34 * shade[row, column]) * (1 - 0.6 * occlusion[row, column])
                for channel in range(3):
                    light[row, column, channel] = table[channel] * level
                continue
            x, y = (column + 0.5 - middle_x) / focal, (row + 0.5 - middle_y) / focal
            eye = 1 / math.sqrt(x * x + y * y + 1)
            size, key, fill, sky, half, glossy = 1e-12, 0.0, 0.0, 0.0, 1e-12, 0.0
            for axis in range(3):
                size += normal[row, column, axis] ** 2
            size = math.sqrt(size)
            for axis in range(3):
                facing = normal[row, column, axis] / size
                between = KEY_LIGHT[axis] - eye * (x if axis == 0 else y if axis == 1 else 1.0)
                key += facing * KEY_LIGHT[axis]
                fill += facing * FILL_LIGHT[axis]
                sky += facing * up[axis]
                glossy += facing * between
                half += between * between
            lit = 1 - shade[row, column]
            ambient = _FLOOR + (_SKY - _FLOOR) * (0.5 + 0.5 * sky)
            open_sky = 1 - 0.85 * occlusion[row, column]
            diffuse = open_sky * (ambient + _FILL * max(0.0, fill)) + _KEY * lit * max(0.0, key)
            gloss = _GLOSS * lit * max(0.0, glossy / math.sqrt(half)) ** _SHINE if key > 0 else 0.0
            for channel in range(3):
                light[row, column, channel] = dark * (colours[piece, channel] * diffuse + gloss)
