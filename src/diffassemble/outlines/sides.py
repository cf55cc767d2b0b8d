"""The four sides of a jigsaw piece: corners where straight arms meet at a right angle, and tabs, holes and flat sides.

All lengths are relative to the root of a piece's area, so pieces of 60 and of 3,000 pixels are looked at alike. Sides
are numbered clockwise, as everywhere, the first being the one that looks most to the right in the piece's own frame;
each runs clockwise from its first corner to its second.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Int
from numba import njit

from diffassemble.core import OutlinePieces
from diffassemble.core.contours import perimeter, resample, signed_area

FLAT, TAB, HOLE = 0, 1, -1
POINTS = 128
# Points of an outline to the root of the area, while corners are looked for.
_FINE = 128
# Arms of a corner begin this far from it and are this long, in roots of the area. The longer ones are not fooled by
# frayed corners, the shorter ones not by arms that bend soon.
_GAP, _ARMS = 0.02, (0.10, 0.17)
# Deviations of what is measured at true corners: the angle in degrees, how far the arms are from straight, and how far
# the outline stays away from where they cross.
_ANGLE, _STRAIGHT, _ROUND = 17.0, 0.012, 0.025
# So many candidates are combined, no two closer to each other than this.
_CANDIDATES, _APART = 16, 0.08
# Deviations for four corners: their angles in degrees, and logarithms of opposite lengths, of lengths beside those of
# the other pieces, and of the area beside the piece's own.
_SQUARE, _OPPOSITE, _ALIKE, _AREA = 7.0, 0.09, 0.07, 0.35
# A side is flat if it bulges by less than this part of its length.
_BULGE = 0.07
# The deviations of sides, of their length: how far they bulge the other way as well, how far their tab is off the
# middle; how far tabs stand out and the deviation of its logarithm.
_SECOND, _OFF_MIDDLE, _DEPTH, _DEPTH_SPREAD = 0.07, 0.12, 0.25, 0.4
_QUADRUPLES = [np.array(list(combinations(range(n), 4)), dtype=np.intp).reshape(-1, 4) for n in range(_CANDIDATES + 1)]


@dataclass(frozen=True)
class Sides:
    """Four sides of each of n pieces, in the pieces' own frames, in pixels.

    `shapes` are FLAT, TAB or HOLE. `doubt` says how little a piece's outline is that of a jigsaw piece: below 1 for
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
        """What is usual from corner to corner."""
        found = self.lengths[np.isfinite(self.doubt)]
        return float(np.median(found)) if found.size else 0.0


@dataclass(frozen=True)
class _Candidates:
    """Points of one outline that may be corners, in its order, and what speaks against each and each side."""

    curve: Float[np.ndarray, "c 2"]
    index: Int[np.ndarray, "k"]
    place: Float[np.ndarray, "k 2"]
    against: Float[np.ndarray, "k"]
    odd: Float[np.ndarray, "k k"]
    unit: float


def find_sides(pieces: OutlinePieces) -> Sides:
    """Corners and sides of all pieces: first each by itself, then again knowing how long sides usually are."""
    candidates = [_find_candidates(contour.numpy().astype(np.float64)) for contour in pieces.contours]
    alone = [_best_quadruple(found, None) for found in candidates]
    usual = _usual_lengths(candidates, alone)
    chosen = [_best_quadruple(found, usual) for found in candidates]
    count = len(candidates)
    corners, points = np.zeros((count, 4, 2)), np.zeros((count, 4, POINTS, 2))
    shapes, doubt = np.zeros((count, 4), dtype=np.int64), np.full(count, np.inf)
    for number, (found, (quadruple, against)) in enumerate(zip(candidates, chosen, strict=True)):
        if quadruple is not None:
            corners[number], points[number], shapes[number] = _cut_at(found, quadruple)
            doubt[number] = against
    return Sides(corners, points, shapes, doubt)


def _find_candidates(contour: Float[np.ndarray, "c 2"]) -> _Candidates:
    unit = float(np.sqrt(max(signed_area(contour), 1e-9)))
    curve = resample(contour, max(64, round(perimeter(contour) / unit * _FINE)))
    step = perimeter(curve) / len(curve)
    against, place = zip(*(_corner_cost(curve, unit, step, arm) for arm in _ARMS), strict=True)
    cost, places = np.minimum(*against), np.where((against[0] < against[1])[:, None], *place)
    apart = max(1, round(_APART * unit / step))
    kept: list[int] = []
    left = cost.copy()
    while len(kept) < _CANDIDATES and np.isfinite(left.min()):
        kept.append(int(left.argmin()))
        left[np.arange(kept[-1] - apart + 1, kept[-1] + apart) % len(curve)] = np.inf
    chosen = np.sort(np.array(kept))
    return _Candidates(curve, chosen, places[chosen], cost[chosen], _odd_sides(curve, chosen), unit)


def _corner_cost(
    curve: Float[np.ndarray, "c 2"], unit: float, step: float, arm: float
) -> tuple[Float[np.ndarray, "c"], Float[np.ndarray, "c 2"]]:
    """What speaks against each point's being a corner with arms of this length, and where the arms cross."""
    gap, length = max(1, round(_GAP * unit / step)), max(3, round(arm * unit / step))
    after = _lines(curve, gap, length)
    before = tuple(np.roll(found, gap + length - 1 + gap, axis=0) for found in after)
    turn = np.degrees(np.arctan2(_cross(before[1], after[1]), (before[1] * after[1]).sum(1)))
    crossing = _crossings(before[0], before[1], after[0], after[1])
    rounding = np.linalg.norm(crossing - curve, axis=1) / unit
    straight = (before[2] ** 2 + after[2] ** 2) / unit**2
    against = ((turn - 90) / _ANGLE) ** 2 + straight / _STRAIGHT**2 + (rounding / _ROUND) ** 2
    # Where arms hardly meet their crossing means nothing; a blunt corner is drawn to it no further than it is round.
    place = curve + (crossing - curve) * np.minimum(1, 1.5 * _ROUND / np.maximum(rounding, 1e-9))[:, None]
    return against, place


def _lines(curve: Float[np.ndarray, "c 2"], gap: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines through the `length` points that follow each point after a gap: middles, directions, deviations."""
    wrapped = np.concatenate([curve, curve[: gap + length]])
    products = np.stack([*wrapped.T, wrapped[:, 0] ** 2, wrapped[:, 0] * wrapped[:, 1], wrapped[:, 1] ** 2], 1)
    sums = np.concatenate([np.zeros((1, 5)), products.cumsum(0)])
    starts = np.arange(len(curve)) + gap
    x, y, xx, xy, yy = ((sums[starts + length] - sums[starts]) / length).T
    xx, xy, yy = xx - x * x, xy - x * y, yy - y * y
    angle = np.arctan2(2 * xy, xx - yy) / 2
    direction = np.stack([np.cos(angle), np.sin(angle)], 1)
    along = wrapped[starts + length - 1] - wrapped[starts]
    direction *= np.where((direction * along).sum(1) < 0, -1, 1)[:, None]
    narrow = (xx + yy) / 2 - np.hypot((xx - yy) / 2, xy)
    return np.stack([x, y], 1), direction, np.sqrt(np.maximum(narrow, 0))


def outwards(curves: Float[np.ndarray, "m p 2"]) -> Float[np.ndarray, "m p 2"]:
    """Unit vectors that point out of the piece, at each point of pieces' outlines that run clockwise."""
    reach = 2
    padded = np.pad(curves, ((0, 0), (reach, reach), (0, 0)), mode="edge")
    along = padded[:, 2 * reach :] - padded[:, : -2 * reach]
    along /= np.linalg.norm(along, axis=2, keepdims=True) + 1e-12
    return np.stack([along[..., 1], -along[..., 0]], 2)


def _cross(one: Float[np.ndarray, "... 2"], two: Float[np.ndarray, "... 2"]) -> Float[np.ndarray, "..."]:
    return one[..., 0] * two[..., 1] - one[..., 1] * two[..., 0]


def _crossings(one: np.ndarray, along: np.ndarray, two: np.ndarray, other: np.ndarray) -> Float[np.ndarray, "c 2"]:
    """Where lines cross; parallel ones do so far away."""
    sine = _cross(along, other)
    sine = np.where(np.abs(sine) < 1e-3, 1e-3, sine)
    return one + along * (_cross(two - one, other) / sine)[:, None]


def _best_quadruple(
    found: _Candidates, usual: Float[np.ndarray, "2"] | None
) -> tuple[Int[np.ndarray, "4"] | None, float]:
    """The four candidates that make the best rectangle, and what speaks against them; `usual` are two lengths."""
    quadruples = _QUADRUPLES[len(found.index)]
    if not len(quadruples):
        return None, np.inf
    place = found.place[quadruples]
    side = np.roll(place, -1, 1) - place
    length = np.maximum(np.linalg.norm(side, axis=2), 1e-9)
    following = np.roll(side, -1, 1)
    angle = np.degrees(np.arctan2(_cross(side, following), (side * following).sum(2)))
    area = _cross(place[:, 2] - place[:, 0], place[:, 3] - place[:, 1]) / 2
    against = found.against[quadruples].sum(1) + (((angle - 90) / _SQUARE) ** 2).sum(1) / 4
    against += found.odd[quadruples, np.roll(quadruples, -1, 1)].sum(1)
    logs = np.log(length / found.unit)
    against += ((logs[:, :2] - logs[:, 2:]) ** 2).sum(1) / (2 * _OPPOSITE**2)
    against += (np.log(np.maximum(area, 1e-9) / found.unit**2) / _AREA) ** 2
    if usual is not None:
        # Which two sides are the long ones is not known.
        apart = [((logs - np.log(np.roll(usual, k)[[0, 1, 0, 1]] / found.unit)) ** 2).sum(1) for k in range(2)]
        against += np.minimum(*apart) / (4 * _ALIKE**2)
    best = int(against.argmin())
    return quadruples[best], float(against[best]) / 8


@njit(cache=True)
@no_type_check  # a checker would wrap it, and then numba couldn't compile it
def _odd_sides(curve, index):
    """What speaks against the outline from each candidate to each other as a side: it has one tab or hole, near its
    middle, or none."""
    against = np.zeros((len(index), len(index)))
    for one in range(len(index)):
        for two in range(len(index)):
            x, y = curve[index[one]]
            along_x, along_y = curve[index[two], 0] - x, curve[index[two], 1] - y
            square = max(along_x**2 + along_y**2, 1e-9)
            bulge, dent, where = 0.0, 0.0, 0.5
            for step in range((index[two] - index[one]) % len(curve)):
                point = curve[(index[one] + step) % len(curve)]
                across = (along_y * (point[0] - x) - along_x * (point[1] - y)) / square
                if across > max(bulge, dent) or -across > max(bulge, dent):
                    where = (along_x * (point[0] - x) + along_y * (point[1] - y)) / square
                bulge, dent = max(bulge, across), max(dent, -across)
            most = max(bulge, dent)
            against[one, two] = (min(bulge, dent) / _SECOND) ** 2
            if most > _BULGE:
                against[one, two] += ((where - 0.5) / _OFF_MIDDLE) ** 2
                against[one, two] += (np.log(most / _DEPTH) / _DEPTH_SPREAD) ** 2
    return against


def _usual_lengths(
    candidates: list[_Candidates], chosen: list[tuple[Int[np.ndarray, "4"] | None, float]]
) -> Float[np.ndarray, "2"] | None:
    """Lengths of the two pairs of opposite sides that most pieces have; nothing if there are none."""
    pairs = []
    for found, (quadruple, _) in zip(candidates, chosen, strict=True):
        if quadruple is not None:
            place = found.place[quadruple]
            length = np.linalg.norm(np.roll(place, -1, 0) - place, axis=1)
            pairs.append(np.sort((length[:2] + length[2:]) / 2))
    return np.median(np.stack(pairs), 0) if pairs else None


def _cut_at(
    found: _Candidates, quadruple: Int[np.ndarray, "4"]
) -> tuple[Float[np.ndarray, "4 2"], Float[np.ndarray, "4 128 2"], Int[np.ndarray, "4"]]:
    """Corners, evenly spaced points from each to the next, and shapes."""
    index, place = found.index[quadruple], found.place[quadruple]
    first = int((np.roll(place, -1, 0) + place)[:, 0].argmax())
    index, place = np.roll(index, -first), np.roll(place, -first, 0)
    points = np.stack([_between(found.curve, int(index[k]), int(index[(k + 1) % 4])) for k in range(4)])
    return place, points, np.array([_shape(side) for side in points])


def _between(curve: Float[np.ndarray, "c 2"], start: int, end: int) -> Float[np.ndarray, "128 2"]:
    count = (end - start) % len(curve)
    part = curve[(start + np.arange(count + 1)) % len(curve)]
    along = np.concatenate([[0], np.linalg.norm(np.diff(part, axis=0), axis=1).cumsum()])
    wanted = np.linspace(0, along[-1], POINTS)
    return np.stack([np.interp(wanted, along, part[:, axis]) for axis in range(2)], 1)


def _shape(side: Float[np.ndarray, "128 2"]) -> int:
    chord = side[-1] - side[0]
    # The inside of a clockwise outline lies to the right.
    bulge = -_cross(chord / max(float(chord @ chord), 1e-9), side - side[0])
    most = float(bulge[np.abs(bulge).argmax()])
    return FLAT if abs(most) < _BULGE else (TAB if most > 0 else HOLE)
