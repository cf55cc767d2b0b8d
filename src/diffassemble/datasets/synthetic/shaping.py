"""Parts that are not turned: bars along a curve, balls, blown and noisy shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from manifold3d import Manifold

from diffassemble.cutting.solids import surface_solid
from diffassemble.datasets.synthetic.dice import Dice, Number

Rows = Float[np.ndarray, "v 3"]


def bar(
    path: Float[np.ndarray, "p 2"],
    thickness: Sequence[Number] | Float[np.ndarray, "p"],
    width: Sequence[Number] | Float[np.ndarray, "p"],
    sides: int = 16,
) -> Manifold:
    """A bar along a path in the plane z = 0, with half its thickness in that plane and half its width across it.

    Both go point by point; the section is an ellipse, the ends are flat.
    """
    along = np.gradient(path, axis=0)
    along = along / np.linalg.norm(along, axis=1, keepdims=True)
    beside = np.column_stack([-along[:, 1], along[:, 0], np.zeros(len(path))])
    angle = np.arange(sides) * 2 * math.pi / sides
    flat = np.asarray(thickness)[:, None, None] * np.cos(angle)[:, None] * beside[:, None]
    across = np.asarray(width)[:, None, None] * np.sin(angle)[:, None] * np.array([0.0, 0.0, 1.0])
    rings = np.column_stack([path, np.zeros(len(path))])[:, None] + flat + across
    ends = np.column_stack([path[[0, -1]], np.zeros(2)])
    return surface_solid(np.concatenate([rings.reshape(-1, 3), ends]), _bar_faces(len(path), sides))


def _bar_faces(rings: int, sides: int) -> np.ndarray:
    number = np.arange(rings * sides).reshape(rings, sides)
    a, b = number[:-1], number[1:]
    c, d = np.roll(b, -1, 1), np.roll(a, -1, 1)
    first, last = number[0], number[-1]
    start, end = np.full(sides, rings * sides), np.full(sides, rings * sides + 1)
    corners = [(a, d, c), (a, c, b), (start, np.roll(first, -1), first), (end, last, np.roll(last, -1))]
    return np.concatenate([np.stack([np.ravel(x) for x in three], 1) for three in corners])


def ball(centre: Sequence[Number], radii: Sequence[Number], segments: int = 24) -> Manifold:
    """An ellipsoid."""
    return Manifold.sphere(1.0, segments).scale(tuple(radii)).translate(tuple(centre))


def box(centre: Sequence[Number], sides: Sequence[Number]) -> Manifold:
    """An upright box."""
    return Manifold.cube(tuple(sides), True).translate(tuple(centre))


def moulded(solid: Manifold, dice: Dice) -> Manifold:
    """Sometimes fluted, twisted, square or oval instead of round, as pots are that leave the lathe for the mould."""
    if dice.chance(0.6):
        return solid
    flutes, depth = dice.whole(5, 14), dice.between(0.01, 0.05) * dice.chance(0.5)
    twist = dice.between(-3, 3) * dice.chance(0.5)
    oval = dice.between(0.6, 0.95) if dice.chance(0.4) else 1.0
    power = dice.between(3, 6) if dice.chance(0.3) else 2.0

    def mould(points: Rows) -> Rows:
        x, y, z = points.T
        angle = np.arctan2(z, x) + twist * y
        square = (np.abs(np.cos(angle)) ** power + np.abs(np.sin(angle)) ** power) ** (-1 / power)
        factor = square * (1 + depth * np.cos(flutes * angle))
        return np.column_stack([x * factor, y, z * factor * oval])

    return solid.warp_batch(mould)


def bumpy(solid: Manifold, height: float, frequency: float, dice: Dice) -> Manifold:
    """The same solid with soft bumps, as baked and carved things have them."""
    waves = np.array([[dice.between(-1, 1) for _ in range(3)] for _ in range(6)]) * frequency
    phases = np.array([dice.between(0, 2 * math.pi) for _ in range(6)])
    shifts = np.array([[dice.between(-1, 1) for _ in range(3)] for _ in range(6)]) * height / 2

    def shift(points: Rows) -> Rows:
        return points + np.sin(points @ waves.T + phases) @ shifts

    return solid.warp_batch(shift)
