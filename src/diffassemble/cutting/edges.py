"""Squares of one common size, moved to where the picture has sharp straight edges.

A mask ends where colours stop to differ from the background: too early at pieces of the same colour, too late in
shadows. An edge that runs along a whole side is neither, however faint it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64
from scipy import ndimage

from diffassemble.cutting.squares import Square

# Pixels between two looks, and how far around a mask's square an edge may lie, as a share of its side.
_STEP = 0.5
_REACH = 0.2
_TILTS = np.deg2rad(np.arange(-4, 4.1, 1))
# The middle share of a side that is looked at.
_MIDDLE = 0.8
_LINES = 21
# A mask larger than this is no square with its shadow.
_TOO_LARGE = 1.4
# How much more edge a tilt of one radian must show.
_DOUBT = 4.0
_SIZES = np.arange(0.8, 1.06, 0.005)


@dataclass(frozen=True)
class Profiles:
    """How much edge there is along lines across a piece: `across[0]` by x and `across[1]` by y in its turned frame."""

    places: Float64[np.ndarray, "u"]
    across: Float64[np.ndarray, "2 u"]

    def at(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The amounts at places along both axes."""
        x, y = (np.interp(places, self.places, line) for line in self.across)
        return x, y

    def best(self, side: float) -> tuple[float, tuple[float, float]]:
        """How much edge the best square of this side has, and its shift along x and y."""
        half = side / 2
        shifts = np.arange(-_REACH * side, _REACH * side + _STEP / 2, _STEP / 2)
        near, far = self.at(shifts - half), self.at(shifts + half)
        totals = [one + two for one, two in zip(near, far, strict=True)]
        chosen = [int(total.argmax()) for total in totals]
        amount = sum(float(total[index]) for total, index in zip(totals, chosen, strict=True))
        return amount, (float(shifts[chosen[0]]), float(shifts[chosen[1]]))

    def free(self) -> tuple[float, float, float]:
        """How much edge the best rectangle of any size has, its width and its height."""
        middle = self.places < 0
        amounts, sizes = [], []
        for line in self.across:
            low, high = line[middle].argmax(), line[~middle].argmax()
            amounts.append(line[middle][low] + line[~middle][high])
            sizes.append(self.places[~middle][high] - self.places[middle][low])
        return float(sum(amounts)), float(sizes[0]), float(sizes[1])


def sharpen(colours: Float64[np.ndarray, "3 h w"], squares: list[Square]) -> list[Square]:
    """The same squares at one common size where their edges are; the sizes of those that clearly differ stay theirs."""
    rough = float(np.median([(square.width, square.height) for square in squares]))
    profiles = [_profiles(colours, square, rough) for square in squares]
    amounts = [sum(profile.best(rough * size)[0] for profile in profiles) for size in _SIZES]
    side = rough * float(_SIZES[int(np.argmax(amounts))])
    return [_sharpened(colours, square, side) for square in squares]


def _sharpened(colours: Float64[np.ndarray, "3 h w"], square: Square, side: float) -> Square:
    """One square at its edges: the mask's angle is tried first, others if they show clearly more edge."""
    amounts = [_profiles(colours, _tilted(square, tilt), side).best(side)[0] for tilt in _TILTS]
    square = _tilted(square, _TILTS[int(np.argmax(np.array(amounts) - _DOUBT * np.abs(_TILTS)))])
    if max(square.width, square.height) > _TOO_LARGE * side:
        return square
    square = _settle(square, _profiles(colours, square, side), side)
    for _ in range(2):
        square = _tilted(square, _slant(colours, square))
        square = _settle(square, _profiles(colours, square, side), side)
    return square


def _settle(square: Square, profile: Profiles, side: float) -> Square:
    """The square where its edges are, or with the size that it clearly has instead."""
    amount, (x, y) = profile.best(side)
    free, width, height = profile.free()
    differs = max(abs(width / side - 1), abs(height / side - 1)) > 0.06
    if not differs or free < 1.5 * amount:
        width = height = side
    cosine, sine = np.cos(square.angle), np.sin(square.angle)
    centre = square.centre[0] + cosine * x - sine * y, square.centre[1] + sine * x + cosine * y
    return Square((float(centre[0]), float(centre[1])), square.angle, width, height, square.filled)


def _tilted(square: Square, tilt: float) -> Square:
    return replace(square, angle=square.angle + float(tilt))


def _slant(colours: Float64[np.ndarray, "3 h w"], square: Square) -> float:
    """By how much the four sides ask for the square to be turned: lines through the steepest points near them."""
    along = np.linspace(-_MIDDLE, _MIDDLE, _LINES) * square.width / 2
    slopes, weights = [], []
    for axis in (0, 1):
        for sign in (-1, 1):
            near = sign * square.width / 2 + np.arange(-3, 3.01, _STEP)
            change = _change(colours, square, axis, near, along)
            steepest, weight = near[1:-1][change.argmax(0)], change.max(0)
            kept = np.abs(steepest - np.median(steepest)) <= 1
            slope = np.polyfit(along[kept], steepest[kept], 1, w=weight[kept])[0] if kept.sum() > 2 else 0.0
            slopes.append(np.arctan(slope) * (1 if axis else -1))
            weights.append(np.median(weight) * kept.mean() ** 2)
    return float(np.clip(np.average(slopes, weights=weights), -0.03, 0.03)) if sum(weights) else 0.0


def _profiles(colours: Float64[np.ndarray, "3 h w"], square: Square, side: float) -> Profiles:
    """The amount of edge along both axes: the median, along a line, of how fast colours change across it."""
    reach = side * (0.5 + _REACH) * 1.06
    across = np.arange(-reach, reach + _STEP, _STEP)
    along = np.linspace(-_MIDDLE, _MIDDLE, _LINES) * side / 2
    # The root, so that one loud side does not outvote three quiet ones.
    lines = [np.sqrt(np.median(_change(colours, square, axis, across, along), 1)) for axis in (0, 1)]
    return Profiles(across[1:-1], np.stack(lines))


def _change(
    colours: Float64[np.ndarray, "3 h w"], square: Square, axis: int, across: np.ndarray, along: np.ndarray
) -> Float64[np.ndarray, "u v"]:
    """How fast colours change along one axis of the square, at places across (but the outermost) and along it."""
    u, v = np.meshgrid(across, along, indexing="ij")
    x, y = (u, v) if axis == 0 else (v, u)
    cosine, sine = np.cos(square.angle), np.sin(square.angle)
    where = [square.centre[1] + sine * x + cosine * y - 0.5, square.centre[0] + cosine * x - sine * y - 0.5]
    seen = np.stack([ndimage.map_coordinates(plane, where, order=1, mode="nearest") for plane in colours])
    return np.sqrt(((seen[:, 2:] - seen[:, :-2]) ** 2).sum(0))
