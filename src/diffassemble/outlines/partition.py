"""How a sheet comes apart: into cells, along lines (knobs, tears, breaks, cuts of a shredder) in place of their sides.

A sheet spans [0, width] × [0, height], y down. Cells are convex with straight sides, fill the sheet and run clockwise
as seen; neighbours share their corners exactly, also where one side ends in the middle of another. A line runs between
two corners, in a frame of its own: `along` from the first to the second, `across` to the right of that way as seen,
which is inside the cell that has it clockwise. Both cells take the very same points, so pieces fill the sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.interpolate import CubicSpline
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Voronoi, cKDTree

from diffassemble.core.contours import signed_area

Curve = Float[np.ndarray, "_ 2"]
Cell = Curve
SPACING = 0.5
"""pixels from point to point of a line"""
SAME = 1e-5
"""corners nearer to each other than this share of the sheet are the same"""


class Room(NamedTuple):
    """What a line may take up: pixels from corner to corner and to either side, which open at the ends by `slope`."""

    length: float
    aside: float
    slope: float

    def around(self, along: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
        """How far to either side a line may go there, so that no two lines cross."""
        return np.minimum(self.aside, self.slope * np.minimum(along, self.length - along))


class Outline(NamedTuple):
    """A piece of the sheet: its edge, and where its print ends, if not there."""

    edge: Curve
    printed: Curve | None


Line = tuple[Curve, Curve]
"""points from the first corner, included, to the second, left out; and where print ends on one side"""
Style = Callable[[Room, float, np.random.Generator], Line]
"""draws a line into its room, given the size of a piece"""


def sheet_outlines(shape: str, pieces: int, width: int, height: int, generator: torch.Generator) -> list[Outline]:
    """Outlines of pieces that fill a sheet of so many pixels: of tabs about as many, of others exactly as many."""
    random = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
    size = math.sqrt(width * height / pieces)
    if shape == "tabs":
        rows, cols = lattice_shape(pieces, width, height)
        return draw_lines(lattice(rows, cols, width, height, random), knob, min(width / cols, height / rows), random)
    if shape == "torn":
        return bent(draw_lines(tears(pieces, width, height, random), tear, size, random), width, height, 0.35, random)
    if shape == "shards":
        return draw_lines(shards(pieces, width, height, random), rough_break, size, random)
    outlines = draw_lines(strips(pieces, width, height, random), shredded, width / pieces, random)
    return bent(outlines, width, height, 0.02, random)


def lattice_shape(count: int, width: int, height: int) -> tuple[int, int]:
    """Rows and columns of about `count` cells: exactly so many, if then no cell is much longer than wide."""

    def cost(shape: tuple[int, int]) -> float:
        # Up to 1.3 times as long as wide costs little; a piece more or less in a hundred costs as much as 1.35 does.
        longer = abs(math.log(width * shape[0] / (height * shape[1])))
        return max(0.0, longer - math.log(1.3)) + 0.1 * longer + 30 * abs(math.log(shape[0] * shape[1] / count))

    found = [(rows, cols) for rows in range(1, count + 1) for cols in (max(1, count // rows), -(-count // rows))]
    return min(found, key=cost)


def lattice(rows: int, cols: int, width: int, height: int, random: np.random.Generator) -> list[Cell]:
    """Cells of a lattice whose corners are a little out of line; those at the frame stay on it."""
    pitch = np.array([width / cols, height / rows])
    corners = np.stack(np.meshgrid(np.arange(cols + 1), np.arange(rows + 1)), -1) * pitch
    loose = random.uniform(-0.05, 0.05, corners.shape) * pitch
    loose[:, [0, -1], 0] = 0
    loose[[0, -1], :, 1] = 0
    corners += loose
    around = np.stack([corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1]], 2)
    return list(around.reshape(-1, 4, 2))


def strips(count: int, width: int, height: int, random: np.random.Generator) -> list[Cell]:
    """Upright strips, as a shredder leaves them when the page goes in a little askew."""
    wide = width / count
    # The outer strips become wedges; they keep half of their width where they are narrowest.
    askew = random.uniform(-1, 1) * min(0.01 * height, 0.4 * wide)
    across = np.arange(1, count) * wide + random.uniform(-0.04, 0.04, (2, count - 1)) * wide
    across += np.array([[-askew], [askew]])
    top, bottom = (np.concatenate([[0.0], line, [width]]) for line in across)
    return [
        np.array([[top[i], 0.0], [top[i + 1], 0.0], [bottom[i + 1], height], [bottom[i], height]]) for i in range(count)
    ]


def shards(count: int, width: int, height: int, random: np.random.Generator) -> list[Cell]:
    """The regions that are nearest to points strewn over the sheet, no two of which are very close."""
    size = np.array([width, height])
    # The farthest of a few candidates, one after another, keeps points apart without making them even.
    points = random.random((1, 2)) * size
    while len(points) < count:
        offered = random.random((8, 2)) * size
        far = np.linalg.norm(offered[:, None] - points, axis=-1).min(1)
        points = np.concatenate([points, offered[far.argmax()][None]])
    # Mirrored at the four sides of the sheet, the regions of the points themselves end exactly there.
    mirrored = [points]
    for axis in range(2):
        for at in (0.0, size[axis]):
            image = points.copy()
            image[:, axis] = 2 * at - image[:, axis]
            mirrored.append(image)
    found = Voronoi(np.concatenate(mirrored))
    cells = [found.vertices[found.regions[found.point_region[index]]].clip(0, size) for index in range(count)]
    middles = [cell - cell.mean(0) for cell in cells]
    return [cell[np.argsort(np.arctan2(*middle.T[::-1]))] for cell, middle in zip(cells, middles, strict=True)]


def tears(count: int, width: int, height: int, random: np.random.Generator) -> list[Cell]:
    """A sheet torn in two, and the largest piece again and again, each time about across."""
    cells = [np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]])]
    while len(cells) < count:
        cell = cells.pop(max(range(len(cells)), key=lambda index: signed_area(cells[index])))
        centred = cell - cell.mean(0)
        along = np.linalg.eigh(centred.T @ centred)[1][:, 1]
        turn = random.uniform(-0.5, 0.5)
        normal = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]) @ along
        through = cell.mean(0) + random.uniform(-0.12, 0.12) * np.ptp(centred @ along) * along
        cells += _split(cell, normal, through)
    return cells


def _split(cell: Cell, normal: Float[np.ndarray, "2"], through: Float[np.ndarray, "2"]) -> list[Cell]:
    """The two parts of a convex cell on either side of a line."""
    level = (cell - through) @ normal
    parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for here, following, at, then in zip(cell, np.roll(cell, -1, 0), level, np.roll(level, -1), strict=True):
        parts[int(at > 0)].append(here)
        if (at > 0) != (then > 0):
            crossing = here + (following - here) * (at / (at - then))
            parts[0].append(crossing)
            parts[1].append(crossing)
    return [np.stack(part) for part in parts]


def joined(cells: list[Cell]) -> tuple[Float[np.ndarray, "v 2"], list[list[int]]]:
    """All corners, each once, and which of them every cell has on its way round, those amid its sides included."""
    points = np.concatenate(cells)
    near = SAME * float(points.max())
    one, two = cKDTree(points).query_pairs(near, output_type="ndarray").T
    same = coo_matrix((np.ones(len(one)), (one, two)), (len(points), len(points)))
    _, first, number = np.unique(connected_components(same, False)[1], return_index=True, return_inverse=True)
    places, rings, end = points[first], [], 0
    for cell in cells:
        end += len(cell)
        ring = number[end - len(cell) : end]
        rings.append(_with_corners_amid(ring[ring != np.roll(ring, 1)].tolist(), places, near))
    return places, rings


def _with_corners_amid(ring: list[int], points: Float[np.ndarray, "v 2"], near: float) -> list[int]:
    """The ring with every corner of other cells that is on one of its sides."""
    whole = []
    for here, following in zip(ring, ring[1:] + ring[:1], strict=True):
        way = points[following] - points[here]
        length = float(np.hypot(*way))
        offset = points - points[here]
        along, beside = offset @ way / length, (offset[:, 0] * way[1] - offset[:, 1] * way[0]) / length
        amid = np.flatnonzero((np.abs(beside) < near) & (along > near) & (along < length - near))
        whole += [here, *amid[np.argsort(along[amid])].tolist()]
    return whole


def knob(room: Room, size: float, random: np.random.Generator) -> Line:
    """A tab on a round neck, whose place, size, slant and shoulders differ from line to line."""
    unit, side = min(room.length, 1.1 * size), random.choice([-1.0, 1.0])
    centre = room.length / 2 + random.uniform(-0.09, 0.09) * unit
    neck, height = random.uniform(0.1, 0.15), random.uniform(0.19, 0.255)
    bulb, lean = neck + random.uniform(0.075, 0.115), random.uniform(-0.035, 0.035)
    left, right, *dips = random.uniform(-0.03, 0.03, 6)
    begin, end = centre / unit, (room.length - centre) / unit
    points = np.array(
        [
            (-begin, 0.0),
            (-0.5 * begin, dips[0]),
            (-neck / 2 - 0.055, 0.4 * dips[1] + 0.005),
            (-neck / 2 + 0.3 * lean, 0.3 * height),
            (-bulb / 2 + 0.7 * lean, (0.62 + left) * height),
            (lean, height),
            (bulb / 2 + 0.7 * lean, (0.62 + right) * height),
            (neck / 2 + 0.3 * lean, 0.3 * height),
            (neck / 2 + 0.055, 0.4 * dips[2] + 0.005),
            (0.5 * end, dips[3]),
            (end, 0.0),
        ]
    )
    # Knots by the root of the distance keep the curve from looping between points that are close together.
    knots = np.concatenate([[0], np.sqrt(np.linalg.norm(np.diff(points, axis=0), axis=1)).cumsum()])
    fine = CubicSpline(knots, points, bc_type="natural")(np.linspace(0, knots[-1], 40 * len(knots)))
    curve = fine * unit * [1.0, side] + [centre, 0.0]
    at = np.concatenate([[0], np.linalg.norm(np.diff(curve, axis=0), axis=1).cumsum()])
    even = np.stack([np.interp(_steps(float(at[-1])), at, curve[:, axis]) for axis in range(2)], 1)
    return even, even


def tear(room: Room, size: float, random: np.random.Generator) -> Line:
    """A ragged edge with fibres; on one side the white core of the paper shows, wider here and narrower there."""
    along = _steps(room.length)
    around = room.around(along)
    wander = 0.14 * _noise(along, room.length / 2, 8.0, 0.9, random) + 0.3 * _noise(along, 4.0, 1.5, 1.0, random)
    across = _within(wander, 0.55 * around)
    core = 0.035 * size * (0.6 + 0.6 * np.abs(_noise(along, 12.0, 6.0, 0.0, random)))
    shown = np.minimum(core, 0.4 * around) * random.choice([-1.0, 1.0])
    return np.stack([along, across], 1), np.stack([along, across + shown], 1)


def rough_break(room: Room, size: float, random: np.random.Generator) -> Line:
    """A rough break."""
    along = _steps(room.length)
    wander = 0.13 * _noise(along, min(room.length / 2, size / 2), 3.0, 1.0, random)
    line = np.stack([along, _within(wander, 0.9 * room.around(along))], 1)
    return line, line


def shredded(room: Room, size: float, random: np.random.Generator) -> Line:
    """A straight cut, a little frayed."""
    along = _steps(room.length)
    frayed = 0.25 * _noise(along, 2.0, 1.0, 0.0, random)
    frayed += 0.01 * size * _noise(along, room.length / 3, size, 0.0, random)
    line = np.stack([along, _within(frayed, room.around(along))], 1)
    return line, line


def _steps(length: float) -> Float[np.ndarray, "m"]:
    count = max(2, round(length / SPACING))
    return np.arange(count) * (length / count)


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
            room = Room(both[0].length, min(one.aside for one in both), min(one.slope for one in both))
            x, y = (corners[end] - corners[start]) / np.hypot(*(corners[end] - corners[start]))
            edge, printed = (corners[start] + curve @ [[x, y], [-y, x]] for curve in style(room, size, random))
            lines[start, end] = edge, printed
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
    return abs(math.atan2(first[0] * second[1] - first[1] * second[0], float(first @ second)))


def _outline(ring: list[int], corners: Float[np.ndarray, "v 2"], lines: dict[tuple[int, int], Line]) -> Outline:
    """A cell's lines one after another; its print ends where the core shows on its own side, else at its edge."""
    edges, prints = [], []
    for start, end in zip(ring, ring[1:] + ring[:1], strict=True):
        straight, (x, y) = corners[start][None], corners[end] - corners[start]
        edge, printed = lines.get((start, end)) or lines.get((end, start)) or (straight, straight)
        inside = (printed - edge) @ [-y, x] > 0
        both = [edge, np.where(inside[:, None], printed, edge)]
        if (end, start) in lines:
            # From the start, which the line leaves out, up to the end, which is its first point.
            both = [np.concatenate([straight, curve[:0:-1]]) for curve in both]
        edges.append(both[0])
        prints.append(both[1])
    edge, printed = np.concatenate(edges), np.concatenate(prints)
    return Outline(edge, None if np.array_equal(edge, printed) else printed)


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
