"""What lies on a plain background in a photograph: the background as a smooth surface, and what stands out from it.

Colours are sRGB levels in [0, 1] as planes (3, h, w). How far two colours are apart is told in units of CIE Lab, in
which about 2 can just be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int32
from scipy import ndimage

# Pixels used for fitting, at most; more change nothing.
_SAMPLE = 20_000
_BACKGROUND_ROUNDS = 12

Colours = Float[np.ndarray, "3 h w"]
Levels = Float32[np.ndarray, "h w"]
Start = Literal["rim", "dark", "light"]
Mask = Bool[np.ndarray, "h w"]


@dataclass(frozen=True)
class Background:
    """A cubic surface of colour over the whole picture, and its noise (standard deviation)."""

    weights: Float64[np.ndarray, "3 4 4"]
    noise: float

    def colours(
        self, height: int, width: int, box: tuple[slice, slice] = (slice(None), slice(None))
    ) -> Float64[np.ndarray, "3 h w"]:
        """The background of a picture of that size, also under what lies on it; of a box of it, if one is given."""
        rows, columns = (np.linspace(-1, 1, size)[part] for size, part in zip((height, width), box, strict=True))
        return _powers(rows) @ self.weights @ _powers(columns).T


def fit_background(colours: Colours, start: Start = "rim") -> Background:
    """The background of a photograph.

    A surface is fitted to the rim of the picture, then to all pixels that are close to it, again and again: so the
    background grows from the rim inwards, and what lies on it stays out. Where things fill the picture, little is left
    of the background: then it is taken as one colour, the darkest or the lightest.
    """
    height, width = colours.shape[1:]
    step = max(1, round((height * width / _SAMPLE) ** 0.5))
    sample = colours[:, ::step, ::step]
    rows, columns = (_powers(np.linspace(-1, 1, size)) for size in sample.shape[1:])
    # All products of x and y up to the third degree.
    chosen = np.add.outer(np.arange(4), np.arange(4)) < (4 if start == "rim" else 1)
    terms = np.einsum("hi,wj->hwij", rows, columns)[:, :, chosen]
    close, noise = np.ones(sample.shape[1:], bool), 0.05
    if start == "rim":
        rim = max(1, min(close.shape) // 30)  # which pieces rarely reach
        close[rim:-rim, rim:-rim] = False
    else:
        light = sample.mean(0) if start == "light" else 1 - sample.mean(0)
        close = light > np.quantile(light, 0.9) - 0.05
    weights = np.zeros((3, 4, 4))
    for _ in range(_BACKGROUND_ROUNDS):
        # Normal equations: ten unknowns need no better.
        seen = terms[close]
        weights[:, chosen] = np.linalg.lstsq(seen.T @ seen, seen.T @ sample[:, close].T, rcond=None)[0].T
        apart = np.abs(sample - rows @ weights @ columns.T).max(0)
        noise = float(np.clip(1.4826 * np.median(apart[close]), 0.004, 0.05))
        before, close = close, apart < 3.5 * noise
        if (before == close).all():
            break
    return Background(weights, noise)


def _powers(places: Float64[np.ndarray, "m"]) -> Float64[np.ndarray, "m 4"]:
    return places[:, None] ** np.arange(4)


# sRGB to XYZ, of which each row is divided by that of white (D65).
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_TO_XYZ /= _TO_XYZ.sum(1, keepdims=True)
# Lightness, and the two opponent colours.
_TO_LAB = np.array([[0.0, 116.0, 0.0], [500.0, -500.0, 0.0], [0.0, 200.0, -200.0]])
_LEVELS = np.linspace(0, 1, 4097)
_LINEAR = np.where(_LEVELS <= 0.04045, _LEVELS / 12.92, ((_LEVELS + 0.055) / 1.055) ** 2.4).astype(np.float32)


def to_lab(colours: Colours) -> Float32[np.ndarray, "3 h w"]:
    """CIE Lab of sRGB colours, to a thousandth of what can be seen."""
    linear = _LINEAR[np.clip(np.round(colours * 4096), 0, 4096).astype(np.int16)]
    share = np.tensordot(_TO_XYZ.astype(np.float32), linear, 1)
    curved = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 16 / 116)
    lab = np.tensordot(_TO_LAB.astype(np.float32), curved, 1)
    lab[0] -= 16
    return lab


# In Lab: what differs by less is background; how fast colours change at an edge, a pixel; both beyond the noise.
_FAINT, _SHARP = 5.0, 2.0
# Colours that far from the background are surely no part of it.
CLEAR = 15.0
_BEYOND = 6.0
# Shadows change lightness; their colours stay within this.
_SHADE = 8.0
# Pixels by which an edge may be broken without letting the background in.
_GAP = 2


@dataclass(frozen=True)
class Contrast:
    """How colours differ from the background: `apart` in Lab; `shade` where they are only darker; `slope` a pixel."""

    apart: Levels
    shade: Mask
    slope: Levels


def compare(colours: Colours, background: Float[np.ndarray, "3 h w"]) -> Contrast:
    """Each pixel against the background there; the least noise is smoothed away before."""
    own = to_lab(np.stack([ndimage.gaussian_filter(plane, 0.8) for plane in colours.astype(np.float32)]))
    ground = to_lab(background)
    apart = np.sqrt(((own - ground) ** 2).sum(0))
    # Where light is taken away, colours fade in the same measure.
    fade = np.clip(own[0] / np.maximum(ground[0], 1), 0, 1)
    tinted = np.hypot(*(own[1:] - fade * ground[1:]))
    slope = np.sqrt(sum(ndimage.sobel(plane, axis) ** 2 for plane in own for axis in (0, 1))).astype(np.float32) / 8
    return Contrast(apart, (own[0] < ground[0]) & (tinted < _SHADE), slope)


def stand_out(contrast: Contrast) -> Mask:
    """Where something lies on the background, without the shadows that it casts.

    What is lighter or of another colour is a thing. What is darker is a thing, too, unless one comes there from the
    background without crossing a sharp edge: shadows, and the vignette of a lamp, begin softly. Rings of edges are
    filled, so that white paper on white paper is found if it shows its rim.
    """
    near = contrast.apart < CLEAR
    differs = contrast.apart > _beyond_noise(contrast.apart, near, _FAINT)
    sharp = contrast.slope > _beyond_noise(contrast.slope, near, _SHARP)
    soft = ~differs | contrast.shade
    outside = _reached(soft & ~ndimage.binary_dilation(sharp, iterations=_GAP), ~differs)
    # The brush was kept away from edges; now it goes up to them.
    outside = ndimage.binary_dilation(outside, iterations=_GAP, mask=soft & ~sharp)
    rings = ndimage.binary_closing(np.pad(sharp, _GAP + 1), iterations=_GAP)[_GAP + 1 : -_GAP - 1, _GAP + 1 : -_GAP - 1]
    return ndimage.binary_opening(_filled((differs & ~outside) | rings, _GAP), iterations=2)


def _reached(free: Mask, start: Mask) -> Mask:
    """All of what is free that hangs together with some of the start."""
    number, count = ndimage.label(free)
    chosen = np.bincount(number[start & free], minlength=count + 1) > 0
    return chosen[number]


def _beyond_noise(levels: Levels, near: Mask, least: float) -> float:
    """The level above what most pixels near the background's colour show."""
    step = max(1, round((levels.size / _SAMPLE) ** 0.5))
    sample = levels[::step, ::step][near[::step, ::step]]
    if not len(sample):
        return least
    usual = float(np.median(sample))
    spread = 1.4826 * float(np.median(np.abs(sample - usual)))
    return max(least, usual + _BEYOND * spread)


def soft_alpha(contrast: Contrast, mask: Mask, reach: int) -> Levels:
    """How much of each pixel a thing covers (0…1), from a mask that meets its outline to about `reach` pixels.

    At the outline colours are halfway between those inside and those outside, whatever these are at that place: both
    are taken from `reach` pixels away on either side. A rim that is lighter than all around, as cut cardboard often
    has, belongs to the thing. Fibres thinner than `reach` that stick out are left out.
    """
    apart = contrast.apart
    # A rim may be fainter than what it encloses: it ends where it has half of its own strength.
    bright = np.where(contrast.shade, 0, apart).astype(np.float32)
    floor = 2 * _FAINT
    rim = bright / np.maximum(ndimage.maximum_filter(bright, 2 * max(2, reach // 2) + 1), floor)
    alpha = mask.astype(np.float32)
    for _ in range(2):
        inside, outside = _depth(mask), _depth(~mask)
        high = _mean_around(apart, (inside > reach) & (inside <= 3 * reach), 3 * reach)
        low = _mean_around(apart, (outside > reach) & (outside <= 3 * reach), 3 * reach)
        band = (inside <= 2 * reach) & (outside <= 2 * reach) & ~np.isnan(high) & ~np.isnan(low)
        share = np.maximum((apart - low) / np.maximum(high - low, 1e-3), rim)
        alpha = np.where(band, np.clip(share, 0, 1), alpha).astype(np.float32)
        # Between a dark piece and its light rim colours pass that of the background.
        alpha = np.maximum(alpha, ndimage.grey_closing(alpha, size=3))
        mask = _without_fibres(_largest(_filled(alpha > 0.5, reach // 2)), reach)
        alpha = np.where(mask, np.where(ndimage.binary_erosion(mask), 1, alpha), np.minimum(alpha, 0.5))
        alpha *= ndimage.binary_dilation(mask)
    return alpha


def _mean_around(levels: Levels, chosen: Mask, reach: int) -> Levels:
    """The mean of the chosen pixels in a square around each; not a number where there are none."""
    weight = ndimage.uniform_filter(chosen.astype(np.float32), 2 * reach + 1, mode="constant")
    total = ndimage.uniform_filter(np.where(chosen, levels, 0).astype(np.float32), 2 * reach + 1, mode="constant")
    return np.where(weight > 1e-6, total / np.maximum(weight, 1e-6), np.nan)


def _filled(mask: Mask, thin: int) -> Mask:
    """A mask with its holes filled, but not bays that only a bridge of twice `thin` pixels closes.

    What is little more than a ring is the rim of a thing of the background's colour: it is filled, too.
    """
    number, count = ndimage.label(ndimage.binary_fill_holes(mask) & ~mask)
    if not count:
        return mask
    solid = ndimage.binary_fill_holes(_opened(mask, thin))
    areas, kept = (np.bincount(number[where], minlength=count + 1) for where in (number > 0, solid))
    within, _ = ndimage.label(mask | (number > 0))
    whole = np.bincount(within.ravel())
    owner = np.zeros(count + 1, int)
    owner[number] = within
    closed = (kept > areas / 2) | (areas > 0.4 * whole[owner])
    closed[0] = False
    return mask | closed[number]


def _opened(mask: Mask, thin: int) -> Mask:
    """What is left of a mask when everything narrower than twice `thin` pixels is taken away."""
    return _depth(_depth(np.pad(mask, 1))[1:-1, 1:-1] <= thin) <= thin


def _largest(mask: Mask) -> Mask:
    number, count = ndimage.label(mask)
    if count < 2:
        return mask
    sizes = np.bincount(number.ravel())
    sizes[0] = 0
    return number == sizes.argmax()


def _without_fibres(mask: Mask, reach: int) -> Mask:
    """The same mask without thin parts that stick out; sharp corners stay."""
    thin = max(1, reach // 2)
    core = _opened(mask, thin)
    rest, count = ndimage.label(mask & ~core)
    if not count:
        return mask
    far = np.zeros(count + 1)
    np.maximum.at(far, rest[rest > 0], _depth(~core)[rest > 0])
    return mask & ~(far > thin + 1)[rest]


def _depth(mask: Mask) -> Int32[np.ndarray, "h w"]:
    """How many steps, straight or slanting, lead from each pixel of a mask to the nearest that is outside."""
    if mask.all():
        return np.full(mask.shape, max(mask.shape), np.int32)
    return ndimage.distance_transform_cdt(mask, metric="chessboard")
