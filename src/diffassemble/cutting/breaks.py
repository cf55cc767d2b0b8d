"""The shape of a break: a bent, rough sheet through a solid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from manifold3d import Manifold

from diffassemble.cutting.solids import surface_solid

BEND = 0.8
ROUGHNESS = 0.1
# Waves across the solid, and how high each kind stands.
FREQUENCIES = (2.0, 6.0, 16.0, 40.0)
WEIGHTS = (0.55, 0.28, 0.14, 0.07)
WAVES = 3
FEWEST_CELLS = 10
MOST_CELLS = 32
_MARGIN = 1.05

Points = Float[np.ndarray, "p 3"]


@dataclass(frozen=True)
class Sheet:
    """Where a break runs: `frame` has its two directions and its normal in rows, `centre` lies on it."""

    frame: Float[np.ndarray, "3 3"]
    centre: Float[np.ndarray, "3"]


def across(normal: Float[np.ndarray, "3"], centre: Float[np.ndarray, "3"], generator: torch.Generator) -> Sheet:
    """A sheet with this normal, its other directions drawn at random."""
    upward = normal / np.linalg.norm(normal)
    first = np.cross(upward, torch.randn(3, generator=generator, dtype=torch.double).numpy())
    first = first / np.linalg.norm(first)
    return Sheet(np.stack([first, np.cross(upward, first), upward]), centre)


def block_below(sheet: Sheet, points: Points, generator: torch.Generator) -> Manifold:
    """A closed block that reaches from the sheet to below all points, with the break as its top.

    Lengths are in shares of the whole solid, whose longest side is 1: so is the grain of the break.
    """
    local = (points - sheet.centre) @ sheet.frame.T
    low, high = local.min(0), local.max(0)
    middle, half = (low + high) / 2, _MARGIN * (high - low) / 2 + 1e-3
    size = float(half[:2].max())
    cells = [max(FEWEST_CELLS, min(MOST_CELLS, math.ceil(2 * side * MOST_CELLS))) for side in half[:2]]
    flat = _jittered_grid(cells[0], cells[1], generator)
    plane = middle[:2] + flat * half[:2]
    height = size * _relief(plane / max(size, 1e-6), 2 * size, generator)
    floor = min(low[2], float(height.min())) - 0.1 * size
    top = np.column_stack([plane, height])
    border, faces = _block_faces(cells[0] + 1, cells[1] + 1)
    edge = np.concatenate([plane[border], middle[None, :2]])
    bottom = np.column_stack([edge, np.full(len(edge), floor)])
    return surface_solid(np.concatenate([top, bottom]) @ sheet.frame + sheet.centre, faces)


def _relief(plane: Float[np.ndarray, "p 2"], extent: float, generator: torch.Generator) -> Float[np.ndarray, "p"]:
    """Heights over the plane, both in half sizes of the piece: bent, with waves of several lengths upon it."""
    bend = BEND * torch.randn(3, generator=generator, dtype=torch.double).numpy() / 2
    x, y = plane.T
    height = bend[0] * (x * x - 0.3) + bend[1] * (y * y - 0.3) + bend[2] * x * y
    for frequency, weight in zip(FREQUENCIES, WEIGHTS, strict=True):
        angle, phase = 2 * math.pi * torch.rand(2, WAVES, generator=generator, dtype=torch.double).numpy()
        waves = math.pi * frequency * np.stack([np.cos(angle), np.sin(angle)])
        height = height + ROUGHNESS * weight * np.sin(plane @ waves * max(extent, 0.3) + phase).sum(1)
    return height


def _jittered_grid(rows: int, cols: int, generator: torch.Generator) -> Float[np.ndarray, "p 2"]:
    """Corners of a grid over [−1, 1]², row by row; those within are moved about, so that no lattice shows."""
    x, y = np.meshgrid(np.linspace(-1, 1, rows + 1), np.linspace(-1, 1, cols + 1), indexing="ij")
    grid = np.stack([x, y], -1)
    jitter = torch.rand(rows - 1, cols - 1, 2, generator=generator, dtype=torch.double).numpy() - 0.5
    grid[1:-1, 1:-1] += 1.2 * jitter / (rows, cols)
    return grid.reshape(-1, 2)


def _block_faces(rows: int, cols: int) -> tuple[Int[np.ndarray, "e"], Int[np.ndarray, "f 3"]]:
    """The border of a top that is numbered row by row, and the triangles of the block below it.

    After the corners of the top come those below its border, in the border's order, and the middle of the bottom.
    """
    number = np.arange(rows * cols).reshape(rows, cols)
    a, b, c, d = (x.ravel() for x in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    border = np.concatenate([number[:-1, 0], number[-1, :-1], number[:0:-1, -1], number[0, :0:-1]])
    under = rows * cols + np.arange(len(border))
    after, under_after = np.roll(border, -1), np.roll(under, -1)
    middle = np.full(len(border), under[-1] + 1)
    corners = [(a, b, c), (a, c, d), (border, under, after), (after, under, under_after), (middle, under_after, under)]
    return border, np.concatenate([np.stack(three, 1) for three in corners])
