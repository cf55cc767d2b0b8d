"""The four sides of a jigsaw piece: corners where straight arms meet at a right angle, and tabs, holes and flat sides.

All lengths are relative to the root of a piece's area, so pieces of 60 and of 3,000 pixels are looked at alike. Sides
are numbered clockwise, as everywhere, the first being the one that looks most to the right in the piece's own frame;
each runs clockwise from its first corner to its second.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Complex128, Float, Int

from diffassemble.core import OutlinePieces
from diffassemble.core.contours import perimeter, resample, signed_area

FLAT, TAB, HOLE = 0, 1, -1
POINTS = 128
"""points of a side"""


@dataclass(frozen=True)
class SidesConfig:
    """How corners are found; lengths relative to the root of a piece's area, deviations measured at true corners of
    made and photographed training pieces."""

    fine: int = 128
    """points of an outline to that root, while corners are looked for"""
    gap: float = 0.02
    """arms of a corner begin this far from it"""
    arms: tuple[float, float] = (0.10, 0.17)
    """their lengths: the longer ones are not misled by frayed corners, the shorter ones not by arms that bend soon"""
    angle: float = 17.0
    """deviation of the angle at a corner, in degrees"""
    straight: float = 0.012
    """deviation of its arms from straight lines"""
    rounding: float = 0.025
    """deviation of the distance of the outline from where the arms cross"""
    candidates: int = 16
    """so many are combined to four; 24 take five times as long"""
    apart: float = 0.08
    """least distance of two candidates along the outline"""
    square: float = 7.0
    """deviation of the angles between four corners, in degrees"""
    opposite: float = 0.09
    """of the logarithm of the ratio of opposite lengths"""
    alike: float = 0.07
    """of the logarithm of the ratio of lengths to those of the other pieces"""
    area: float = 0.35
    """of the logarithm of the ratio of the area between the corners to the piece's own"""
    bulge: float = 0.07
    """a side that bulges by less than this share of its length is flat"""
    second: float = 0.07
    """deviation of how far a side bulges the other way, of its length"""
    off_middle: float = 0.12
    """of the place of its tab from the middle, of its length"""
    depth: tuple[float, float] = (0.25, 0.4)
    """usual height of a tab, of a side's length, and deviation of its logarithm"""


CONFIG = SidesConfig()
_FOURS = [
    np.array(list(combinations(range(count), 4)), dtype=np.intp).reshape(-1, 4)
    for count in range(CONFIG.candidates + 1)
]


@dataclass(frozen=True)
class Sides:
    """Four sides of each of n pieces, in the pieces' own frames, in pixels.

    `shapes` are FLAT, TAB or HOLE. `doubt` is how little a piece's outline is that of a jigsaw piece: below 1 for
    nearly all of them, infinite where no four corners were found; `points` and `corners` of such pieces mean nothing.
    """

    corners: Float[np.ndarray, "n 4 2"]
    points: Float[np.ndarray, "n 4 128 2"]
    shapes: Int[np.ndarray, "n 4"]
    doubt: Float[np.ndarray, "n"]

    @property
    def lengths(self) -> Float[np.ndarray, "n 4"]:
        """From corner to corner."""
        return np.linalg.norm(np.roll(self.corners, -1, 1) - self.corners, axis=2)

    @property
    def length(self) -> float:
        """The usual length from corner to corner."""
        found = self.lengths[np.isfinite(self.doubt)]
        return float(np.median(found)) if found.size else 0.0


@dataclass(frozen=True)
class _Candidates:
    """Points of one outline (c complex numbers) that may be corners, in its order, and what speaks against each (k) and
    against each side (k, k)."""

    curve: Complex128[np.ndarray, "c"]
    index: Int[np.ndarray, "k"]
    place: Complex128[np.ndarray, "k"]
    against: Float[np.ndarray, "k"]
    odd: Float[np.ndarray, "k k"]
    unit: float


Corners = tuple[Int[np.ndarray, "4"] | None, float]
"""which candidates are the corners, and what speaks against them"""


def find_sides(pieces: OutlinePieces) -> Sides:
    """Corners and sides of all pieces: first of each alone, then again knowing the usual lengths of sides."""
    candidates = [_find_candidates(contour.numpy().astype(np.float64)) for contour in pieces.contours]
    chosen, count = [_best_corners(found, None) for found in candidates], len(candidates)
    lengths = [
        np.abs(np.roll(found.place[four], -1) - found.place[four])
        for found, (four, _) in zip(candidates, chosen, strict=True)
        if four is not None
    ]
    if lengths:
        usual = np.median([np.sort((length[:2] + length[2:]) / 2) for length in lengths], 0)
        chosen = [_best_corners(found, usual) for found in candidates]
    corners, points = np.zeros((count, 4, 2)), np.zeros((count, 4, POINTS, 2))
    shapes, doubt = np.zeros((count, 4), dtype=np.int64), np.full(count, np.inf)
    for number, (found, (four, against)) in enumerate(zip(candidates, chosen, strict=True)):
        if four is None:
            continue
        first = int((np.roll(found.place[four], -1) + found.place[four]).real.argmax())
        four = np.roll(four, -first)
        doubt[number], corners[number] = against, _pairs(found.place[four])
        for side, (start, end) in enumerate(zip(found.index[four], np.roll(found.index[four], -1), strict=True)):
            part = np.roll(found.curve, -start)[: (end - start) % len(found.curve) + 1]
            along = np.concatenate([[0], np.abs(np.diff(part)).cumsum()])
            even = np.interp(np.linspace(0, along[-1], POINTS), along, part)
            points[number, side] = _pairs(even)
            # The inside of a clockwise outline is to the right.
            bulge = -((even - even[0]) / (even[-1] - even[0] or 1e-9)).imag
            most = float(bulge[np.abs(bulge).argmax()])
            shapes[number, side] = FLAT if abs(most) < CONFIG.bulge else (TAB if most > 0 else HOLE)
    return Sides(corners, points, shapes, doubt)


def _pairs(curve: Complex128[np.ndarray, "p"]) -> Float[np.ndarray, "p 2"]:
    return np.stack([curve.real, curve.imag], 1)


def outwards(curves: Float[np.ndarray, "m p 2"]) -> Float[np.ndarray, "m p 2"]:
    """Unit vectors that point out of the piece, at each point of pieces' outlines that run clockwise."""
    padded = np.pad(curves, ((0, 0), (2, 2), (0, 0)), mode="edge")
    along = padded[:, 4:] - padded[:, :-4]
    along /= np.linalg.norm(along, axis=2, keepdims=True) + 1e-12
    return np.stack([along[..., 1], -along[..., 0]], 2)


def _find_candidates(contour: Float[np.ndarray, "c 2"]) -> _Candidates:
    unit = float(np.sqrt(max(signed_area(contour), 1e-9)))
    even = resample(contour, max(64, round(perimeter(contour) / unit * CONFIG.fine)))
    curve, step = even[:, 0] + 1j * even[:, 1], perimeter(even) / len(even)
    against, place = zip(*(_corner_cost(curve, unit, step, arm) for arm in CONFIG.arms), strict=True)
    cost, places = np.minimum(*against), np.where(against[0] < against[1], *place)
    apart = max(1, round(CONFIG.apart * unit / step))
    kept: list[int] = []
    left = cost.copy()
    while len(kept) < CONFIG.candidates and np.isfinite(left.min()):
        kept.append(int(left.argmin()))
        left[np.arange(kept[-1] - apart + 1, kept[-1] + apart) % len(curve)] = np.inf
    chosen = np.sort(np.array(kept))
    return _Candidates(curve, chosen, places[chosen], cost[chosen], _odd_sides(curve, chosen), unit)


def _corner_cost(
    curve: Complex128[np.ndarray, "c"], unit: float, step: float, arm: float
) -> tuple[Float[np.ndarray, "c"], Complex128[np.ndarray, "c"]]:
    """What speaks against each point's being a corner with arms of this length, and where the arms cross."""
    gap, length = max(1, round(CONFIG.gap * unit / step)), max(3, round(arm * unit / step))
    # Lines through the points of the arm after each point: E z² − (E z)² has twice the angle of the line.
    wrapped = np.concatenate([curve, curve[: gap + length]])
    sums = np.concatenate([np.zeros((1, 3)), np.stack([wrapped, wrapped**2, np.abs(wrapped) ** 2], 1).cumsum(0)])
    starts = np.arange(len(curve)) + gap
    after, square, total = ((sums[starts + length] - sums[starts]) / length).T
    spread = square - after**2
    way = np.exp(0.5j * np.angle(spread))
    way *= np.where((way.conj() * (wrapped[starts + length - 1] - wrapped[starts])).real < 0, -1, 1)
    narrow = np.maximum((total.real - np.abs(after) ** 2 - np.abs(spread)) / 2, 0)
    # The arm before a point is that after an earlier one.
    before, way_before, narrow_before = (np.roll(found, gap + length - 1 + gap) for found in (after, way, narrow))
    turn, sine = np.degrees(np.angle(way * way_before.conj())), (way_before.conj() * way).imag
    far = ((after - before).conj() * way).imag / np.where(np.abs(sine) < 1e-3, 1e-3, sine)
    crossing = before + way_before * far
    rounding = np.abs(crossing - curve) / unit
    against = ((turn - 90) / CONFIG.angle) ** 2 + (rounding / CONFIG.rounding) ** 2
    against += (narrow + narrow_before) / (unit * CONFIG.straight) ** 2
    # Where arms hardly meet their crossing means nothing; a blunt corner is drawn to it no further than it is round.
    return against, curve + (crossing - curve) * np.minimum(1, 1.5 * CONFIG.rounding / np.maximum(rounding, 1e-9))


def _odd_sides(curve: Complex128[np.ndarray, "c"], index: Int[np.ndarray, "k"]) -> Float[np.ndarray, "k k"]:
    """What speaks against the outline from each candidate to each other as a side: it has one tab or hole, near its
    middle, or none."""
    against = np.zeros((len(index), len(index)))
    for one, start in enumerate(index):
        # Every second point from this candidate up to each of the others, seen along the chord between the two.
        chord = curve[index] - curve[start]
        seen = (np.roll(curve, -start)[::2] - curve[start]) / np.where(chord == 0, 1e-9, chord)[:, None]
        inside = 2 * np.arange(seen.shape[1]) < ((index - start) % len(curve))[:, None]
        across = np.where(inside, -seen.imag, 0.0)
        bulge, dent = np.maximum(across.max(1), 0), np.maximum(-across.min(1), 0)
        most, where = np.maximum(bulge, dent), seen.real[np.arange(len(index)), np.abs(across).argmax(1)]
        height = np.log(np.maximum(most, 1e-9) / CONFIG.depth[0]) / CONFIG.depth[1]
        tab = ((where - 0.5) / CONFIG.off_middle) ** 2 + height**2
        against[one] = (np.minimum(bulge, dent) / CONFIG.second) ** 2 + np.where(most > CONFIG.bulge, tab, 0)
    return against


def _best_corners(found: _Candidates, usual: Float[np.ndarray, "2"] | None) -> Corners:
    """The four candidates that make the best rectangle, and what speaks against them; `usual` are two lengths."""
    fours = _FOURS[len(found.index)]
    if not len(fours):
        return None, np.inf
    place = found.place[fours]
    side = np.roll(place, -1, 1) - place
    angle = np.degrees(np.angle(np.roll(side, -1, 1) * side.conj()))
    area = ((place[:, 2] - place[:, 0]).conj() * (place[:, 3] - place[:, 1])).imag / 2
    logs = np.log(np.maximum(np.abs(side), 1e-9) / found.unit)
    against = found.against[fours].sum(1) + (((angle - 90) / CONFIG.square) ** 2).sum(1) / 4
    against += found.odd[fours, np.roll(fours, -1, 1)].sum(1)
    against += ((logs[:, :2] - logs[:, 2:]) ** 2).sum(1) / (2 * CONFIG.opposite**2)
    against += (np.log(np.maximum(area, 1e-9) / found.unit**2) / CONFIG.area) ** 2
    if usual is not None:
        # Which two sides are the long ones is not known.
        apart = [((logs - np.log(np.roll(usual, k)[[0, 1, 0, 1]] / found.unit)) ** 2).sum(1) for k in range(2)]
        against += np.minimum(*apart) / (4 * CONFIG.alike**2)
    best = int(against.argmin())
    return fours[best], float(against[best]) / 8
