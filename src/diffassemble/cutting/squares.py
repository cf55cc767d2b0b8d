"""One part of a mask as a rectangle, to a fraction of a pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64
from scipy.spatial import ConvexHull
from skimage.measure import find_contours

# The middle share of every side that its line is fitted to: corners are round in photographs.
_MIDDLE = 0.8
_ROUNDS = 4


@dataclass(frozen=True)
class Square:
    """A rectangle that should be a square: centre (x, y), angle clockwise within ±π/4; `filled`: how much is piece."""

    centre: tuple[float, float]
    angle: float
    width: float
    height: float
    filled: float

    def touches(self, shape: tuple[int, int]) -> bool:
        """Whether it reaches the edge of a picture of (height, width)."""
        reach = max(self.width, self.height) / 2 * (np.cos(self.angle) + abs(np.sin(self.angle)))
        x, y = self.centre
        return bool(min(x, y, shape[1] - x, shape[0] - y) < reach + 0.5)


def fit_square(mask: Bool[np.ndarray, "h w"], corner: tuple[int, int]) -> Square:
    """The rectangle around a part of a mask whose upper left pixel is `corner` (row, column).

    Begins with the smallest rectangle around it, then lays a line through the middle of each side, so that a bite
    or a fringe of shadow at one end does not count.
    """
    padded = np.pad(mask, 2).astype(float)
    contour = max(find_contours(padded, 0.5), key=len)[:, ::-1] - 1.5 + np.array(corner[::-1])
    points = _evenly(contour)
    angle = _smallest_rectangle(contour[ConvexHull(contour).vertices])
    for _ in range(_ROUNDS):
        angle += _slant(points, angle)
    low, high = _box(points, angle)
    turn = _turn(angle)
    x, y = turn @ ((low + high) / 2)
    width, height = high - low
    angle = (angle + np.pi / 4) % (np.pi / 2) - np.pi / 4
    return Square((float(x), float(y)), float(angle), float(width), float(height), float(mask.sum() / (width * height)))


def _turn(angle: float) -> Float64[np.ndarray, "2 2"]:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _evenly(contour: Float64[np.ndarray, "k 2"]) -> Float64[np.ndarray, "m 2"]:
    """Points half a pixel apart along a closed line."""
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(contour, axis=0), axis=1))])
    places = np.arange(0, length[-1], 0.5)
    return np.stack([np.interp(places, length, contour[:, axis]) for axis in range(2)], 1)


def _smallest_rectangle(hull: Float64[np.ndarray, "k 2"]) -> float:
    """Angle of the rectangle of least area around a hull: it lies along one of the hull's edges."""
    edges = np.roll(hull, -1, 0) - hull
    angles = np.arctan2(edges[:, 1], edges[:, 0])

    def area(angle: float) -> float:
        return float(np.prod(np.ptp(hull @ _turn(angle), axis=0)))

    return float(min(angles, key=area))


def _sides(points: Float64[np.ndarray, "m 2"], angle: float) -> list[Float64[np.ndarray, "k 2"]]:
    """The points (along, across) of the middles of the left, right, upper and lower side, in the turned frame."""
    own = points @ _turn(angle)
    low, high = np.percentile(own, 1, axis=0), np.percentile(own, 99, axis=0)
    middle, half = (low + high) / 2, (high - low) / 2
    share = (own - middle) / half
    sides = []
    for axis in range(2):
        along = np.abs(share[:, 1 - axis]) < _MIDDLE
        for sign in (-1, 1):
            chosen = own[along & (sign * share[:, axis] > np.abs(share[:, 1 - axis]))]
            sides.append(chosen[:, [1 - axis, axis]])
    return sides


def _slant(points: Float64[np.ndarray, "m 2"], angle: float) -> float:
    """By how much the four sides ask the frame to be turned further, bites and fringes not counted."""
    slopes, weights = [], []
    for number, side in enumerate(_sides(points, angle)):
        if len(side) < 4:
            continue
        along, across = side.T
        kept = np.abs(across - np.median(across)) < max(1.5, 2 * np.median(np.abs(across - np.median(across))))
        if kept.sum() < 4 or np.ptp(along[kept]) == 0:
            continue
        slope = np.polyfit(along[kept], across[kept], 1)[0]
        slopes.append(np.arctan(slope) * (1 if number >= 2 else -1))
        weights.append(kept.sum())
    return float(np.average(slopes, weights=weights)) if slopes else 0.0


def _box(points: Float64[np.ndarray, "m 2"], angle: float) -> tuple[Float64[np.ndarray, "2"], Float64[np.ndarray, "2"]]:
    """Where the sides lie in the turned frame: the middle of their points."""
    left, right, upper, lower = (
        float(np.median(side[:, 1])) if len(side) else float("nan") for side in _sides(points, angle)
    )
    own = points @ _turn(angle)
    low = np.where(np.isnan([left, upper]), own.min(0), [left, upper])
    high = np.where(np.isnan([right, lower]), own.max(0), [right, lower])
    return low, high
