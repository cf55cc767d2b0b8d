"""The rims of all pieces at one working scale: their course, their colours, and the rim point nearest to any place.

All compiled loops of matching free outlines read these flat arrays: `start[i]` to `start[i + 1]` are the rim points of
piece i. Lengths are working pixels, `scale` of them to a pixel of the pictures. Frames are those of the pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int32, Int64, UInt8
from torch import Tensor

from diffassemble.core import OutlinePieces
from diffassemble.core.contours import perimeter, resample

MARGIN = 32
"""working pixels around a piece for which the nearest rim points are known; more than any reach of a contact"""
_ARCS = 64
"""arcs of a rim, one for each bit of a number"""


@dataclass(frozen=True)
class RimConfig:
    """How rims are read; lengths are working pixels. The networks of `arcs` were trained with these values."""

    size: float = 128.0
    """root of the area of the median piece; smaller loses detail, larger costs time in proportion to its square"""
    near: float = 3.5
    """depth at which colours are read: beyond the pale rim that most pictures of pieces have …"""
    deep: float = 9.0
    """… and farther in, which gives their slope"""
    blur: float = 1.2
    """deviation of the filter by which colours are smoothed"""
    pale: float = 9.0
    """depth to which white from the rim on counts as background or as the core of torn paper"""
    white: tuple[float, float] = (88.0, 9.0)
    """CIELAB lightness above which, and chroma below which, a pixel is white"""
    stretch: int = 31
    """length of a stretch of rim that is tested for being straight"""
    bend: float = 0.2
    """root mean square distance from a line below which a stretch is straight: the edge of a sheet, not a break"""
    unlike: tuple[float, float, float] = (0.5, 5.0, 25.0)
    """difference of colours that touching pieces seldom have, as a share of the median of any two rim points, and its
    bounds (CIELAB)"""


RIMS = RimConfig()


class Rims(NamedTuple):
    """Rims of n pieces with r points in all, and a grid of nearest rim points around each piece.

    `unit` is the root of the area of the median piece, `like` the difference of colours that touching pieces seldom
    have, `gap` the distance of true neighbours after uniform erosion. `near` and `deep` are CIELAB colours at two
    depths inside of each rim point. `grid` holds 1 + the piece's nearest rim point for each cell, negative inside;
    piece i's begins at `cells[i]`, has `shape[i]` rows and columns, and its first cell has its middle at `corner[i]`.
    Bit b of `straight[i]` is set if arc b of 64 of the rim is as straight as a cut edge.
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

    def of(self, piece: int) -> Float32[np.ndarray, "k 2"]:
        """The rim points of one piece."""
        return self.points[self.start[piece] : self.start[piece + 1]]


def rims_of(pieces: OutlinePieces, config: RimConfig = RIMS) -> Rims:
    """The rims of all pieces at the working scale."""
    root = float(pieces.areas.sqrt().median())
    scale = min(1.0, config.size / root)
    rows = []
    for piece in range(len(pieces)):
        curve = pieces.contours[piece].double().numpy() * scale
        curve = resample(curve, max(24, round(perimeter(curve))))
        outward = outward_normals(curve)
        rows.append(
            (curve, outward, *_rim_colours(pieces, piece, curve, outward, scale, config), *_nearest_grid(curve))
        )
    curves, normals, near, deep, grids, corners = zip(*rows, strict=True)
    seen = np.concatenate(near)
    apart = np.linalg.norm(seen - np.roll(seen, len(seen) // 2 + 7, 0), axis=1)
    share, least, most = config.unlike
    return Rims(
        scale,
        root * scale,
        float(np.clip(share * np.median(apart), least, most)),
        0.0,
        np.cumsum([0] + [len(curve) for curve in curves]),
        np.concatenate(curves).astype(np.float32),
        np.concatenate(normals).astype(np.float32),
        seen.astype(np.float32),
        np.concatenate(deep).astype(np.float32),
        np.concatenate([grid.ravel() for grid in grids]).astype(np.int32),
        np.cumsum([0] + [grid.size for grid in grids])[:-1],
        np.array([grid.shape for grid in grids]),
        np.array(corners, np.float32),
        np.array([straight_arcs(curve, config) for curve in curves], np.int64),
    )


def only_straight(rims: Rims, first: int, second: int, arcs: Int64[np.ndarray, "2"], share: float) -> bool:
    """Whether more than a share of what touches, by its arcs, is straight on both sides: such edges fit anywhere."""
    touching = arcs.view(np.uint64)
    flat = touching & rims.straight[[first, second]].view(np.uint64)
    return bool((np.bitwise_count(flat) > share * np.bitwise_count(touching)).all())


def straight_arcs(curve: Float64[np.ndarray, "k 2"], config: RimConfig = RIMS) -> int:
    """Bits of the arcs, 64 of equal length, that belong to a stretch without any bend: the edge of a sheet."""
    from scipy.ndimage import maximum_filter1d, uniform_filter1d

    if len(curve) <= config.stretch:
        return 0
    x, y = (curve - curve.mean(0)).T
    mean = [uniform_filter1d(values, config.stretch, mode="wrap") for values in (x, y, x * x, y * y, x * y)]
    xx, yy, xy = mean[2] - mean[0] ** 2, mean[3] - mean[1] ** 2, mean[4] - mean[0] * mean[1]
    off = np.sqrt(np.maximum((xx + yy) / 2 - np.sqrt(((xx - yy) / 2) ** 2 + xy**2), 0))
    straight = maximum_filter1d((off < config.bend).astype(np.uint8), config.stretch, mode="wrap")
    arc = _ARCS * np.arange(len(curve)) // len(curve)
    share = np.bincount(arc, straight, _ARCS) / np.maximum(np.bincount(arc, minlength=_ARCS), 1)
    bits = np.flatnonzero(share > 0.5).astype(np.uint64)
    return int(np.bitwise_or.reduce(np.uint64(1) << bits, initial=np.uint64(0)).view(np.int64))


def smoothed(curve: Float64[np.ndarray, "k c"], width: float) -> Float64[np.ndarray, "k c"]:
    """Values along a closed curve of points a pixel apart, smoothed by a Gaussian of this standard deviation."""
    from scipy.ndimage import gaussian_filter1d

    return gaussian_filter1d(curve, width, axis=0, mode="wrap")


def outward_normals(curve: Float64[np.ndarray, "k 2"], width: float = 2.0) -> Float64[np.ndarray, "k 2"]:
    """Unit vectors that point away from the inside of a clockwise curve."""
    soft = smoothed(curve, width)
    along = np.roll(soft, -1, 0) - np.roll(soft, 1, 0)
    along /= np.linalg.norm(along, axis=1, keepdims=True) + 1e-12
    return np.stack([along[:, 1], -along[:, 0]], 1)


def _rim_colours(
    pieces: OutlinePieces,
    piece: int,
    curve: Float64[np.ndarray, "k 2"],
    outward: Float64[np.ndarray, "k 2"],
    scale: float,
    config: RimConfig,
) -> tuple[Float[np.ndarray, "k 3"], Float[np.ndarray, "k 3"]]:
    """CIELAB at two depths inside of each rim point, continued outwards from the core of the picture."""
    from scipy.ndimage import distance_transform_edt, gaussian_filter, map_coordinates
    from skimage.color import rgb2lab

    if not pieces.coloured:
        nothing = np.zeros((len(curve), 3))
        return nothing, nothing
    texture: Tensor = pieces.textures[piece]
    lab = rgb2lab(texture[:3].permute(1, 2, 0).numpy())
    core = _picture_core(texture[3].numpy(), lab, scale, config)
    soft = config.blur / scale
    weight = gaussian_filter(core.astype(np.float32), soft) + 1e-6
    row, column = distance_transform_edt(~core, return_distances=False, return_indices=True)
    blurred = [(gaussian_filter((lab[..., c] * core).astype(np.float32), soft) / weight)[row, column] for c in range(3)]
    found = []
    for depth in (config.near, config.deep):
        inside = (curve - depth * outward) / scale + pieces.origins[piece].numpy() - 0.5
        found.append(np.stack([map_coordinates(c, inside[:, ::-1].T, order=1, mode="nearest") for c in blurred], 1))
    return found[0], found[1]


def _picture_core(
    alpha: UInt8[np.ndarray, "h w"], lab: Float[np.ndarray, "h w 3"], scale: float, config: RimConfig
) -> Bool[np.ndarray, "h w"]:
    """Pixels well inside, without what is white from the rim on down to some depth: background or the core of paper."""
    from scipy.ndimage import binary_dilation, binary_propagation, distance_transform_edt

    depth = distance_transform_edt(np.pad(alpha >= 250, 1))[1:-1, 1:-1]
    lightness, chroma = config.white
    white = (lab[..., 0] > lightness) & (np.hypot(lab[..., 1], lab[..., 2]) < chroma) & (depth < config.pale / scale)
    pale = binary_dilation(binary_propagation(white & (depth <= 3), mask=white))
    inside = depth > 2
    for core in (inside & ~pale, inside, alpha > 0):
        if core.any():
            return core
    return np.ones_like(inside)


def _nearest_grid(curve: Float64[np.ndarray, "k 2"]) -> tuple[Int64[np.ndarray, "h w"], Float64[np.ndarray, "2"]]:
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
