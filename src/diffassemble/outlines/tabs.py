"""Which tab goes into which hole: all pairs of sides at once, the best fitted closely, and how probable each is.

Lengths are relative to the usual length of a side. What a fit is worth is estimated from the puzzle itself: nearly all
pairs that are each other's best are true, pairs that can't all be true are the others. Odds compare a true pair's
density of costs with the number of wrong partners that a side is to expect.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Complex, Complex64, Complex128, Float, Float32, Float64, Int

from diffassemble.core import Matches, OutlinePieces, Poses
from diffassemble.core.poses import plane_rotations
from diffassemble.outlines.sides import HOLE, POINTS, TAB, Sides, find_sides, outwards

GUMBEL, EULER = float(np.pi / np.sqrt(6)), 0.5772156649
"""of the logarithm of a Weibull distribution: its deviation times the slope, and its mean below the scale"""


@dataclass(frozen=True)
class TabMatchConfig:
    """How sides are fitted to each other, and how costs (by their natural logarithm) become log odds; lengths relative
    to a side. Chosen on made puzzles and training pieces."""

    fitted: int = 30
    """of each side, so many partners are fitted closely"""
    points: int = 64
    """points of a side while it is compared"""
    listed: int = 16
    """and so many become matches"""
    smoothing: float = 1.5
    """points (of 128) by which curves are smoothed: pixels vanish, shapes stay"""
    offsets: tuple[float, ...] = tuple(np.linspace(-0.035, 0.035, 15).tolist())
    """outlines may be so much too small or too large: the segmentation of photographs is off by a pixel or two"""
    offset_left: float = 0.0004
    """an offset that remains after the first fits is corrected from here on"""
    telling: int = 256
    """so many sides estimate the offset"""
    trimmed: int = 3
    """points left out at both ends, where corners are frayed"""
    steps: int = 5
    """steps of least squares"""
    ends: float = 0.2
    """weight of the distance of corners beside that of the curves"""
    most: float = 9.0
    """no log odds are larger, in either direction"""
    least_spread: float = 0.25
    """least deviation of costs of true pairs"""
    slopes: tuple[float, float] = (2.0, 14.0)
    """the number of wrong partners grows with a power of the cost between these"""
    ranks: int = 8
    """so many wrong partners show how common a side's shape is"""
    shrink: float = 2.0
    """where few are known, the usual shape counts as so many"""
    enough: int = 4
    """with fewer sides than this, rivals are not estimated"""
    depth: float = 0.045
    """colours are read so deep inside, where neither fringe nor shadow reaches"""
    least_depth: float = 2.0
    """and at least so many pixels"""
    places: int = 32
    """places along a side at which colours are compared"""
    most_difference: float = 40.0
    """greater differences, in units of Lab, count as this: single spots don't count for all"""
    width: float = 0.25
    """densities of the logarithm of differences are smoothed by this"""
    colour: tuple[float, float] = (-3.0, 3.5)
    """bounds of log odds by colour"""
    half: int = 15
    """with so many true pairs colours count half"""
    shares: tuple[float, float] = (0.05, 0.95)
    """bounds of the share of sides that have a partner"""
    estimates: int = 6
    """how often that share is estimated"""
    coloured: bool = True
    """colours count where pieces have any"""


TABS = TabMatchConfig()


@dataclass(frozen=True)
class Fits:
    """Fitted pairs of sides, numbered 4·piece + side: the motion of the tab's piece into the hole's frame, and cost.

    The shift is in pixels; cost and gap are relative to a side.
    """

    tab: Int[np.ndarray, "m"]
    hole: Int[np.ndarray, "m"]
    angle: Float[np.ndarray, "m"]
    shift: Float[np.ndarray, "m 2"]
    cost: Float[np.ndarray, "m"]
    gap: Float[np.ndarray, "m"]


def match_tabs(pieces: OutlinePieces, sides: Sides | None = None, config: TabMatchConfig = TABS) -> Matches:
    """The most probable partners of every side, in both directions.

    Channels of evidence: the probability that two sides belong together, the same odds over those of the best partner
    of either side, and the logistic function of the log odds by shape and colour, whatever the rivals.
    """
    sides = find_sides(pieces) if sides is None else sides
    fits = fit_all(sides, config)
    if fits is None:
        return Matches.none(2)
    odds = shape_odds(fits.tab, fits.hole, fits.cost, config)
    if pieces.coloured and config.coloured:
        odds = odds + colour_odds(fits.tab, fits.hole, odds, side_colours(pieces, sides, config), config)
    return _as_matches(fits, np.clip(odds, -config.most, config.most), config)


def fit_all(sides: Sides, config: TabMatchConfig = TABS) -> Fits | None:
    """Fits of the best partners of every side, of outlines as much larger or smaller as makes them fit best."""
    from scipy.ndimage import gaussian_filter1d

    numbers, known = np.arange(sides.shapes.size), np.repeat(np.isfinite(sides.doubt), 4)
    tabs, holes = (numbers[known & (sides.shapes.ravel() == shape)] for shape in (TAB, HOLE))
    if not len(tabs) or not len(holes):
        return None
    curves = gaussian_filter1d(sides.points.reshape(-1, POINTS, 2) / sides.length, config.smoothing, 1, mode="nearest")
    chosen, closest = tabs[:: max(1, len(tabs) // config.telling)], []
    for offset in config.offsets:
        least = _correlation(*(_grown(curves[some], offset, config.points) for some in (chosen, holes)))[1].min(1)
        closest.append(float(np.median(np.sqrt(least))))
    offset = config.offsets[int(np.argmin(closest))]
    fits = _fit(sides, curves, tabs, holes, offset, config)
    if not len(fits.tab):  # all tabs and holes are of one piece
        return None
    left = float(np.median(fits.gap[mutual_best(fits.tab, fits.hole, fits.cost)]))
    if abs(left) < config.offset_left:
        return fits
    return _fit(sides, curves, tabs, holes, offset + left / 2, config)


def _grown(curves: Float[np.ndarray, "s p 2"], offset: float, points: int) -> Complex128[np.ndarray, "s {points}"]:
    """Sides of pieces that are larger by this much all around, as evenly spaced complex numbers."""
    moved = curves + offset * outwards(curves)
    steps = np.linalg.norm(np.diff(moved, axis=1), axis=2)
    along = np.concatenate([np.zeros((len(moved), 1)), steps.cumsum(1)], 1)
    # All at once: the next side begins where this one has ended.
    start = 2.0 * np.arange(len(moved))[:, None]
    at, wanted = along / along[:, -1:] + start, np.linspace(0, 1, points) + start
    return np.interp(wanted, at.ravel(), moved[..., 0].ravel() + 1j * moved[..., 1].ravel())


def _correlation(
    tabs: Complex128[np.ndarray, "t p"], holes: Complex128[np.ndarray, "h p"]
) -> tuple[Complex64[np.ndarray, "t h"], Float[np.ndarray, "t h"]]:
    """Σ conj(tab) · hole, point by point about their means, whose angle is that of the best rigid motion; and the
    squared distance that it leaves. One matrix product."""
    one, two = ((curve - curve.mean(1, keepdims=True)).astype(np.complex64) for curve in (tabs, holes[:, ::-1]))
    sizes = [(np.abs(curve) ** 2).sum(1) for curve in (one, two)]
    product = one.conj() @ two.T
    return product, np.maximum(sizes[0][:, None] + sizes[1] - 2 * np.abs(product), 0)


def _fit(
    sides: Sides,
    curves: Float[np.ndarray, "s p 2"],
    tabs: Int[np.ndarray, "t"],
    holes: Int[np.ndarray, "h"],
    offset: float,
    config: TabMatchConfig,
) -> Fits:
    tab_curves, hole_curves = (_grown(curves[chosen], offset, config.points) for chosen in (tabs, holes))
    product, apart = _correlation(tab_curves, hole_curves)
    pairs = np.argwhere(_closest(np.where(tabs[:, None] // 4 == holes // 4, np.inf, apart), config.fitted))
    angles = np.angle(product[tuple(pairs.T)])
    parts = np.array_split(np.arange(len(pairs)), max(1, len(pairs) // 1024))

    def fit(part: Int[np.ndarray, "k"]) -> Float[np.ndarray, "5 k"]:
        return fit_sides(tab_curves[pairs[part, 0]], hole_curves[pairs[part, 1], ::-1], angles[part], config)

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        angle, x, y, error, gap = np.concatenate(list(pool.map(fit, parts)), 1)
    tab, hole, shift = tabs[pairs[:, 0]], holes[pairs[:, 1]], np.stack([x, y], 1) * sides.length
    turn = plane_rotations(torch.from_numpy(angle)).numpy()
    squares = np.zeros(len(pairs))
    for of_tab, of_hole in ((0, 1), (1, 0)):
        corner = np.einsum("mij,mj->mi", turn, sides.corners[tab // 4, (tab + of_tab) % 4]) + shift
        squares += ((corner - sides.corners[hole // 4, (hole + of_hole) % 4]) ** 2).sum(1) / 2
    cost = np.sqrt(error**2 + config.ends**2 * squares / sides.length**2) + 1e-6
    return Fits(tab, hole, angle, shift, cost, gap)


def fit_sides(
    tabs: Complex128[np.ndarray, "m p"],
    holes: Complex128[np.ndarray, "m p"],
    angle: Float[np.ndarray, "m"],
    config: TabMatchConfig = TABS,
) -> Float64[np.ndarray, "5 m"]:
    """Bring tabs onto holes by point-to-line steps from rotations by `angle`: angle, shift x and y, error and gap.

    Both curves run along each other, so holes backwards. A point z of a tab is e^(i·angle) z + shift in the hole's
    frame. The error is the root mean square distance of both curves from each other; the gap is its signed mean,
    positive where pieces are apart.
    """
    count, centre = tabs.shape[1], tabs.mean(1)
    inside = slice(config.trimmed, count - config.trimmed)
    tabs, holes = (tabs - centre[:, None]).astype(np.complex64), holes.astype(np.complex64)
    tab_ways, ways = _tangents(tabs), _tangents(holes)
    shift, near = holes.mean(1), np.tile(np.arange(count)[inside], (len(tabs), 1))
    for _ in range(config.steps):
        moved = tabs[:, inside] * np.exp(1j * angle).astype(np.complex64)[:, None]
        offset, way, near = _offsets(moved + shift[:, None], holes, ways, near)
        rows = np.stack([(moved * way.conj()).real, -way.imag, way.real], 1)
        normal = rows @ rows.transpose(0, 2, 1) + np.diag([1e-9, 1e-3, 1e-3])
        step = -np.linalg.solve(normal, rows @ offset.imag[..., None])[..., 0]
        angle, shift = angle + step[:, 0], shift + (step[:, 1] + 1j * step[:, 2])
    turn = np.exp(1j * angle).astype(np.complex64)[:, None]
    moved, squares, gaps = tabs * turn + shift[:, None], [], []
    for points, line, along in ((moved, holes, ways), (holes, moved, tab_ways * turn)):
        _, _, near = _offsets(points[:, inside], line, along, near)
        offset, _, _ = _offsets(points[:, inside], line, along, near)
        squares.append((offset.imag**2).mean(1))
        gaps.append(offset.imag.mean(1))
        near = np.tile(np.arange(count)[inside], (len(tabs), 1))
    shift = shift - turn[:, 0] * centre
    error, gap = np.sqrt((squares[0] + squares[1]) / 2), (gaps[0] - gaps[1]) / 2
    return np.stack([angle, shift.real, shift.imag, error, gap]).astype(np.float64)


def _tangents(curves: Complex64[np.ndarray, "m p"]) -> Complex64[np.ndarray, "m p"]:
    """Unit vectors along curves."""
    padded = np.pad(curves, ((0, 0), (1, 1)), mode="edge")
    along = padded[:, 2:] - padded[:, :-2]
    return along / (np.abs(along) + 1e-12)


def _offsets(
    points: Complex[np.ndarray, "m q"],
    line: Complex[np.ndarray, "m p"],
    ways: Complex64[np.ndarray, "m p"],
    near: Int[np.ndarray, "m q"],
) -> tuple[Complex[np.ndarray, "m q"], Complex64[np.ndarray, "m q"], Int[np.ndarray, "m q"]]:
    """Points as seen from the points `near` of an evenly spaced line, along and across its tangents; these tangents;
    and the numbers of nearer points of the line."""
    way = np.take_along_axis(ways, near, 1)
    offset = (points - np.take_along_axis(line, near, 1)) * way.conj()
    further = np.rint(offset.real / np.abs(np.diff(line)).mean(1, keepdims=True)).astype(int)
    return offset, way, np.clip(near + further, 0, line.shape[1] - 1)


def _closest(apart: Float[np.ndarray, "t h"], count: int) -> Bool[np.ndarray, "t h"]:
    """Which pairs are among the closest of either side."""
    likely = np.zeros(apart.shape, dtype=bool)
    for axis in range(2):
        most = min(count, apart.shape[axis]) - 1
        likely |= apart <= np.partition(apart, most, axis=axis).take([most], axis=axis)
    return likely & np.isfinite(apart)


def _as_matches(fits: Fits, odds: Float[np.ndarray, "m"], config: TabMatchConfig) -> Matches:
    """The best few of each side, each in both directions."""
    probable, relative_odds = probabilities(fits.tab, fits.hole, odds)
    listed = (_rank(fits.tab, -odds) < config.listed) | (_rank(fits.hole, -odds) < config.listed)
    tab, hole, angle, shift = (
        torch.from_numpy(values[listed]) for values in (fits.tab, fits.hole, fits.angle, fits.shift)
    )
    channels = torch.from_numpy(np.stack([probable, relative_odds, 1 / (1 + np.exp(-odds))], 1)[listed])
    pose = Poses(plane_rotations(angle).float(), shift.float())
    return mirrored(Matches(tab // 4, hole // 4, pose, 4 * (tab % 4) + hole % 4, channels.float()))


def mirrored(matches: Matches) -> Matches:
    """Matches of pieces with four sides, then all of them the other way round."""
    back = matches.pose.inverse()
    rotation = torch.cat([matches.pose.rotation, back.rotation])
    return Matches(
        torch.cat([matches.first, matches.second]),
        torch.cat([matches.second, matches.first]),
        Poses(rotation, torch.cat([matches.pose.translation, back.translation])),
        torch.cat([matches.slot, 4 * (matches.slot % 4) + matches.slot // 4]),
        matches.evidence.repeat(2, 1),
    )


def _rank(side: Int[np.ndarray, "m"], value: Float[np.ndarray, "m"]) -> Int[np.ndarray, "m"]:
    """The rank of each pair among those of its side, the least value first."""
    order = np.lexsort((value, side))
    rank = np.empty(len(side), int)
    rank[order] = np.arange(len(side)) - np.searchsorted(side[order], side[order])
    return rank


def mutual_best(
    tab: Int[np.ndarray, "m"], hole: Int[np.ndarray, "m"], cost: Float[np.ndarray, "m"]
) -> Bool[np.ndarray, "m"]:
    """Which pairs are the cheapest of both of their sides."""
    return (_rank(tab, cost) == 0) & (_rank(hole, cost) == 0)


def shape_odds(
    tab: Int[np.ndarray, "m"], hole: Int[np.ndarray, "m"], cost: Float[np.ndarray, "m"], config: TabMatchConfig = TABS
) -> Float[np.ndarray, "m"]:
    """Log odds of a true pair against the wrong partners that its sides are to expect at this cost.

    The number of wrong partners grows with a power of the cost, so the least cost among them is Weibull distributed;
    its scale is a side's own, since odd shapes have fewer rivals than common ones. Costs of true pairs are normal in
    the logarithm.
    """
    mutual, logs = mutual_best(tab, hole, cost), np.log(cost)
    middle = float(np.median(logs[mutual]))
    spread = max(config.least_spread, 1.4826 * float(np.median(np.abs(logs[mutual] - middle))))
    expected = [_rivals(side, logs, ~mutual, config) for side in (tab, hole)]
    # What fits better than most true pairs do is worth no less.
    at = (np.maximum(logs, middle) - middle) / spread
    density = -(at**2) / 2 - np.log(spread * np.sqrt(2 * np.pi))
    return np.clip(density - sum(expected) / 2, -config.most, config.most)


def _rivals(
    side: Int[np.ndarray, "m"], logs: Float[np.ndarray, "m"], wrong: Bool[np.ndarray, "m"], config: TabMatchConfig
) -> Float[np.ndarray, "m"]:
    """The logarithm of how many wrong partners sides are to expect, per unit of the logarithm of the cost."""
    ranked = np.full((int(side.max()) + 1, config.ranks), np.nan)
    rank = _rank(side[wrong], logs[wrong])
    near = rank < config.ranks
    ranked[side[wrong][near], rank[near]] = logs[wrong][near]
    least = ranked[:, 0][np.isfinite(ranked[:, 0])]
    if len(least) < config.enough:
        # Hardly any rivals: as if they began where a true pair is twice as bad as usual.
        return np.log(config.slopes[0]) + config.slopes[0] * (logs - np.median(logs) - np.log(2))
    slope = float(np.clip(GUMBEL / max(least.std(), 1e-3), *config.slopes))
    # Where one wrong partner is to be expected, by all but the closest one; drawn to what is usual where few are known.
    scales = ranked[:, 1:] - np.log(np.arange(2, config.ranks + 1)) / slope
    known = np.isfinite(scales)
    usual = float(scales[known].mean()) if known.any() else float(least.mean())
    own = (np.where(known, scales, 0).sum(1) + config.shrink * usual) / (known.sum(1) + config.shrink)
    # How the closest one is spread about that scale.
    left = ranked[:, 0] - own
    left = left[np.isfinite(left)]
    slope = float(np.clip(GUMBEL / max(left.std(), 1e-3), *config.slopes))
    return np.log(slope) + slope * (logs - own[side] - float(left.mean())) - EULER


def colour_odds(
    tab: Int[np.ndarray, "m"],
    hole: Int[np.ndarray, "m"],
    odds: Float[np.ndarray, "m"],
    colours: Float[np.ndarray, "s places 3"],
    config: TabMatchConfig = TABS,
) -> Float[np.ndarray, "m"]:
    """Log odds by the colours on both sides of a seam: how much more often true pairs differ so little than others."""
    from scipy.ndimage import gaussian_filter1d

    apart = np.linalg.norm(colours[tab] - colours[hole, ::-1], axis=2)
    logs = np.log1p(np.minimum(apart, config.most_difference).mean(1))
    probable, _ = probabilities(tab, hole, odds)
    true, wrong = probable > 0.8, probable < 0.05
    if true.sum() < 5 or wrong.sum() < 5:
        return np.zeros(len(odds))
    edges = np.linspace(0, np.log1p(60.0), 65)
    step, doubt, densities = edges[1], 1.0 / (true.sum() + 10), []
    for chosen in (true, wrong):
        share = np.histogram(logs[chosen], edges)[0] / (chosen.sum() * step)
        densities.append(gaussian_filter1d(share, config.width / step, mode="constant") + doubt)
    # Colours that differ more are never more evidence for a pair.
    ratio = np.minimum.accumulate(np.clip(np.log(densities[0] / densities[1]), *config.colour))
    return np.interp(logs, edges[:-1] + step / 2, ratio) * true.sum() / (true.sum() + config.half)


def side_colours(
    pieces: OutlinePieces, sides: Sides, config: TabMatchConfig = TABS
) -> Float32[np.ndarray, "s places 3"]:
    """CIE Lab colours along each side, in the direction in which the side runs."""
    from scipy.ndimage import map_coordinates
    from skimage.color import rgb2lab

    normals = outwards(sides.points.reshape(-1, POINTS, 2)).reshape(sides.points.shape)
    # The middle of the first pixel is half a pixel from the corner that coordinates count from.
    inside = sides.points - max(config.depth * sides.length, config.least_depth) * normals
    inside += pieces.origins.double().numpy()[:, None, None] - 0.5
    found = np.empty((*sides.points.shape[:3], 3))
    for number, texture in enumerate(pieces.textures):
        x, y = np.moveaxis(inside[number], -1, 0)
        levels = [map_coordinates(plane, (y, x), order=1, mode="nearest") for plane in texture[:3].numpy()]
        found[number] = np.stack(levels, -1)
    return rgb2lab(found.reshape(sides.shapes.size, config.places, -1, 3).mean(2) / 255).astype(np.float32)


def probabilities(
    tab: Int[np.ndarray, "m"], hole: Int[np.ndarray, "m"], odds: Float[np.ndarray, "m"], config: TabMatchConfig = TABS
) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "m"]]:
    """How probable each pair is, given all rivals of its two sides and that its partner may be missing; and its odds
    over those of the best of them.

    How many sides have a partner at all is what the probabilities themselves add up to.
    """
    ratio = np.exp(odds)
    rivals, best = np.zeros(len(odds)), np.zeros(len(odds))
    for side in (tab, hole):
        most = np.zeros(int(side.max()) + 1)
        np.maximum.at(most, side, ratio)
        rivals += np.bincount(side, ratio)[side] - ratio
        best = np.maximum(best, most[side])
    fewer, share, probable = min(len(np.unique(tab)), len(np.unique(hole))), 0.5, ratio
    for _ in range(config.estimates):
        probable = ratio / ((1 - share) / share + ratio + rivals)
        share = float(np.clip(probable.sum() / fewer, *config.shares))
    return probable, ratio / best
