"""How a sheet falls apart before its lines are drawn: into convex cells with straight sides that fill it.

A sheet spans [0, width] × [0, height], y down. Cells run clockwise as seen. Neighbouring cells share their corners
exactly, also where one side ends in the middle of another.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy.spatial import Voronoi

Cell = Float[np.ndarray, "_ 2"]
# Relative to the sheet: corners that are nearer to each other are the same.
_SAME = 1e-7


def lattice_shape(count: int, width: int, height: int) -> tuple[int, int]:
    """Rows and columns of about `count` cells: exactly so many, if then no cell is much longer than wide."""
    best, least = (1, count), math.inf
    for rows in range(1, count + 1):
        for cols in {max(1, math.floor(count / rows)), math.ceil(count / rows)}:
            longer = abs(math.log(width * rows / (height * cols)))
            # Up to 1.3 times as long as wide nobody minds; a piece more or less in a hundred weighs as 1.35 does.
            cost = max(0.0, longer - math.log(1.3)) + 0.1 * longer + 30 * abs(math.log(rows * cols / count))
            if cost < least:
                best, least = (rows, cols), cost
    return best


def lattice(rows: int, cols: int, width: int, height: int, random: np.random.Generator) -> list[Cell]:
    """Cells of a lattice whose corners are a little out of line; those at the frame stay on it."""
    pitch = np.array([width / cols, height / rows])
    corners = np.stack(np.meshgrid(np.arange(cols + 1), np.arange(rows + 1)), -1) * pitch
    loose = random.uniform(-0.05, 0.05, corners.shape) * pitch
    loose[:, [0, -1], 0] = 0
    loose[[0, -1], :, 1] = 0
    corners += loose
    return [
        np.stack([corners[row, col], corners[row, col + 1], corners[row + 1, col + 1], corners[row + 1, col]])
        for row in range(rows)
        for col in range(cols)
    ]


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
    """The regions that are nearest to points strewn over the sheet, no two of which lie very close."""
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
    return [_clockwise(cell) for cell in cells]


def tears(count: int, width: int, height: int, random: np.random.Generator) -> list[Cell]:
    """A sheet torn in two, and the largest piece again and again, each time about across."""
    cells = [np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]])]
    while len(cells) < count:
        largest = max(range(len(cells)), key=lambda index: _area(cells[index]))
        cell = cells.pop(largest)
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


def _area(cell: Cell) -> float:
    x, y = cell.T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)


def _clockwise(cell: Cell) -> Cell:
    around = cell - cell.mean(0)
    return cell[np.argsort(np.arctan2(around[:, 1], around[:, 0]))]


def joined(cells: list[Cell]) -> tuple[Float[np.ndarray, "v 2"], list[list[int]]]:
    """All corners, each once, and which of them every cell has on its way round, those amid its sides included."""
    size = max(float(cell.max()) for cell in cells)
    corners: list[np.ndarray] = []
    seen: dict[tuple[int, int], int] = {}
    rings = []
    for cell in cells:
        ring: list[int] = []
        for corner in cell:
            across, down = np.round(corner / (size * _SAME * 100)).astype(int).tolist()
            near = [(across + i, down + j) for i in (0, -1, 1) for j in (0, -1, 1)]
            known = next((seen[key] for key in near if key in seen), None)
            if known is None:
                known = seen[across, down] = len(corners)
                corners.append(corner)
            if not ring or (known != ring[-1] and known != ring[0]):
                ring.append(known)
        rings.append(ring)
    points = np.stack(corners)
    return points, [_with_corners_amid(ring, points, size * _SAME * 100) for ring in rings]


def _with_corners_amid(ring: list[int], points: Float[np.ndarray, "v 2"], near: float) -> list[int]:
    """The ring with every corner of other cells that lies on one of its sides."""
    whole = []
    for here, following in zip(ring, ring[1:] + ring[:1], strict=True):
        way = points[following] - points[here]
        length = float(np.hypot(*way))
        offset = points - points[here]
        along, beside = offset @ way / length, (offset[:, 0] * way[1] - offset[:, 1] * way[0]) / length
        amid = np.flatnonzero((np.abs(beside) < near) & (along > near) & (along < length - near))
        whole += [here, *amid[np.argsort(along[amid])].tolist()]
    return whole
