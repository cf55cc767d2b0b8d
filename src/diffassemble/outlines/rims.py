"""The rims of all pieces at one working scale: where they run, what they look like, and what is nearest to any point.

Everything that matching free outlines does in compiled loops reads these flat arrays: `start[i]` to `start[i + 1]` are
the rim points of piece i. Lengths are working pixels: `scale` of them to a pixel of the pictures, so that a middling
piece is at most `SIZE` across. Frames are those of the pieces.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Int32, Int64
from torch import Tensor

from diffassemble.core import OutlinePieces
from diffassemble.core.contours import perimeter, resample

# The root of the area of a middling piece, in working pixels.
SIZE = 128.0
# How far around a piece nearest points are known.
MARGIN = 32
# Colours are read this deep inside: beyond the pale rim that most pictures of pieces have, and farther in.
NEAR, DEEP = 3.5, 9.0
# Working pixels of a stretch of rim; how far from a line its points lie, root mean square, if it is straight; arcs of a
# rim.
STRETCH, BEND, ARCS = 31, 0.2, 64
# From this share on a contact is straight; and the most log odds that it then has.
MOSTLY, STRAIGHT_ODDS = 0.7, 0.0
# What is white from the rim on is not the picture, down to this depth.
PALE = 9.0


class Rims(NamedTuple):
    """Rims of n pieces with r points in all, and a grid of nearest rim points around each piece.

    `unit` is the root of the area of a middling piece, `like` the difference of colours that two that touch seldom
    show, `gap` how far true neighbours lie apart all along, because both lost as much of their rims. `near` and `deep`
    are CIELAB colours at two depths inside of each rim point. `grid` holds 1 + the piece's nearest rim point for each
    cell, negative inside; piece i's begins at `cells[i]`, has `shape[i]` rows and columns, and its first cell has its
    middle at `corner[i]`. Bit b of `straight[i]` says that arc b of 64 of the rim is as straight as a cut edge.
    """

    scale: float
    unit: float
    like: float
    gap: float
    start: Int64[np.ndarray, "n+1"]
    points: Float32[np.ndarray, "r 2"]
    normals: Float32[np.ndarray, "r 2"]
    near: Float32[np.ndarray, "r 3"]
    deep: Float32[np.ndarray, "r 3"]
    grid: Int32[np.ndarray, "g"]
    cells: Int64[np.ndarray, "n"]
    shape: Int64[np.ndarray, "n 2"]
    corner: Float32[np.ndarray, "n 2"]
    straight: Int64[np.ndarray, "n"]


def rims_of(pieces: OutlinePieces) -> Rims:
    """Read off what matching needs to know of all pieces."""
    root = float(pieces.areas.sqrt().median())
    scale = min(1.0, SIZE / root)
    points, normals, near, deep, grids, corners = [], [], [], [], [], []
    for piece in range(len(pieces)):
        curve = pieces.contours[piece].double().numpy() * scale
        curve = resample(curve, max(24, round(perimeter(curve))))
        outward = outward_normals(curve)
        points.append(curve)
        normals.append(outward)
        colours = _rim_colours(pieces, piece, curve, outward, scale)
        near.append(colours[0])
        deep.append(colours[1])
        grid, corner = _nearest_grid(curve)
        grids.append(grid)
        corners.append(corner)
    seen = np.concatenate(near)
    counts = np.array([0] + [len(curve) for curve in points])
    sizes = np.array([0] + [grid.size for grid in grids])
    return Rims(
        scale,
        root * scale,
        _likeness(seen),
        0.0,
        counts.cumsum(),
        np.concatenate(points).astype(np.float32),
        np.concatenate(normals).astype(np.float32),
        seen.astype(np.float32),
        np.concatenate(deep).astype(np.float32),
        np.concatenate([grid.ravel() for grid in grids]).astype(np.int32),
        sizes.cumsum()[:-1],
        np.array([grid.shape for grid in grids]),
        np.array(corners, np.float32),
        np.array([straight_arcs(curve) for curve in points], np.int64),
    )


def only_straight(
    rims: Rims, first: Int64[np.ndarray, "m"], second: Int64[np.ndarray, "m"], arcs: Int64[np.ndarray, "m 2"]
) -> Bool[np.ndarray, "m"]:
    """Of which contacts, by the arcs that touch, nearly all is straight on both sides: such edges fit anywhere."""
    found = np.ones(len(arcs), bool)
    for side, pieces in enumerate((first, second)):
        touching = arcs[:, side].view(np.uint64)
        flat = touching & rims.straight[pieces].view(np.uint64)
        found &= np.bitwise_count(flat) > MOSTLY * np.bitwise_count(touching)
    return found


def straight_arcs(curve: np.ndarray) -> int:
    """Bits of the arcs, 64 of equal length, that belong to a stretch without any bend: the edge of a sheet."""
    from scipy.ndimage import maximum_filter1d, uniform_filter1d

    if len(curve) <= STRETCH:
        return 0
    x, y = (curve - curve.mean(0)).T
    mean = [uniform_filter1d(values, STRETCH, mode="wrap") for values in (x, y, x * x, y * y, x * y)]
    xx, yy, xy = mean[2] - mean[0] ** 2, mean[3] - mean[1] ** 2, mean[4] - mean[0] * mean[1]
    off = np.sqrt(np.maximum((xx + yy) / 2 - np.sqrt(((xx - yy) / 2) ** 2 + xy**2), 0))
    straight = maximum_filter1d((off < BEND).astype(np.uint8), STRETCH, mode="wrap")
    arc = ARCS * np.arange(len(curve)) // len(curve)
    share = np.bincount(arc, straight, ARCS) / np.maximum(np.bincount(arc, minlength=ARCS), 1)
    bits = sum(1 << int(number) for number in np.flatnonzero(share > 0.5))
    return bits - (1 << ARCS) if bits >> (ARCS - 1) else bits


def _likeness(colours: np.ndarray) -> float:
    """The difference of colours from which on touching speaks against: a share of that between any two rim points."""
    apart = np.linalg.norm(colours - np.roll(colours, len(colours) // 2 + 7, 0), axis=1)
    return float(np.clip(0.5 * np.median(apart), 5.0, 25.0))


def smoothed(curve: np.ndarray, width: float) -> np.ndarray:
    """A closed curve of points a pixel apart, smoothed by a bell of this standard deviation."""
    from scipy.ndimage import gaussian_filter1d

    return gaussian_filter1d(curve, width, axis=0, mode="wrap")


def outward_normals(curve: np.ndarray, width: float = 2.0) -> np.ndarray:
    """Unit vectors that point away from the inside of a clockwise curve."""
    soft = smoothed(curve, width)
    along = np.roll(soft, -1, 0) - np.roll(soft, 1, 0)
    along /= np.linalg.norm(along, axis=1, keepdims=True) + 1e-12
    return np.stack([along[:, 1], -along[:, 0]], 1)


def _rim_colours(
    pieces: OutlinePieces, piece: int, curve: np.ndarray, outward: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """CIELAB at two depths inside of each rim point, continued from where the picture itself begins."""
    from scipy.ndimage import distance_transform_edt, gaussian_filter, map_coordinates
    from skimage.color import rgb2lab

    if not pieces.coloured:
        nothing = np.zeros((len(curve), 3))
        return nothing, nothing
    texture: Tensor = pieces.textures[piece]
    lab = rgb2lab(texture[:3].permute(1, 2, 0).numpy())
    core = _picture_itself(texture[3].numpy(), lab, PALE / scale)
    soft = 1.2 / scale
    weight = gaussian_filter(core.astype(np.float32), soft) + 1e-6
    row, column = distance_transform_edt(~core, return_distances=False, return_indices=True)
    blurred = [(gaussian_filter((lab[..., c] * core).astype(np.float32), soft) / weight)[row, column] for c in range(3)]
    found = []
    for depth in (NEAR, DEEP):
        inside = (curve - depth * outward) / scale + pieces.origins[piece].numpy() - 0.5
        found.append(np.stack([map_coordinates(c, inside[:, ::-1].T, order=1, mode="nearest") for c in blurred], 1))
    return found[0], found[1]


def _picture_itself(alpha: np.ndarray, lab: np.ndarray, deepest: float) -> np.ndarray:
    """Pixels well inside, without what is white from the rim on down to some depth: background or the core of paper."""
    from scipy.ndimage import binary_dilation, binary_propagation, distance_transform_edt

    depth = distance_transform_edt(np.pad(alpha >= 250, 1))[1:-1, 1:-1]
    white = (lab[..., 0] > 88) & (np.hypot(lab[..., 1], lab[..., 2]) < 9) & (depth < deepest)
    pale = binary_dilation(binary_propagation(white & (depth <= 3), mask=white))
    inside = depth > 2
    for core in (inside & ~pale, inside, alpha > 0):
        if core.any():
            return core
    return np.ones_like(inside)


def _nearest_grid(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each cell around and inside a piece 1 + its nearest rim point, negative inside; the first cell's middle."""
    from scipy.ndimage import binary_fill_holes, distance_transform_edt

    corner = np.floor(curve.min(0)) - MARGIN
    columns, rows = (np.ceil(curve.max(0)) + MARGIN - corner).astype(int) + 1
    at = np.rint(curve - corner).astype(int)
    owner = np.zeros((rows, columns), np.int64)
    owner[at[:, 1], at[:, 0]] = np.arange(len(curve)) + 1
    row, column = distance_transform_edt(owner == 0, return_distances=False, return_indices=True)
    nearest = owner[row, column]
    # Points are a pixel apart, so their cells close a ring that the outside cannot pass.
    inside = binary_fill_holes(owner > 0) & (owner == 0)
    return np.where(inside, -nearest, nearest), corner
