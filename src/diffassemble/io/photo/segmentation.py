"""What lies on a plain background in a photograph: the background as a smooth surface, and what stands out from it.

Colours are sRGB levels in [0, 1] as planes (3, h, w). How far two colours are apart is told in units of CIE Lab, in
which about 2 can just be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64
from scipy import ndimage

from diffassemble.io.pixels import apart_and_tint, mean_around, slope, smoothed, to_lab

# Pixels used for fitting, at most; more change nothing.
_SAMPLE = 8_000
_BACKGROUND_ROUNDS = 12

Colours = Float[np.ndarray, "3 h w"]
Levels = Float32[np.ndarray, "h w"]
Start = Literal["rim", "dark", "light"]
Mask = Bool[np.ndarray, "h w"]
_Plane = TypeVar("_Plane", Float32[np.ndarray, "h w"], Bool[np.ndarray, "h w"])


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
    own = to_lab(smoothed(colours))
    apart, tint = apart_and_tint(own, to_lab(background))
    return Contrast(apart, tint < _SHADE, slope(own))


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
    wide = _grown(np.pad(sharp, _GAP + 1), _GAP)
    inner = slice(_GAP + 1, -_GAP - 1)
    outside = _reached(soft & ~wide[inner, inner], ~differs)
    # The brush was kept away from edges; now it goes up to them.
    outside = _grown(outside, _GAP, soft & ~sharp)
    rings = ~_grown(~wide, _GAP)[inner, inner]
    filled = _filled((differs & ~outside) | rings, _GAP)
    return _grown(~_grown(~np.pad(filled, 1), 2), 2)[1:-1, 1:-1]


def _grown(mask: Mask, steps: int, free: Mask | None = None) -> Mask:
    """A mask that grew by so many straight steps, over what is free, if that is told."""
    for _ in range(steps):
        grown = mask.copy()
        grown[1:] |= mask[:-1]
        grown[:-1] |= mask[1:]
        grown[:, 1:] |= mask[:, :-1]
        grown[:, :-1] |= mask[:, 1:]
        mask = grown if free is None else (grown & free) | mask
    return mask


def highest(levels: _Plane, radius: int) -> _Plane:
    """The highest level in a square around each pixel, or whether a mask has any there."""
    found: Any = np.pad(levels, radius, "edge")
    for _ in range(2):
        have, whole = 1, 2 * radius + 1
        while have < whole:
            step = min(have, whole - have)
            found = np.maximum(found[:-step], found[step:])
            have += step
        found = found.T
    return found


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
    rim = bright / np.maximum(highest(bright, max(2, reach // 2)), floor)
    # A faint shade beside such a rim is the thing's shadow; where a thing is faint itself, that would count as half.
    cast = contrast.shade & (apart < CLEAR) & (highest(bright, reach) > floor)
    alpha = mask.astype(np.float32)
    for _ in range(2):
        near, far = (highest(mask, reach), highest(~mask, reach)), (highest(mask, 3 * reach), highest(~mask, 3 * reach))
        high = mean_around(apart, ~near[1] & far[1], 3 * reach)
        low = mean_around(apart, ~near[0] & far[0], 3 * reach)
        # In narrow bays nothing lies far enough from the outline: there it is what the background usually shows.
        beyond = apart[~near[0]]
        low = np.where(np.isnan(low), np.float32(np.median(beyond)) if len(beyond) else low, low)
        band = highest(mask, 2 * reach) & highest(~mask, 2 * reach) & ~np.isnan(high) & ~np.isnan(low)
        share = np.where(cast & (high < 2 * CLEAR), 0, (apart - low) / np.maximum(high - low, 1e-3))
        share = np.maximum(share, rim)
        alpha = np.where(band, np.clip(share, 0, 1), alpha).astype(np.float32)
        # Between a dark piece and its light rim colours pass that of the background.
        alpha = np.maximum(alpha, -highest(-highest(alpha, 1), 1))
        mask = _without_fibres(_largest(_filled(alpha > 0.5, reach // 2)), reach)
        alpha = np.where(mask, np.where(~_grown(~mask, 1), 1, alpha), np.minimum(alpha, 0.5))
        alpha *= _grown(mask, 1)
    return alpha


def _filled(mask: Mask, thin: int) -> Mask:
    """A mask with its holes filled, but not bays that only a bridge of twice `thin` pixels closes.

    What is little more than a ring is the rim of a thing of the background's colour: it is filled, too.
    """
    number, count = ndimage.label(_closed(mask) & ~mask)
    if not count:
        return mask
    solid = _closed(_opened(mask, thin))
    areas, kept = (np.bincount(number[where], minlength=count + 1) for where in (number > 0, solid))
    within, _ = ndimage.label(mask | (number > 0))
    whole = np.bincount(within.ravel())
    owner = np.zeros(count + 1, int)
    owner[number] = within
    closed = (kept > areas / 2) | (areas > 0.4 * whole[owner])
    closed[0] = False
    return mask | closed[number]


def _closed(mask: Mask) -> Mask:
    """A mask and all holes in it: what one can't reach from the edge without crossing it."""
    free = np.pad(~mask, 1, constant_values=True)
    number, _ = ndimage.label(free)
    return number[1:-1, 1:-1] != number[0, 0]


def _opened(mask: Mask, thin: int) -> Mask:
    """What is left of a mask when everything narrower than twice `thin` pixels is taken away."""
    return highest(~highest(~np.pad(mask, 1), thin), thin)[1:-1, 1:-1]


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
    far = np.bincount(rest[~highest(core, thin + 1)], minlength=count + 1) > 0
    far[0] = False
    return mask & ~far[rest]
