"""The lines along which a sheet comes apart: knobs, tears, breaks, cuts of a shredder.

A line runs between two corners, in a frame of its own: `along` from the first to the second, `across` to the right of
that way as seen, which is inside the cell that has it clockwise. Both cells take the very same points, so pieces fill
the sheet whatever the lines are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline

from diffassemble.outlines.partition import Cell, joined

Curve = Float[np.ndarray, "_ 2"]
# Pixels from point to point of a line.
SPACING = 0.5


class Room(NamedTuple):
    """What a line may take up: pixels from corner to corner and to either side, which open at the ends by `slope`."""

    length: float
    aside: float
    slope: float

    def around(self, along: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
        """How far to either side a line may go there, so that no two lines cross."""
        return np.minimum(self.aside, self.slope * np.minimum(along, self.length - along))


class Line(NamedTuple):
    """Points from the first corner, included, to the second, left out; `printed` is where print ends on one side."""

    edge: Curve
    printed: Curve


class Outline(NamedTuple):
    """A piece of the sheet: its edge, and where its print ends, if not there."""

    edge: Curve
    printed: Curve | None


Style = Callable[[Room, float, np.random.Generator], Line]
"""Draws a line into its room, given the size of a piece."""


def knob(room: Room, size: float, random: np.random.Generator) -> Line:
    """A tab on a round neck: its place, its size, how it leans and how the shoulders bend differ from line to line."""
    unit, side = min(room.length, 1.1 * size), random.choice([-1.0, 1.0])
    centre = room.length / 2 + random.uniform(-0.09, 0.09) * unit
    neck, height = random.uniform(0.1, 0.15), random.uniform(0.19, 0.255)
    bulb, lean = neck + random.uniform(0.075, 0.115), random.uniform(-0.035, 0.035)
    left, right, *dips = random.uniform(-0.03, 0.03, 6)
    shoulder = 0.5 * centre / unit, 0.5 * (room.length - centre) / unit
    points = np.array(
        [
            (-centre / unit, 0.0),
            (-shoulder[0], dips[0]),
            (-neck / 2 - 0.055, 0.4 * dips[1] + 0.005),
            (-neck / 2 + 0.3 * lean, 0.3 * height),
            (-bulb / 2 + 0.7 * lean, (0.62 + left) * height),
            (lean, height),
            (bulb / 2 + 0.7 * lean, (0.62 + right) * height),
            (neck / 2 + 0.3 * lean, 0.3 * height),
            (neck / 2 + 0.055, 0.4 * dips[2] + 0.005),
            (shoulder[1], dips[3]),
            ((room.length - centre) / unit, 0.0),
        ]
    )
    # Knots by the root of the distance keep the curve from looping between points that are close together.
    knots = np.concatenate([[0], np.sqrt(np.linalg.norm(np.diff(points, axis=0), axis=1)).cumsum()])
    fine = CubicSpline(knots, points, bc_type="natural")(np.linspace(0, knots[-1], 40 * len(knots)))
    curve = _spaced((fine * unit * [1.0, side]) + [centre, 0.0])
    return Line(curve, curve)


def tear(room: Room, size: float, random: np.random.Generator) -> Line:
    """A ragged edge with fibres; on one side the white core of the paper shows, wider here and narrower there."""
    along = _steps(room.length)
    around = room.around(along)
    wander = 0.14 * _noise(along, room.length / 2, 8.0, 0.9, random) + 0.3 * _noise(along, 4.0, 1.5, 1.0, random)
    across = _within(wander, 0.55 * around)
    core = 0.035 * size * (0.6 + 0.6 * np.abs(_noise(along, 12.0, 6.0, 0.0, random)))
    shown = np.minimum(core, 0.4 * around) * random.choice([-1.0, 1.0])
    return Line(np.stack([along, across], 1), np.stack([along, across + shown], 1))


def break_(room: Room, size: float, random: np.random.Generator) -> Line:
    """A rough break."""
    along = _steps(room.length)
    wander = 0.13 * _noise(along, min(room.length / 2, size / 2), 3.0, 1.0, random)
    line = np.stack([along, _within(wander, 0.9 * room.around(along))], 1)
    return Line(line, line)


def shredded(room: Room, size: float, random: np.random.Generator) -> Line:
    """A straight cut, a little frayed."""
    along = _steps(room.length)
    frayed = 0.25 * _noise(along, 2.0, 1.0, 0.0, random) + 0.01 * size * _noise(
        along, room.length / 3, size, 0.0, random
    )
    line = np.stack([along, _within(frayed, room.around(along))], 1)
    return Line(line, line)


def _steps(length: float) -> Float[np.ndarray, "m"]:
    count = max(2, round(length / SPACING))
    return np.arange(count) * (length / count)


def _spaced(curve: Curve) -> Curve:
    """The same curve by evenly spaced points, the last one left out."""
    along = np.concatenate([[0], np.linalg.norm(np.diff(curve, axis=0), axis=1).cumsum()])
    wanted = _steps(float(along[-1]))
    return np.stack([np.interp(wanted, along, curve[:, axis]) for axis in range(2)], 1)


def _noise(
    along: Float[np.ndarray, "m"], longest: float, shortest: float, power: float, random: np.random.Generator
) -> Float[np.ndarray, "m"]:
    """Waves of lengths from the longest to the shortest, halved again and again; a wave's height is length^power."""
    total, length = np.zeros_like(along), max(longest, shortest)
    while length >= shortest:
        knots = random.standard_normal(int(along[-1] / length) + 3)
        total += length**power * np.interp(along / length + random.random(), np.arange(len(knots)), knots)
        length /= 2
    return total


def _within(values: Float[np.ndarray, "m"], most: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
    """The same values, bent so that none is larger than the most that is allowed."""
    return np.where(most > 0, most * np.tanh(values / np.maximum(most, 1e-9)), 0.0)


def draw_lines(cells: list[Cell], style: Style, size: float, random: np.random.Generator) -> list[Outline]:
    """The outlines of the cells with lines in place of straight sides; sides that only one cell has stay straight."""
    corners, rings = joined(cells)
    rooms: dict[tuple[int, int], list[Room]] = {}
    for ring in rings:
        for (start, end), room in _rooms(ring, corners):
            rooms.setdefault((min(start, end), max(start, end)), []).append(room)
    lines = {}
    for (start, end), both in rooms.items():
        if len(both) == 2:
            room = Room(both[0].length, *(min(values) for values in list(zip(*both, strict=True))[1:]))
            lines[start, end] = Line(
                *(_placed(curve, corners[start], corners[end]) for curve in style(room, size, random))
            )
    return [_outline(ring, corners, lines) for ring in rings]


def _rooms(ring: list[int], corners: Float[np.ndarray, "v 2"]) -> Iterator[tuple[tuple[int, int], Room]]:
    """The sides of a cell, and what room each has in it."""
    count = len(ring)
    for at in range(count):
        start, end = ring[at], ring[(at + 1) % count]
        before, after = corners[ring[at - 1]], corners[ring[(at + 2) % count]]
        way = corners[end] - corners[start]
        length = float(np.hypot(*way))
        opening = min(_angle(way, before - corners[start]), _angle(-way, after - corners[end]))
        others = corners[[corner for corner in ring if corner not in (start, end)]] - corners[start]
        share = (others @ way / length**2).clip(0, 1)
        aside = np.linalg.norm(others - share[:, None] * way, axis=1).min()
        # A line leaves the other half of each angle to its neighbour there.
        yield (start, end), Room(length, 0.45 * float(aside), math.tan(min(0.45 * opening, 1.0)))


def _angle(first: Float[np.ndarray, "2"], second: Float[np.ndarray, "2"]) -> float:
    turned = first[0] * second[1] - first[1] * second[0]
    return abs(math.atan2(turned, float(first @ second)))


def _placed(curve: Curve, start: Float[np.ndarray, "2"], end: Float[np.ndarray, "2"]) -> Curve:
    """A line from its own frame to the sheet."""
    x, y = (end - start) / np.hypot(*(end - start))
    return start + curve @ np.array([[x, y], [-y, x]])


def _outline(ring: list[int], corners: Float[np.ndarray, "v 2"], lines: dict[tuple[int, int], Line]) -> Outline:
    """A cell's lines one after another; its print ends where the core shows on its own side, else at its edge."""
    edges, prints = [], []
    for start, end in zip(ring, ring[1:] + ring[:1], strict=True):
        straight, inwards = corners[start][None], _inwards(corners[end] - corners[start])
        line = lines.get((start, end)) or lines.get((end, start)) or Line(straight, straight)
        inside = (line.printed - line.edge) @ inwards > 0
        both = [line.edge, np.where(inside[:, None], line.printed, line.edge)]
        if (end, start) in lines:
            # From the start, which the line leaves out, up to the end, which is its first point.
            both = [np.concatenate([straight, curve[:0:-1]]) for curve in both]
        edges.append(both[0])
        prints.append(both[1])
    edge, printed = np.concatenate(edges), np.concatenate(prints)
    return Outline(edge, None if np.array_equal(edge, printed) else printed)


def _inwards(way: Float[np.ndarray, "2"]) -> Float[np.ndarray, "2"]:
    """What lies to the right of a way, as seen."""
    return np.array([-way[1], way[0]])


def bent(
    outlines: list[Outline], width: int, height: int, strength: float, random: np.random.Generator
) -> list[Outline]:
    """The same outlines on a sheet that is warped in gentle waves within its frame, so that straight lines curve.

    `strength` is the slope of the waves; below 1 none folds over.
    """
    modes = np.array([(i, j) for i in (1, 2, 3) for j in (0, 1, 2)])
    weight = random.standard_normal((2, len(modes))) / modes.sum(1)
    weight *= strength / (np.pi * np.abs(weight).sum(1, keepdims=True))
    phase = random.uniform(0, 2 * np.pi, (2, len(modes)))

    def moved(curve: Curve) -> Curve:
        share = curve / [width, height]
        shifts = []
        for axis in range(2):
            # Nothing moves across the frame, where the sines vanish.
            wave = np.sin(np.pi * modes[:, 0] * share[:, axis, None]) / modes[:, 0]
            wave = wave * np.cos(np.pi * modes[:, 1] * share[:, 1 - axis, None] + phase[axis])
            shifts.append((wave @ weight[axis]) * min(width, height))
        return curve + np.stack(shifts, 1)

    return [Outline(moved(edge), None if printed is None else moved(printed)) for edge, printed in outlines]
