"""Strips made straight: where their two long sides run, and what they show along them.

A strip's own frame has its axis upright: x to the right, y down along the strip, the origin at the centre of area, as
in the piece's frame. Its long sides are numbered 0 right and 1 left, and read clockwise: the right one downwards, the
left one upwards. Turned by half, the left side is the right one, and is read downwards as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from scipy import ndimage
from torch import Tensor

from diffassemble.core import OutlinePieces, Poses

RIGHT, LEFT = 0, 1
# How far into the strip it is looked, and the longest strip that is looked at as it is, in pixels.
DEPTH = 12
LONGEST = 1200
# Levels of brightness by depth, two of colour, two of the border's course at different scales, and where it is known.
CHANNELS = DEPTH + 5
# Strips are this much longer than wide at least, and no other strip is longer by more than this share.
_SLENDER, _UNEVEN = 3.0, 0.25
# What runs more evenly than this over so many pixels is how a strip lies or bends, not how it was torn.
_BENDS, _WAVES = 151, 25
# Border points further than this from the side's course, in pixels, belong to the ends of the strip.
_ASTRAY = 10.0


class StripFrame(NamedTuple):
    """How a strip lies in its piece's frame: its axes as columns, across and along, and its extent in its own frame.

    `reach` is how far the right and the left side lie from the origin; `widths` are those of its rows, where known.
    """

    axes: Float[np.ndarray, "2 2"]
    top: float
    bottom: float
    reach: tuple[float, float]
    widths: Float[np.ndarray, "r"]

    @property
    def length(self) -> float:
        return self.bottom - self.top

    def placed(self, turned: bool) -> Poses:
        """The pose that stands the strip upright, or upside down."""
        rotation = torch.from_numpy(self.axes.T).float()
        return Poses((-rotation if turned else rotation)[None], torch.zeros(1, 2))

    def begins(self, turned: bool) -> float:
        """Where its first row lies then."""
        return -self.bottom if turned else self.top


def strip_frame(contour: Float[Tensor, "c 2"]) -> StripFrame:
    """The frame of one strip, from its outline; its axis points downwards."""
    curve = contour.double().numpy()
    _, vectors = np.linalg.eigh(np.cov(curve.T))
    along = vectors[:, 1]
    # The middle of the strip says better which way it runs than its ends, which may be cut off at a slant.
    for _ in range(2):
        high, low = _borders(curve, along)
        inner = np.flatnonzero(np.isfinite(high))
        if len(inner) > 2:
            lean = np.polyfit(inner, (high + low)[inner] / 2, 1)[0]
            along = along + lean * _across(along)
            along /= np.linalg.norm(along)
    along = along if (along[1], along[0]) > (0, 0) else -along
    high, low = _borders(curve, along)
    known = np.isfinite(high)
    ends = curve @ along
    reach = (float(np.median(high[known])), -float(np.median(low[known])))
    axes = np.stack([_across(along), along], 1)
    return StripFrame(axes, float(ends.min()), float(ends.max()), reach, (high - low)[known])


def _across(along: Float[np.ndarray, "2"]) -> Float[np.ndarray, "2"]:
    return np.array([along[1], -along[0]])


def _borders(
    curve: Float[np.ndarray, "c 2"], along: Float[np.ndarray, "2"]
) -> tuple[Float[np.ndarray, "r"], Float[np.ndarray, "r"]]:
    """How far the outline reaches to both sides in each row of a pixel, but for a tenth at both ends."""
    rows = np.round(curve @ along).astype(int)
    rows -= rows.min()
    count = int(rows.max()) + 1
    high, low = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(high, rows, curve @ _across(along))
    np.minimum.at(low, rows, curve @ _across(along))
    return high[count // 10 : count - count // 10], low[count // 10 : count - count // 10]


def strip_like(pieces: OutlinePieces) -> Bool[np.ndarray, "n"]:
    """Which pieces are far longer than wide, about as wide all along, and as long as the others that are so."""
    frames = [strip_frame(contour) for contour in pieces.contours]
    wide, uneven = (np.array([getattr(frame.widths, name)() for frame in frames]) for name in ("mean", "std"))
    length = np.array([frame.length for frame in frames])
    slender = (length > _SLENDER * wide) & (uneven < 0.3 * wide)
    usual = float(np.median(length[slender])) if slender.any() else 1.0
    return slender & (np.abs(length / usual - 1) < _UNEVEN)


def looks_like_strips(pieces: OutlinePieces) -> bool:
    """Whether nearly all pieces are strips."""
    return bool(strip_like(pieces).mean() > 0.8)


@dataclass(frozen=True)
class StripSides:
    """What the long sides of strips show, in pixels of the comparison, `scale` of which are a pixel of the pictures.

    `bands` has both sides of each strip as they are read, padded with zeros to the longest; `lengths` counts the rows
    of each strip.
    """

    bands: Float[Tensor, "n 2 channels l"]
    lengths: Int[Tensor, "n"]
    scale: float


def read_sides(pieces: OutlinePieces, frames: Sequence[StripFrame]) -> StripSides:
    """Straighten all strips, and read both long sides of each."""
    scale = min(1.0, LONGEST / float(np.median([frame.length for frame in frames])))
    every = [
        _read_strip(texture.numpy(), frame, origin.double().numpy(), scale)
        for texture, frame, origin in zip(pieces.textures, frames, pieces.origins, strict=True)
    ]
    lengths = [own.shape[-1] for own in every]
    bands = np.zeros((len(every), 2, CHANNELS, max(lengths)), np.float32)
    for index, own in enumerate(every):
        bands[index, :, :, : own.shape[-1]] = own
    # What most of the paper shows is the ground that ink is seen on.
    known = bands[:, :, -1] > 0
    ground = np.median(bands[:, :, 3][known]) if known.any() else 0.0
    bands[:, :, :DEPTH] = (bands[:, :, :DEPTH] - ground) * known[:, :, None]
    return StripSides(torch.from_numpy(bands), torch.tensor(lengths), scale)


def _read_strip(
    texture: UInt8[np.ndarray, "4 h w"], frame: StripFrame, origin: Float[np.ndarray, "2"], scale: float
) -> Float[np.ndarray, "2 channels l"]:
    """Both sides of one strip as they are read."""
    axes, spare = frame.axes, 8 / scale
    widest = max(frame.reach) + 3 * float(frame.widths.std()) + spare
    across = np.arange(-widest, widest, 1 / scale)
    down = np.arange(frame.top + 0.5 / scale, frame.bottom, 1 / scale)
    place = axes[:, 0, None, None] * across + axes[:, 1, None, None] * down[:, None] + origin[:, None, None] - 0.5
    colours = texture.astype(np.float32) / 255
    if scale < 0.8:
        colours = ndimage.gaussian_filter(colours, (0, 0.45 / scale, 0.45 / scale))
    red, green, blue, alpha = (ndimage.map_coordinates(level, place[::-1], order=1) for level in colours)
    shown = np.stack([0.299 * red + 0.587 * green + 0.114 * blue, red - green, blue - green])
    bands = np.zeros((2, CHANNELS, len(down)), np.float32)
    # The left side of a strip is read as the right side of the strip turned by half.
    for side, (levels, opaque) in enumerate(((shown, alpha), (shown[:, ::-1, ::-1], alpha[::-1, ::-1]))):
        bands[side] = _band(levels, *_border(opaque))
    return bands


def _border(opaque: Float[np.ndarray, "l w"]) -> tuple[Float[np.ndarray, "l"], Bool[np.ndarray, "l"]]:
    """In which column, finer than pixels, the opaque ends to the right, and in which rows that is a long side."""
    inside = opaque >= 0.5
    last = opaque.shape[1] - 1 - inside[:, ::-1].argmax(1)
    rows = np.arange(len(opaque))
    here, beyond = opaque[rows, last], opaque[rows, np.minimum(last + 1, opaque.shape[1] - 1)]
    border = last + np.clip((here - 0.5) / np.maximum(here - beyond, 1e-3), 0, 1)
    opaque_rows = np.asarray(inside.any(1))
    known = opaque_rows
    for _ in range(4):
        if known.sum() < 8:
            return border, np.zeros_like(known)
        course = np.polynomial.Polynomial.fit(rows[known], border[known], 2)(rows)
        astray = np.abs(border - course)
        known = opaque_rows & (astray < max(_ASTRAY, 3 * float(np.median(astray[known]))))
    return border, known


def _band(
    levels: Float[np.ndarray, "3 l w"], border: Float[np.ndarray, "l"], known: Bool[np.ndarray, "l"]
) -> Float[np.ndarray, "channels l"]:
    """What a right side shows by depth from its border, and how the border runs."""
    rows = np.arange(len(border))
    deep = border[None] - 0.5 - np.arange(DEPTH)[:, None]
    where = np.stack([np.broadcast_to(rows, deep.shape), deep])
    luma, red, blue = (ndimage.map_coordinates(level, where, order=1, mode="nearest") for level in levels)
    filled = np.interp(rows, rows[known], border[known]) if known.any() else border
    courses = [filled - ndimage.uniform_filter1d(filled, size, mode="nearest") for size in (_BENDS, _WAVES)]
    shown = [*luma, red[1:5].mean(0), blue[1:5].mean(0), *(np.clip(course / 4, -2, 2) for course in courses)]
    return (np.stack([*shown, np.ones(len(rows))]) * known).astype(np.float32)
