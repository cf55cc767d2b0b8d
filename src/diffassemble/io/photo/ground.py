"""The plain ground of a photograph, a smooth surface of colour, and the mask of what differs from it.

Colours are sRGB levels in [0, 1] as planes (3, h, w), their differences in units of CIE Lab (2 can just be seen).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float32, Float64
from scipy import ndimage
from skimage.color import rgb2lab
from torch import Tensor

Colours = Float[np.ndarray, "3 h w"]
Levels = Float32[np.ndarray, "h w"]
Mask = Bool[np.ndarray, "h w"]
Start = Literal["rim", "dark", "light"]
NORMAL = 1.4826
"""standard deviations of a normal distribution in one median absolute deviation"""
DEGREES = 4
"""powers of each coordinate in a cubic surface"""


@dataclass(frozen=True)
class GroundConfig:
    """How the ground is fitted, and what counts as different from it."""

    sample: int = 8_000
    """pixels that a fit uses; more change nothing"""
    rounds: int = 12
    """fits, each to the pixels that were close to the one before, unless they stay the same earlier"""
    rim: float = 1 / 30
    """share of the shorter side of the picture that the first fit is made to, which pieces rarely reach"""
    extreme: float = 0.1
    """share of the pixels that the darkest or lightest ground begins with, and those within `band` sRGB levels of it"""
    band: float = 0.05
    noise: tuple[float, float] = (0.004, 0.05)
    """sRGB levels between which the noise of the ground must be"""
    close: float = 3.5
    """deviations of the noise within which a pixel belongs to the ground"""
    smooth: float = 0.8
    """pixels of the Gaussian that removes the finest noise"""
    faint: float = 5.0
    """Lab units: what differs by less is ground, also where there is no noise"""
    sharp: float = 2.0
    """Lab units a pixel by which colours change at an edge at least"""
    clear: float = 15.0
    """Lab units: what differs by more is certainly no ground"""
    beyond: float = 6.0
    """deviations beyond the median of the ground from which a difference or a change is not its noise"""
    shade: float = 8.0
    """Lab units of a and b by which a shadow may change the colour of the ground, beside making it darker"""
    gap: int = 2
    """pixels by which an edge may be interrupted without letting the ground in"""
    ring: float = 0.4
    """share of a component that its hole makes up from which it is the rim of a piece of the ground's colour"""


GROUND = GroundConfig()


@dataclass(frozen=True)
class Ground:
    """A cubic surface of colour over the whole picture, and its noise (standard deviation)."""

    weights: Float64[np.ndarray, "3 4 4"]
    noise: float

    def colours(
        self, height: int, width: int, box: tuple[slice, slice] = (slice(None), slice(None))
    ) -> Float64[np.ndarray, "3 h w"]:
        """The ground of a picture of that size, also under what is on it; of a box of it, if one is given."""
        rows, columns = (np.linspace(-1, 1, size)[part] for size, part in zip((height, width), box, strict=True))
        return _powers(rows) @ self.weights @ _powers(columns).T


def _powers(places: Float64[np.ndarray, "m"]) -> Float64[np.ndarray, "m 4"]:
    return places[:, None] ** np.arange(DEGREES)


def reduced(picture: Float[Tensor, "3 H W"], reduction: float) -> Float[Tensor, "3 h w"]:
    """A copy that is smaller by this factor along both sides."""
    if reduction <= 1:
        return picture
    return F.interpolate(picture[None], scale_factor=1 / reduction, mode="bilinear", antialias=True)[0].clamp(0, 1)


def rim_of(mask: Mask) -> Bool[np.ndarray, "m"]:
    """The mask along the four edges of the picture."""
    return np.concatenate([mask[0], mask[-1], mask[:, 0], mask[:, -1]])


def fit_ground(colours: Colours, start: Start = "rim", config: GroundConfig = GROUND) -> Ground:
    """A surface fitted to the rim of the picture, then repeatedly to all pixels that are close to it.

    Where pieces fill the picture the ground is one colour, the darkest or the lightest.
    """
    height, width = colours.shape[1:]
    step = max(1, round((height * width / config.sample) ** 0.5))
    sample = colours[:, ::step, ::step]
    rows, columns = (_powers(np.linspace(-1, 1, size)) for size in sample.shape[1:])
    # All products of x and y up to the third degree.
    chosen = np.add.outer(np.arange(DEGREES), np.arange(DEGREES)) < (DEGREES if start == "rim" else 1)
    terms = np.einsum("hi,wj->hwij", rows, columns)[:, :, chosen]
    if start == "rim":
        close, rim = np.ones(sample.shape[1:], bool), max(1, int(min(sample.shape[1:]) * config.rim))
        close[rim:-rim, rim:-rim] = False
    else:
        light = sample.mean(0) if start == "light" else 1 - sample.mean(0)
        close = light > np.quantile(light, 1 - config.extreme) - config.band
    weights, noise = np.zeros((3, DEGREES, DEGREES)), config.noise[1]
    for _ in range(config.rounds):
        # Normal equations: ten unknowns need no better.
        seen = terms[close]
        weights[:, chosen] = np.linalg.lstsq(seen.T @ seen, seen.T @ sample[:, close].T, rcond=None)[0].T
        apart = np.abs(sample - rows @ weights @ columns.T).max(0)
        noise = float(np.clip(NORMAL * np.median(apart[close]), *config.noise))
        before, close = close, apart < config.close * noise
        if (before == close).all():
            break
    return Ground(weights, noise)


@dataclass(frozen=True)
class Contrast:
    """How colours differ from the ground: `apart` in Lab; `shade` where they are only darker; `slope` a pixel."""

    apart: Levels
    shade: Mask
    slope: Levels

    def window(self, box: tuple[slice, slice]) -> Contrast:
        """The same within a box."""
        return Contrast(self.apart[box], self.shade[box], self.slope[box])


def compare(colours: Colours, ground: Float[np.ndarray, "3 h w"], config: GroundConfig = GROUND) -> Contrast:
    """Each pixel, smoothed, against the ground there; in a shadow all Lab coordinates fade in the same measure."""
    smooth = ndimage.gaussian_filter(colours.astype(np.float32), (0, config.smooth, config.smooth), truncate=3.75)
    own, below = (
        np.ascontiguousarray(rgb2lab(planes.astype(np.float32).clip(0, 1), channel_axis=0))
        for planes in (smooth, ground)
    )
    apart = np.sqrt(((own - below) ** 2).sum(0))
    fade = np.clip(own[0] / np.maximum(below[0], 1), 0, 1)
    tint = np.hypot(*(own[1:] - fade * below[1:]))
    # Sobel's operator weighs eight differences of neighbours.
    changes = [ndimage.sobel(plane, axis, mode="nearest") / 8 for plane in own for axis in (0, 1)]
    slope = np.sqrt(sum(change**2 for change in changes))
    return Contrast(apart, (tint < config.shade) & (own[0] < below[0]), slope)


def foreground(contrast: Contrast, config: GroundConfig = GROUND) -> Mask:
    """The mask of what is on the ground, without shadows: what is darker and reached without crossing a sharp edge.

    Rings of edges are filled, so that white paper on white paper is found if it shows its rim.
    """
    near, gap = contrast.apart < config.clear, config.gap
    differs = contrast.apart > _beyond_noise(contrast.apart, near, config.faint, config)
    sharp = contrast.slope > _beyond_noise(contrast.slope, near, config.sharp, config)
    soft = ~differs | contrast.shade
    wide, inner = ndimage.binary_dilation(np.pad(sharp, gap + 1), iterations=gap), slice(gap + 1, -gap - 1)
    outside = ndimage.binary_propagation(~differs & soft & ~wide[inner, inner], mask=soft & ~wide[inner, inner])
    # What was reached keeps clear of edges by the gap; now it goes up to them.
    outside = ndimage.binary_dilation(outside, iterations=gap, mask=soft & ~sharp)
    rings = ndimage.binary_erosion(wide, iterations=gap, border_value=1)[inner, inner]
    return ndimage.binary_opening(_filled((differs & ~outside) | rings, gap, config), iterations=2)


def _beyond_noise(levels: Levels, near: Mask, least: float, config: GroundConfig) -> float:
    """The level above what most pixels near the ground's colour show."""
    step = max(1, round((levels.size / config.sample) ** 0.5))
    sample = levels[::step, ::step][near[::step, ::step]]
    if not len(sample):
        return least
    usual = float(np.median(sample))
    return max(least, usual + config.beyond * NORMAL * float(np.median(np.abs(sample - usual))))


def soft_alpha(contrast: Contrast, mask: Mask, reach: int, config: GroundConfig = GROUND) -> Levels:
    """How much of each pixel a piece covers (0…1), from a mask that meets its outline to about `reach` pixels.

    At the outline colours are halfway between those `reach` pixels inside and outside. A rim lighter than all around
    belongs to the piece, fibres thinner than `reach` do not.
    """
    apart, floor = contrast.apart, 2 * config.faint
    # A rim may be fainter than what it encloses: it ends where it has half of its own strength.
    bright = np.where(contrast.shade, 0, apart).astype(np.float32)
    rim = bright / np.maximum(highest(bright, max(2, reach // 2)), floor)
    # A faint shade beside such a rim is the piece's shadow; where a piece is faint itself, that would count as half.
    cast = contrast.shade & (apart < config.clear) & (highest(bright, reach) > floor)
    alpha = mask.astype(np.float32)
    for _ in range(2):
        inside, outside = highest(mask, reach), highest(~mask, reach)
        high = _mean_around(apart, ~outside & highest(~mask, 3 * reach), 3 * reach)
        low = _mean_around(apart, ~inside & highest(mask, 3 * reach), 3 * reach)
        # In narrow bays nothing is far enough from the outline: there it is what the ground usually shows.
        beyond = apart[~inside]
        low = np.where(np.isnan(low), np.float32(np.median(beyond)) if len(beyond) else low, low)
        band = highest(mask, 2 * reach) & highest(~mask, 2 * reach) & ~np.isnan(high) & ~np.isnan(low)
        share = np.where(cast & (high < 2 * config.clear), 0, (apart - low) / np.maximum(high - low, 1e-3))
        alpha = np.where(band, np.clip(np.maximum(share, rim), 0, 1), alpha).astype(np.float32)
        # Between a dark piece and its light rim colours pass that of the ground.
        alpha = np.maximum(alpha, ndimage.grey_closing(alpha, 3, mode="nearest"))
        mask = _without_fibres(largest(_filled(alpha > 0.5, reach // 2, config)), reach)
        solid = ndimage.binary_erosion(mask, border_value=1)
        alpha = np.where(mask, np.where(solid, 1, alpha), np.minimum(alpha, 0.5)) * ndimage.binary_dilation(mask)
    return alpha.astype(np.float32)


def highest(levels: Any, radius: int) -> Any:
    """The highest level in a square around each pixel, or whether a mask has any there."""
    return ndimage.maximum_filter(levels, 2 * radius + 1, mode="nearest")


def _mean_around(levels: Levels, chosen: Mask, reach: int) -> Levels:
    """The mean of the chosen pixels in a square around each; NaN where there are none."""
    size = 2 * reach + 1
    total, count = (
        size**2 * ndimage.uniform_filter(planes.astype(np.float32), size, mode="constant")
        for planes in (np.where(chosen, levels, 0), chosen)
    )
    return np.where(count > 0.5, total / np.maximum(count, 0.5), np.nan).astype(np.float32)


def _filled(mask: Mask, thin: int, config: GroundConfig) -> Mask:
    """A mask with holes and rings filled, but not bays that only a bridge of twice `thin` pixels closes."""
    number, count = ndimage.label(ndimage.binary_fill_holes(mask) & ~mask)
    if not count:
        return mask
    solid = ndimage.binary_fill_holes(_opened(mask, thin))
    areas, kept = (np.bincount(number[where], minlength=count + 1) for where in (number > 0, solid))
    within, _ = ndimage.label(mask | (number > 0))
    owner = np.zeros(count + 1, int)
    owner[number] = within
    closed = (kept > areas / 2) | (areas > config.ring * np.bincount(within.ravel())[owner])
    closed[0] = False
    return mask | closed[number]


def _opened(mask: Mask, thin: int) -> Mask:
    """What is left of a mask when everything narrower than twice `thin` pixels is removed."""
    return ndimage.grey_opening(mask.astype(np.uint8), 2 * thin + 1, mode="constant") > 0


def largest(mask: Mask) -> Mask:
    """The largest connected part of a mask."""
    number, count = ndimage.label(mask)
    return mask if count < 2 else number == 1 + np.bincount(number.ravel())[1:].argmax()


def _without_fibres(mask: Mask, reach: int) -> Mask:
    """The same mask without thin parts that stick out; sharp corners stay."""
    thin = max(1, reach // 2)
    core = _opened(mask, thin)
    # A thin part stays if none of it is far from the core.
    far = mask & ~core & ~highest(core, thin + 1)
    return mask & ~ndimage.binary_propagation(far, mask=mask & ~core)
