"""Strips made straight: the course and colours of their two long sides, and their learned comparison.

A strip's own frame has its axis upright: x to the right, y down along the strip, the origin at the centre of area, as
in the piece's frame. Its long sides are numbered 0 right and 1 left, and read clockwise: the right one downwards, the
left one upwards. Turned by half, the left side is the right one, and is read downwards as well.

Each side is read twice, as the right side of its strip and, turned by half, as a left side; two small networks turn its
rows into vectors. How well a right side continues in a left one is the sum of products over the rows that come beside
each other, so all shifts of all pairs are one correlation. Empty paper gives products of about zero: no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from scipy import ndimage
from scipy.fft import next_fast_len
from torch import Tensor, nn

from diffassemble.core import OutlinePieces, Poses
from diffassemble.core.settings import Width
from diffassemble.network.pretrained import Pretrained

RIGHT, LEFT = 0, 1
DEPTH = 12
"""pixels to which strips are read inwards from their sides"""
CHANNELS = DEPTH + 5
"""brightness by depth, two of colour, two of the border's course at different scales, and where it is known"""


@dataclass(frozen=True)
class StripSidesConfig:
    """How strips are recognised and read, as for the networks' training; lengths are pixels of the comparison."""

    longest: float = 1200.0
    """longer strips are reduced to this length"""
    slender: float = 3.0
    """strips are more than so many times longer than wide, …"""
    uneven: float = 0.25
    """… deviate from the median length by less than this share, …"""
    rough: float = 0.3
    """… and in width by less than this share of it"""
    courses: tuple[int, int] = (151, 25)
    """border courses are relative to their means over so many rows: slower bends are the strip's, not the cut's"""
    astray: float = 10.0
    """border points farther from the side's course belong to the ends of the strip"""


SIDES = StripSidesConfig()


class StripFrame(NamedTuple):
    """The axes of a strip in its piece's frame as columns, across and along, and its extent in its own frame.

    `reach` are the distances of the right and the left side from the origin; `widths` those of its rows, where known.
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
        """The pose that turns the strip upright, or upside down."""
        rotation = torch.from_numpy(self.axes.T).float()
        return Poses((-rotation if turned else rotation)[None], torch.zeros(1, 2))

    def begins(self, turned: bool) -> float:
        """Where its first row is then."""
        return -self.bottom if turned else self.top


def strip_frame(contour: Float[Tensor, "c 2"]) -> StripFrame:
    """The frame of one strip, from its outline; its axis points downwards."""
    curve = contour.double().numpy()
    _, vectors = np.linalg.eigh(np.cov(curve.T))
    along = vectors[:, 1]
    # The direction of its middle line is more exact than that of its ends, which may be cut off at a slant.
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
    """Largest and least distance across of the outline in each row of a pixel, but for a tenth at both ends."""
    rows = np.round(curve @ along).astype(int)
    rows -= rows.min()
    count = int(rows.max()) + 1
    high, low = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(high, rows, curve @ _across(along))
    np.minimum.at(low, rows, curve @ _across(along))
    return high[count // 10 : count - count // 10], low[count // 10 : count - count // 10]


def strip_like(pieces: OutlinePieces) -> Bool[np.ndarray, "n"]:
    """Which pieces are much longer than wide, of nearly constant width, and as long as the others that are so."""
    frames = [strip_frame(contour) for contour in pieces.contours]
    wide, uneven = (np.array([getattr(frame.widths, name)() for frame in frames]) for name in ("mean", "std"))
    length = np.array([frame.length for frame in frames])
    slender = (length > SIDES.slender * wide) & (uneven < SIDES.rough * wide)
    usual = float(np.median(length[slender])) if slender.any() else 1.0
    return slender & (np.abs(length / usual - 1) < SIDES.uneven)


def looks_like_strips(pieces: OutlinePieces) -> bool:
    """Whether nearly all pieces are strips."""
    return bool(strip_like(pieces).mean() > 0.8)


@dataclass(frozen=True)
class StripSides:
    """The long sides of strips as they are read, in pixels of the comparison: `scale` of them to a pixel of a picture.

    `bands` has both sides of each strip as they are read, padded with zeros to the longest; `lengths` counts the rows
    of each strip.
    """

    bands: Float[Tensor, "n 2 channels l"]
    lengths: Int[Tensor, "n"]
    scale: float


def read_sides(pieces: OutlinePieces, frames: Sequence[StripFrame]) -> StripSides:
    """Straighten all strips, and read both long sides of each."""
    scale = min(1.0, SIDES.longest / float(np.median([frame.length for frame in frames])))
    every = [
        _read_strip(texture.numpy(), frame, origin.double().numpy(), scale)
        for texture, frame, origin in zip(pieces.textures, frames, pieces.origins, strict=True)
    ]
    lengths = [own.shape[-1] for own in every]
    bands = np.zeros((len(every), 2, CHANNELS, max(lengths)), np.float32)
    for index, own in enumerate(every):
        bands[index, :, :, : own.shape[-1]] = own
    # The median brightness is that of the paper.
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
    """The column, in fractions of pixels, at which the strip ends to the right, and the rows of the long side."""
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
        known = opaque_rows & (astray < max(SIDES.astray, 3 * float(np.median(astray[known]))))
    return border, known


def _band(
    levels: Float[np.ndarray, "3 l w"], border: Float[np.ndarray, "l"], known: Bool[np.ndarray, "l"]
) -> Float[np.ndarray, "channels l"]:
    """The channels of a right side: brightness by depth from its border, colours, and the course of the border."""
    rows = np.arange(len(border))
    deep = border[None] - 0.5 - np.arange(DEPTH)[:, None]
    where = np.stack([np.broadcast_to(rows, deep.shape), deep])
    luma, red, blue = (ndimage.map_coordinates(level, where, order=1, mode="nearest") for level in levels)
    filled = np.interp(rows, rows[known], border[known]) if known.any() else border
    courses = [filled - ndimage.uniform_filter1d(filled, size, mode="nearest") for size in SIDES.courses]
    shown = [*luma, red[1:5].mean(0), blue[1:5].mean(0), *(np.clip(course / 4, -2, 2) for course in courses)]
    return (np.stack([*shown, np.ones(len(rows))]) * known).astype(np.float32)


@dataclass(frozen=True)
class ShiftConfig:
    """Prior of how far strips are shifted along each other, as for the networks' training."""

    level: float = 0.45
    """share of pairs whose strips begin together, and of those that end together"""
    jitter: float = 2.0
    """mean distance by which they then miss it, in pixels"""
    anyhow: float = 0.1
    """share of all other pairs"""
    farthest: float = 0.1
    """largest shift beyond beginning or ending together, as a share of a strip's length"""
    block: int = 2**24
    """products of rows that are computed at once, which limits memory"""


SHIFTS = ShiftConfig()


@dataclass(frozen=True)
class StripModelConfig:
    """The size of the two networks."""

    hidden: Width = 32
    width: Width = 24
    """features of a row"""
    rows: Width = 7
    """rows that one layer reads; an odd number"""


class Comparison(NamedTuple):
    """How well sides continue each other, symmetric; within one strip never.

    `fits` are log odds but for a constant, summed over all shifts. With the first side on the right of its strip, the
    other strip's first row fits best at row `shifts` of the first strip. `alone` is the fit of no neighbour at all.
    """

    fits: Float[Tensor, "s s"]
    shifts: Int[Tensor, "s s"]
    alone: Float[Tensor, ""]


class StripModel(Pretrained):
    """Two networks, of sides seen as right and as left ones."""

    config_class = StripModelConfig
    odds: Tensor

    def __init__(self, config: StripModelConfig) -> None:
        super().__init__()
        self.config = config
        self.right, self.left = self._network(), self._network()
        self.alone = nn.Parameter(torch.zeros(()))
        # Shift and slope of the calibration of log odds.
        self.register_buffer("odds", torch.tensor([0.0, 1.0]))

    def _network(self) -> nn.Sequential:
        hidden, rows = self.config.hidden, self.config.rows
        return nn.Sequential(
            nn.Conv1d(CHANNELS, hidden, rows, padding=rows // 2),
            nn.GELU(),
            nn.Conv1d(hidden, hidden, rows, padding=rows // 2),
            nn.GELU(),
            nn.Conv1d(hidden, self.config.width, rows, padding=rows // 2),
        )

    def calibrated(self, odds: Float[Tensor, "s s"]) -> Float[Tensor, "s s"]:
        """Calibrated log odds."""
        return self.odds[0] + self.odds[1] * odds

    def forward(self, bands: Float[Tensor, "n 2 channels l"], lengths: Int[Tensor, "n"]) -> Comparison:
        """Compare all sides, numbered strip by strip: 2 · strip + side."""
        sides = bands.flatten(0, 1)
        own = lengths.repeat_interleave(2)
        rows = torch.arange(sides.shape[-1])
        inside = (rows < own[:, None])[:, None]
        upwards = (own[:, None] - 1 - rows).clamp(min=0)[:, None].expand_as(sides)
        right = self.right(sides).tanh() * (inside & (sides[:, -1:] > 0)) / 8
        turned = sides.gather(2, upwards) * inside
        left = self.left(turned).tanh() * (inside & (turned[:, -1:] > 0)) / 8
        longest, shortest = int(lengths.max()), int(lengths.min())
        most = longest - shortest + round(SHIFTS.farthest * longest)
        period = next_fast_len(longest + most + 1, real=True)
        waves, others = torch.fft.rfft(right, period), torch.fft.rfft(left, period).conj()
        shifts = torch.arange(-most, most + 1)
        # One and the same placement, seen upright and upside down, has these two shifts.
        difference = own[None] - own[:, None]
        fits, best = [], []
        for some in torch.arange(len(sides)).split(max(1, SHIFTS.block // (len(sides) * period))):
            one = torch.fft.irfft(torch.einsum("akf,bkf->abf", waves[some], others), period)
            two = torch.fft.irfft(torch.einsum("akf,bkf->baf", waves, others[some]), period)
            upright = one[..., shifts % period]
            about = (shifts + difference[some][..., None]) % period
            seen = (upright + two.gather(2, about)) / 2 + _prior(shifts, -difference[some], longest)
            best.append(shifts[seen.detach().argmax(-1)])
            fits.append(seen.logsumexp(-1))
        strip = torch.arange(len(sides)) // 2
        every = torch.cat(fits).masked_fill(strip[:, None] == strip, -1e4)
        return Comparison((every + every.T) / 2, torch.cat(best), self.alone)


def _prior(shifts: Int[Tensor, "k"], ends: Int[Tensor, "r s"], longest: int) -> Float[Tensor, "r s k"]:
    """Log probabilities of shifts, where a shift of `ends` lets two strips end together."""
    own = SHIFTS
    near = [(-(shifts - place[..., None]).abs() / own.jitter).exp() / (2 * own.jitter) for place in (0 * ends, ends)]
    return (own.level * (near[0] + near[1]) + own.anyhow / len(shifts)).log()


@cache
def load_strip_model() -> StripModel:
    """The bundled model, read once."""
    return StripModel.from_pretrained("strips").requires_grad_(False)
