"""Colours along the sides of pieces, a little inside the outline, where neither fringe nor shadow reaches."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from diffassemble.core import OutlinePieces
from diffassemble.outlines.sides import Sides, outwards

# Places along a side at which colours are compared; how deep inside they are taken, of a side's length and in pixels at
# least.
PLACES = 32
_DEPTHS, _LEAST = (0.03, 0.045, 0.06), 2.0


def side_colours(pieces: OutlinePieces, sides: Sides) -> Float[np.ndarray, "n 4 32 3"]:
    """CIE Lab colours along each side, in the direction in which the side runs."""
    from scipy.ndimage import map_coordinates
    from skimage.color import rgb2lab

    normals = outwards(sides.points.reshape(-1, *sides.points.shape[2:])).reshape(sides.points.shape)
    depths = np.maximum(np.array(_DEPTHS) * sides.length, _LEAST * (1 + np.arange(len(_DEPTHS)) / 2))
    origins = pieces.origins.numpy()
    found = np.empty((len(pieces), *sides.points.shape[1:3], 3))
    for number, texture in enumerate(pieces.textures):
        # The middle of the first pixel lies half a pixel from the corner that coordinates count from.
        places = [sides.points[number] - depth * normals[number] + origins[number] - 0.5 for depth in depths]
        x, y = np.moveaxis(np.stack(places), -1, 0)
        levels = [map_coordinates(plane, (y, x), order=1, mode="nearest") for plane in texture[:3].numpy()]
        found[number] = np.stack(levels, -1).mean(0)
    return rgb2lab(found.reshape(*found.shape[:2], PLACES, -1, 3).mean(3) / 255)
