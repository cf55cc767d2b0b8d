"""Outlines of pieces: from a soft mask to a closed curve of evenly spaced points, finer than pixels.

Lengths are pixels from the top left corner; curves run clockwise as seen and do not repeat their first point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from diffassemble.core import InputError, OutlinePieces

# Levels of alpha: from here on a point is inside.
INSIDE = 127.5


def trace(alpha: UInt8[Tensor, "h w"]) -> Float[np.ndarray, "c 2"]:
    """The longest outline of what is inside, along which a soft mask is half opaque; a point about every pixel."""
    from skimage.measure import find_contours

    padded = np.pad(alpha.numpy(), 1).astype(np.float32)
    # Rows and columns of the padded picture; the middle of a pixel is half a pixel from its corner.
    curves = [curve[:-1, ::-1] - 0.5 for curve in find_contours(padded, INSIDE)]
    if not curves:
        raise InputError("a piece is nowhere opaque; give pictures whose alpha, or mask, is opaque inside")
    longest = max(curves, key=lambda curve: abs(signed_area(curve)))
    clockwise = longest if signed_area(longest) > 0 else longest[::-1]
    return resample(clockwise, max(8, round(perimeter(clockwise))))


def signed_area(curve: Float[np.ndarray, "c 2"]) -> float:
    """Positive if it runs clockwise as seen."""
    x, y = curve[:, 0], curve[:, 1]
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)


def perimeter(curve: Float[np.ndarray, "c 2"]) -> float:
    """The length of a closed curve."""
    return float(np.linalg.norm(np.roll(curve, -1, 0) - curve, axis=1).sum())


def middle(curve: Float[np.ndarray, "c 2"]) -> Float[np.ndarray, "2"]:
    """The centre of the area that a closed curve encloses."""
    following = np.roll(curve, -1, 0)
    weight = curve[:, 0] * following[:, 1] - curve[:, 1] * following[:, 0]
    return ((curve + following) * weight[:, None]).sum(0) / (3 * weight.sum())


def resample(curve: Float[np.ndarray, "c 2"], count: int) -> Float[np.ndarray, "{count} 2"]:
    """The same closed curve by evenly spaced points, from the same first one."""
    closed = np.concatenate([curve, curve[:1]])
    along = np.concatenate([[0], np.linalg.norm(np.diff(closed, axis=0), axis=1).cumsum()])
    wanted = np.arange(count) * (along[-1] / count)
    return np.stack([np.interp(wanted, along, closed[:, axis]) for axis in range(2)], 1)


def outline_pieces(textures: Sequence[UInt8[Tensor, "4 _ _"]], coloured: bool = True) -> OutlinePieces:
    """Pieces from pictures with alpha, each traced along the border of what is opaque."""
    return pieces_along([trace(texture[3]) for texture in textures], textures, coloured)


def pieces_along(
    curves: Sequence[Float[np.ndarray, "_ 2"]], textures: Sequence[UInt8[Tensor, "4 _ _"]], coloured: bool
) -> OutlinePieces:
    """Pieces from pictures whose outlines, in pixels of each, are known."""
    origins = [middle(curve) for curve in curves]
    contours = tuple(torch.from_numpy(curve - origin).float() for curve, origin in zip(curves, origins, strict=True))
    return OutlinePieces(tuple(textures), contours, torch.tensor(np.stack(origins)).float(), coloured)
