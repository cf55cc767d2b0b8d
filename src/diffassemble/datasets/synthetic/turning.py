"""Solids turned on a lathe: an outline, hollowed out if need be, goes around the upright axis y."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from manifold3d import CrossSection, FillRule, JoinType, Manifold, OpType

from diffassemble.cutting.solids import surface_solid
from diffassemble.datasets.synthetic.dice import Dice, Number

# Triangles that a turned solid has, about, and how long a step along its outline may be.
TRIANGLES = (3200, 5600)
LONGEST_STEP = 0.08
FINEST = 0.002
_FAR = 10.0

Point = tuple[Number, Number]


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
