"""Which tab goes into which hole: all pairs of sides at once, the best fitted closely, and how probable each is.

Lengths are relative to the usual length of a side. What a fit is worth is learnt from the puzzle itself: how well
mutual best pairs fit, against how well sides fit that cannot all be right (`side_odds.py`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from diffassemble.core import Matches, OutlinePieces, Poses
from diffassemble.outlines.side_colours import side_colours
from diffassemble.outlines.side_fit import ANGLE, ERROR, GAP, SHIFT_X, SHIFT_Y, fit_sides
from diffassemble.outlines.side_odds import MOST, colour_evidence, mutual_best, probabilities, shape_evidence
from diffassemble.outlines.sides import HOLE, POINTS, TAB, Sides, find_sides, outwards

# Of each side, this many partners are fitted closely, and this many are told.
_FITTED, _TOLD = 60, 16
# Distances beyond this part of a side's length pull no harder.
_TOLERANCE = 0.006
# Curves are smoothed by so many of their points: the noise of pixels is gone, shapes stay.
_SMOOTH = 1.5
# Outlines may be this much too small or too large, of a side's length; what is left of it after the first look matters
# from here on. So many sides tell.
_OFFSETS, _OFFSET_LEFT, _TELLING = np.linspace(-0.035, 0.035, 15), 0.0004, 256
# What the distance of corners counts beside that of the curves.
_ENDS = 0.2


@dataclass(frozen=True)
class Fits:
    """Fitted pairs of sides, numbered 4·piece + side: where the tab's piece stands in the hole's frame, and how well.

    The shift is in pixels; error, distance of the corners and gap are of a side's length.
    """

    tab: Int[np.ndarray, "m"]
    hole: Int[np.ndarray, "m"]
    angle: Float[np.ndarray, "m"]
    shift: Float[np.ndarray, "m 2"]
    error: Float[np.ndarray, "m"]
    ends: Float[np.ndarray, "m"]
    gap: Float[np.ndarray, "m"]

    @property
    def cost(self) -> Float[np.ndarray, "m"]:
        return np.sqrt(self.error**2 + (_ENDS * self.ends) ** 2) + 1e-6


def match_tabs(pieces: OutlinePieces, sides: Sides | None = None) -> Matches:
    """The most probable partners of every side, in both directions.

    Channels of evidence: the probability that two sides belong together, the same odds over those of the best partner
    of either side, and the logistic function of the log odds by shape and colour, whatever the rivals.
    """
    sides = find_sides(pieces) if sides is None else sides
    fits = fit_all(sides)
    if not len(fits.tab):
        return no_matches()
    odds = shape_evidence(fits.tab, fits.hole, fits.cost)
    if pieces.coloured:
        odds = odds + colour_evidence(fits.tab, fits.hole, odds, _colour_difference(pieces, sides, fits))
    return _as_matches(fits, np.clip(odds, -MOST, MOST))


def fit_all(sides: Sides) -> Fits:
    """Fits of the best partners of every side, with outlines as much larger or smaller as makes them fit best."""
    numbers = np.arange(sides.shapes.size)
    known = np.repeat(np.isfinite(sides.doubt), 4)
    tabs, holes = (numbers[known & (sides.shapes.ravel() == shape)] for shape in (TAB, HOLE))
    if not len(tabs) or not len(holes):
        nothing = np.zeros(0)
        return Fits(np.zeros(0, int), np.zeros(0, int), nothing, np.zeros((0, 2)), nothing, nothing, nothing)
    curves = _smoothed(sides.points.reshape(-1, POINTS, 2) / sides.length)
    offset = _find_offset(curves, tabs, holes)
    for _ in range(2):
        fits = _fit(sides, curves, tabs, holes, offset)
        if not len(fits.tab):
            break
        mutual = mutual_best(fits.tab, fits.hole, fits.cost)
        left = float(np.median(fits.gap[mutual]))
        if abs(left) < _OFFSET_LEFT:
            break
        offset += left / 2
    return fits


def _smoothed(curves: Float[np.ndarray, "s p 2"]) -> Float[np.ndarray, "s p 2"]:
    from scipy.ndimage import gaussian_filter1d

    return gaussian_filter1d(curves, _SMOOTH, axis=1, mode="nearest")


def _grown(curves: Float[np.ndarray, "s p 2"], offset: float) -> Float[np.ndarray, "s p 2"]:
    """Sides of pieces that are larger by this much all around, evenly spaced."""
    moved = curves + offset * outwards(curves)
    steps = np.linalg.norm(np.diff(moved, axis=1), axis=2)
    along = np.concatenate([np.zeros((len(moved), 1)), steps.cumsum(1)], 1)
    found = np.empty_like(moved)
    for number, (curve, at) in enumerate(zip(moved, along, strict=True)):
        wanted = np.linspace(0, at[-1], len(curve))
        for axis in range(2):
            found[number, :, axis] = np.interp(wanted, at, curve[:, axis])
    return found


def _apart(tabs: Float[np.ndarray, "t p 2"], holes: Float[np.ndarray, "h p 2"]) -> Float[np.ndarray, "t h"]:
    """Squared distances of all tabs from all holes after the best rigid motion, point by point: one matrix product."""
    one, two = (curves[..., 0] + 1j * curves[..., 1] for curves in (tabs, holes[:, ::-1]))
    one, two = ((curve - curve.mean(1, keepdims=True)).astype(np.complex64) for curve in (one, two))
    sizes = [(np.abs(curve) ** 2).sum(1) for curve in (one, two)]
    return np.maximum(sizes[0][:, None] + sizes[1] - 2 * np.abs(one.conj() @ two.T), 0)


def _find_offset(curves: Float[np.ndarray, "s p 2"], tabs: Int[np.ndarray, "t"], holes: Int[np.ndarray, "h"]) -> float:
    """By how much all outlines are too small, of a side's length: then the best partners are closest."""
    chosen = tabs[:: max(1, len(tabs) // _TELLING)]
    best = []
    for offset in _OFFSETS:
        least = _apart(_grown(curves[chosen], offset), _grown(curves[holes], offset)).min(1)
        best.append(float(np.median(np.sqrt(least))))
    return float(_OFFSETS[int(np.argmin(best))])


def _fit(
    sides: Sides,
    curves: Float[np.ndarray, "s p 2"],
    tabs: Int[np.ndarray, "t"],
    holes: Int[np.ndarray, "h"],
    offset: float,
) -> Fits:
    tab_curves, hole_curves = (np.ascontiguousarray(_grown(curves[chosen], offset)) for chosen in (tabs, holes))
    likely = _likely(_apart(tab_curves, hole_curves), tabs, holes)
    pairs = np.argwhere(likely)
    fits = np.empty((len(pairs), 5))
    backwards = np.ascontiguousarray(hole_curves[:, ::-1])
    threads = torch.get_num_threads()

    def fit(part: slice) -> None:
        fit_sides(tab_curves, backwards, pairs[part], _TOLERANCE, fits[part])

    cuts = np.linspace(0, len(pairs), threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fit, [slice(*ends) for ends in pairwise(cuts)]))
    tab, hole = tabs[pairs[:, 0]], holes[pairs[:, 1]]
    shift = fits[:, [SHIFT_X, SHIFT_Y]] * sides.length
    apart = _corners_apart(sides, tab, hole, fits[:, ANGLE], shift)
    return Fits(tab, hole, fits[:, ANGLE], shift, fits[:, ERROR], apart / sides.length, fits[:, GAP])


def _likely(
    apart: Float[np.ndarray, "t h"], tabs: Int[np.ndarray, "t"], holes: Int[np.ndarray, "h"]
) -> Bool[np.ndarray, "t h"]:
    """Which pairs are among the closest of either side; no piece goes into itself."""
    apart = np.where(tabs[:, None] // 4 == holes // 4, np.inf, apart)
    likely = np.zeros(apart.shape, dtype=bool)
    for axis in range(2):
        most = min(_FITTED, apart.shape[axis]) - 1
        limit = np.partition(apart, most, axis=axis).take([most], axis=axis)
        likely |= apart <= limit
    return likely & np.isfinite(apart)


def _corners_apart(
    sides: Sides,
    tab: Int[np.ndarray, "m"],
    hole: Int[np.ndarray, "m"],
    angle: Float[np.ndarray, "m"],
    shift: Float[np.ndarray, "m 2"],
) -> Float[np.ndarray, "m"]:
    """How far the corners of two sides are from each other, in pixels."""
    squares = np.zeros(len(tab))
    cosine, sine = np.cos(angle), np.sin(angle)
    for of_tab, of_hole in ((0, 1), (1, 0)):
        x, y = sides.corners[tab // 4, (tab + of_tab) % 4].T
        moved = np.stack([cosine * x - sine * y, sine * x + cosine * y], 1) + shift
        squares += ((moved - sides.corners[hole // 4, (hole + of_hole) % 4]) ** 2).sum(1) / 2
    return np.sqrt(squares)


def _colour_difference(pieces: OutlinePieces, sides: Sides, fits: Fits) -> Float[np.ndarray, "m"]:
    """The mean difference of colours along each fitted pair, in units of Lab; single spots don't count for all."""
    colours = side_colours(pieces, sides).reshape(sides.shapes.size, -1, 3).astype(np.float32)
    difference = np.empty(len(fits.tab))
    for part in np.array_split(np.arange(len(fits.tab)), max(1, len(fits.tab) // 4096)):
        apart = np.linalg.norm(colours[fits.tab[part]] - colours[fits.hole[part], ::-1], axis=2)
        difference[part] = np.minimum(apart, 40).mean(1)
    return difference


def _as_matches(fits: Fits, odds: Float[np.ndarray, "m"]) -> Matches:
    """The best few of each side, each in both directions."""
    probable, relative_odds = probabilities(fits.tab, fits.hole, odds)
    told = np.zeros(len(odds), dtype=bool)
    for own in (fits.tab, fits.hole):
        order = np.lexsort((-odds, own))
        first = np.r_[True, own[order][1:] != own[order][:-1]]
        place = np.arange(len(order)) - np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        told[order[place < _TOLD]] = True
    tab, hole, angle = (torch.from_numpy(values[told]) for values in (fits.tab, fits.hole, fits.angle))
    rotation = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], 1).reshape(-1, 2, 2)
    into_hole = Poses(rotation.float(), torch.from_numpy(fits.shift[told]).float())
    back = into_hole.inverse()
    relative = Poses(
        *(torch.cat(both) for both in ((into_hole.rotation, back.rotation), (into_hole.translation, back.translation)))
    )
    channels = np.stack([probable, relative_odds, 1 / (1 + np.exp(-odds))], 1)[told]
    evidence = torch.from_numpy(channels).float().repeat(2, 1)
    first, second = torch.cat([tab, hole]), torch.cat([hole, tab])
    return Matches(first // 4, second // 4, relative, 4 * (first % 4) + second % 4, evidence)


def no_matches() -> Matches:
    """Nothing fits."""
    none = torch.zeros(0, dtype=torch.long)
    return Matches(none, none, Poses.identity(0, 2), none, torch.zeros(0, 3))
