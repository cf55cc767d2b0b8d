"""Cookies, mirrors, rings and spoons."""

from __future__ import annotations

import math

import numpy as np
from manifold3d import CrossSection, JoinType, Manifold

from diffassemble.datasets.synthetic.dice import Dice
from diffassemble.datasets.synthetic.shaping import ball, bar, box, bumpy
from diffassemble.datasets.synthetic.turning import lathe, rectangle, silhouette, smooth


def cookie(dice: Dice) -> Manifold:
    """A lumpy disc, mostly with chips of chocolate on it."""
    thick, edge = dice.between(0.06, 0.2), dice.between(0.3, 0.48)
    dome = thick * dice.between(0.9, 1.3)
    line = [(0.0, 0.0), (edge, 0.0), (0.5, 0.3 * thick), (0.5, 0.7 * thick), (edge, thick), (0.0, dome)]
    disc = bumpy(lathe(silhouette(smooth(line)), dice, 64), dice.between(0.005, 0.02), 9.0, dice)
    for _ in range(dice.whole(0, 16)):
        angle, way, size = dice.between(0, 2 * math.pi), 0.4 * math.sqrt(dice.between(0, 1)), dice.between(0.02, 0.045)
        place = (way * math.cos(angle), thick, way * math.sin(angle))
        disc += ball(place, (size, dice.between(0.5, 1.2) * size + 0.02, size), 8)
    return disc


def mirror(dice: Dice) -> Manifold:
    """A glass in its frame, upright: alone, with a foot, with a handle, or on a chest of drawers."""
    width, height, depth = dice.between(0.5, 0.95), 1.0, dice.between(0.03, 0.08)
    shape = _glass(dice, width, height)
    frame = dice.between(0.03, 0.1)
    slab = shape.extrude(depth)
    if dice.chance(0.75):
        slab -= shape.offset(-frame, JoinType.Round, circular_segments=48).extrude(depth).translate((0, 0, 0.6 * depth))
    kind = dice.pick(("alone", "foot", "handle", "chest"))
    if kind == "foot":
        stand = box((0, -0.5 * height - 0.05, depth / 2), (0.1, 0.14, 0.8 * depth))
        return slab + stand + box((0, -0.5 * height - 0.12, depth / 2), (dice.between(0.3, 0.6), 0.05, 0.3))
    if kind == "handle":
        path = smooth([(0, -0.48 * height), (0, -0.7), (0, -1.0)])
        grip = np.linspace(dice.between(0.04, 0.06), dice.between(0.05, 0.09), len(path))
        return slab + bar(path, grip, grip * 0.5).translate((0, 0, depth / 2))
    if kind == "chest":
        size = (width * dice.between(0.9, 1.2), dice.between(0.4, 0.8), dice.between(0.25, 0.45))
        return slab + _chest(dice, size).translate((0, -0.5 * height + 0.02 - size[1] / 2, size[2] / 2))
    return slab


def _glass(dice: Dice, width: float, height: float) -> CrossSection:
    """Rectangular, oval or arched."""
    kind = dice.pick(("rectangle", "oval", "arch"))
    if kind == "oval":
        return CrossSection.circle(0.5, 56).scale((width, height))
    sheet = rectangle(-width / 2, -height / 2, width / 2, height / 2)
    if kind == "arch":
        low = rectangle(-width / 2, -height / 2, width / 2, height / 2 - width / 2)
        return low + CrossSection.circle(width / 2, 56).translate((0, height / 2 - width / 2))
    return sheet.offset(-0.05, JoinType.Miter).offset(0.05, JoinType.Round, circular_segments=24)


def _chest(dice: Dice, size: tuple[float, float, float]) -> Manifold:
    """A box with drawers in front."""
    chest, rows, cols = box((0, 0, 0), size), dice.whole(1, 3), dice.whole(1, 3)
    for row in range(rows):
        for col in range(cols):
            place = ((col + 0.5) / cols - 0.5, (row + 0.5) / rows - 0.5)
            centre = (place[0] * size[0], place[1] * size[1], size[2] / 2)
            chest += box(centre, (0.86 * size[0] / cols, 0.8 * size[1] / rows, 0.04))
            chest += ball((centre[0], centre[1], centre[2] + 0.025), (0.02, 0.02, 0.02), 8)
    return chest


def ring(dice: Dice) -> Manifold:
    """A band that stands upright, mostly with a stone on top."""
    radius, thick, wide = 0.42, dice.between(0.025, 0.08), dice.between(0.03, 0.18)
    band = CrossSection.square((2 * thick, 2 * wide), True).offset(-0.4 * thick, JoinType.Miter)
    band = band.offset(0.4 * thick, JoinType.Round, circular_segments=16)
    solid = lathe(band.translate((radius, 0)), dice, 72).rotate((90, 0, 0))
    stones = dice.pick((0, 1, 1, 1, 5))
    for number in range(stones):
        size = dice.between(0.1, 0.22) if stones == 1 else dice.between(0.07, 0.1)
        stone = _stone(dice, size).translate((0, radius + thick + 0.2 * size, 0))
        solid += stone.rotate((0, 0, (number - (stones - 1) / 2) * 19))
    return solid


def _stone(dice: Dice, size: float) -> Manifold:
    """A cut gem or a seal, with its point downwards."""
    sides, crown = dice.pick((4, 6, 8, 12, 32)), size * dice.between(0.5, 0.75)
    line = [(0.0, -1.1 * size), (0.45 * size, -0.5 * size), (size, 0.0), (size, 0.1 * size), (crown, 0.4 * size)]
    gem = lathe(silhouette(np.array([*line, (0.0, 0.4 * size)])), dice, sides)
    return gem.rotate((0, 180 / sides, 0))


def spoon(dice: Dice) -> Manifold:
    """A shallow bowl on a bent handle; it lies along z with its hollow upwards."""
    length, wide = dice.between(0.24, 0.36), dice.between(0.08, 0.12)
    if dice.chance(0.15):
        length, wide = dice.between(0.3, 0.4), dice.between(0.14, 0.2)
    deep, wall = dice.between(0.035, 0.07), dice.between(0.01, 0.018)
    shell = ball((0, 0, 0), (length / 2, deep, wide), 48) - ball(
        (0, 0, 0), (length / 2 - wall, deep - wall, wide - wall), 48
    )
    shell = shell.trim_by_plane((0, -1, 0), 0)
    rise = dice.between(0.0, 0.1)
    path = smooth(
        [
            (length / 2 - wall, -0.3 * wall),
            (length / 2 + 0.1, rise),
            (0.55, rise),
            (1 - length / 2, dice.between(0, 0.05)),
        ]
    )
    along = np.linspace(0, 1, len(path))
    width = dice.between(0.014, 0.022) * (1 + dice.between(0.3, 2) * along**2)
    handle = bar(path, np.full(len(path), dice.between(0.008, 0.016)), width)
    return (shell + handle).rotate((0, 90, 0))
