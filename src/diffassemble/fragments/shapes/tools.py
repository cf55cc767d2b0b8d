"""Tools for made-up solids: chance in small words, a lathe, bars, balls and noisy shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float
from manifold3d import CrossSection, FillRule, JoinType, Manifold, OpType

from diffassemble.fragments.breaking import surface_solid

T = TypeVar("T")
Number = float | int
# Triangles that a turned solid has, about, and how long a step along its outline may be.
TRIANGLES = (3200, 5600)
LONGEST_STEP = 0.08
FINEST = 0.002
_FAR = 10.0
Point = tuple[Number, Number]
Place = tuple[Number, Number, Number]
Rows = Float[np.ndarray, "v 3"]


@dataclass(frozen=True)
class Dice:
    """Draws numbers and choices from one generator."""

    generator: torch.Generator

    def between(self, low: Number, high: Number) -> float:
        """Any number between two, all equally probable."""
        return low + (high - low) * float(torch.rand((), generator=self.generator, dtype=torch.double))

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def chance(self, probability: Number) -> bool:
        """True with this probability."""
        return self.between(0, 1) < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of several, all equally probable."""
        return options[self.whole(0, len(options) - 1)]


def smooth(points: Sequence[Point], rounds: int = 3) -> Float[np.ndarray, "p 2"]:
    """A line whose corners are cut again and again; a point given twice stays a corner. The ends stay."""
    line = np.array(points, np.float64)
    for _ in range(rounds):
        start, end = line[:-1], line[1:]
        inner = np.stack([0.75 * start + 0.25 * end, 0.25 * start + 0.75 * end], 1).reshape(-1, 2)
        line = np.concatenate([line[:1], inner, line[-1:]])
    return line


def silhouette(line: Float[np.ndarray, "p 2"]) -> CrossSection:
    """The area between a line of (radius, height) and its mirror image."""
    return CrossSection([np.concatenate([line, line[::-1] * (-1, 1)])], FillRule.NonZero)


def hollow(outline: CrossSection, wall: Number, floor: Number, mouth: Number) -> CrossSection:
    """The room inside an outline: a wall away from it, above the floor, open at the top within the mouth's radius."""
    top = outline.bounds()[3]
    chimney = rectangle(-mouth, top - 2 * wall, mouth, top + 1)
    inside = (outline + chimney).offset(-wall, JoinType.Round, circular_segments=24)
    return inside ^ rectangle(-_FAR, floor, _FAR, _FAR)


def rectangle(left: Number, low: Number, right: Number, high: Number) -> CrossSection:
    """An upright rectangle."""
    return CrossSection([np.array([[left, low], [right, low], [right, high], [left, high]])])


def lathe(section: CrossSection, dice: Dice, segments: int | None = None) -> Manifold:
    """The solid that a section sweeps when it goes around the axis; the part left of the axis is ignored."""
    right = (section ^ rectangle(0, -_FAR, _FAR, _FAR)).simplify(FINEST)
    contours = [_stepped(np.asarray(contour)) for contour in right.to_polygons() if len(contour) > 2]
    count = sum(map(len, contours))
    if segments is None:
        segments = max(20, min(72, round(dice.between(*TRIANGLES) / (2 * count))))
    return Manifold.batch_boolean([_swept(contour, segments) for contour in contours], OpType.Add)


def _stepped(contour: Float[np.ndarray, "p 2"]) -> Float[np.ndarray, "q 2"]:
    """The same contour without steps that are longer than allowed, the axis apart."""
    points = []
    for start, end in zip(contour, np.roll(contour, -1, 0), strict=True):
        on_axis = start[0] < 1e-6 and end[0] < 1e-6
        steps = 1 if on_axis else max(1, math.ceil(float(np.linalg.norm(end - start)) / LONGEST_STEP))
        points.append(start + np.linspace(0, 1, steps, endpoint=False)[:, None] * (end - start))
    return np.concatenate(points)


def _swept(contour: Float[np.ndarray, "p 2"], segments: int) -> Manifold:
    """A closed contour (counter-clockwise, right of the axis) swept all around."""
    angle = np.arange(segments) * 2 * math.pi / segments
    on_axis = contour[:, 0] < 1e-6
    radius = np.where(on_axis, 0, contour[:, 0])[:, None]
    height = np.broadcast_to(contour[:, 1:], (len(contour), segments))
    vertices = np.stack([radius * np.cos(angle), height, -radius * np.sin(angle)], -1).reshape(-1, 3)
    number = np.arange(len(vertices)).reshape(len(contour), segments)
    number[on_axis] = number[on_axis, :1]
    after = np.roll(number, -1, 0)
    a, b, c, d = (x.ravel() for x in (number, np.roll(number, -1, 1), np.roll(after, -1, 1), after))
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    proper = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 0] != faces[:, 2])
    used, faces = np.unique(faces[proper], return_inverse=True)
    return surface_solid(vertices[used], faces.reshape(-1, 3))


def bar(
    path: Float[np.ndarray, "p 2"], thickness: Float[np.ndarray, "p"], width: Float[np.ndarray, "p"], sides: int = 16
) -> Manifold:
    """A bar along a path in the plane z = 0, with half its thickness in that plane and half its width across it.

    Both go point by point; the section is an ellipse, the ends are flat.
    """
    along = np.gradient(path, axis=0)
    along = along / np.linalg.norm(along, axis=1, keepdims=True)
    beside = np.column_stack([-along[:, 1], along[:, 0], np.zeros(len(path))])
    angle = np.arange(sides) * 2 * math.pi / sides
    flat = thickness[:, None, None] * np.cos(angle)[:, None] * beside[:, None]
    across = width[:, None, None] * np.sin(angle)[:, None] * np.array([0.0, 0.0, 1.0])
    rings = np.column_stack([path, np.zeros(len(path))])[:, None] + flat + across
    ends = np.column_stack([path[[0, -1]], np.zeros(2)])
    number = np.arange(len(path) * sides).reshape(len(path), sides)
    after = np.roll(number, -1, 1)
    a, b, c, d = number[:-1], number[1:], after[1:], after[:-1]
    start, end = np.full(sides, number.size), np.full(sides, number.size + 1)
    corners = [(a, d, c), (a, c, b), (start, after[0], number[0]), (end, number[-1], after[-1])]
    faces = np.concatenate([np.stack([np.ravel(x) for x in three], 1) for three in corners])
    return surface_solid(np.concatenate([rings.reshape(-1, 3), ends]), faces)


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
