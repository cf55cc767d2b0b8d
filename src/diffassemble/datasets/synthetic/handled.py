"""Vessels with handles and spouts."""

from __future__ import annotations

import numpy as np
from manifold3d import CrossSection, Manifold

from diffassemble.datasets.synthetic.dice import Dice
from diffassemble.datasets.synthetic.shaping import ball, bar
from diffassemble.datasets.synthetic.turning import hollow, lathe, rectangle, silhouette, smooth


def mug(dice: Dice) -> Manifold:
    """A straight or bellied pot with one ear; some are full."""
    radius = dice.between(0.3, 0.42)
    foot, belly = radius * dice.between(0.7, 1), radius * dice.between(0.95, 1.12)
    line = [
        (0.0, 0.0),
        (foot, 0.0),
        (foot, 0.0),
        (belly, 0.15),
        (belly, 0.55),
        (radius, 0.95),
        (radius, 1.0),
        (radius, 1.0),
    ]
    outline = silhouette(smooth([*line, (0.0, 1.0)], dice.whole(2, 3)))
    wall = dice.between(0.025, 0.07)
    floor = dice.between(0.6, 0.85) if dice.chance(0.15) else 1.5 * wall
    ear = _ear(dice, outline, dice.between(0.15, 0.35), dice.between(0.7, 0.88), dice.between(0.2, 0.32))
    return lathe(outline, dice) + ear - lathe(hollow(outline, wall, floor, radius), dice)


def teacup(dice: Dice) -> Manifold:
    """A small round cup with an ear, mostly on a saucer; some are full."""
    depth, rim = dice.between(0.28, 0.5), dice.between(0.26, 0.34)
    foot, wall = rim * dice.between(0.45, 0.65), dice.between(0.014, 0.035)
    low = 0.02
    line = [(0.0, 0.0), (foot, 0.0), (foot, 0.0), (foot, 0.03), (rim * 0.95, 0.03 + depth * dice.between(0.1, 0.35))]
    outline = silhouette(smooth([*line, (rim, 0.85 * depth), (rim, depth), (rim, depth), (0.0, depth)]))
    floor = depth * dice.between(0.6, 0.85) if dice.chance(0.2) else 0.03 + wall
    solid = lathe(outline, dice) + _ear(dice, outline, 0.3 * depth, 0.8 * depth, 0.4 * depth)
    solid -= lathe(hollow(outline, wall, floor, rim), dice)
    if dice.chance(0.3):
        return solid
    rise, thick = dice.between(0.04, 0.1), dice.between(0.018, 0.03)
    under = smooth([(0.0, 0.0), (0.28, 0.0), (0.34, 0.01), (0.5, rise)])
    saucer = np.concatenate([under, under[::-1] + np.array([0, thick])])
    return solid.translate((0, max(thick - low / 2, 0.005), 0)) + lathe(silhouette(saucer), dice)


def teapot(dice: Dice) -> Manifold:
    """A belly with spout and handle; closed by a lid with a knob, or open and empty."""
    belly, height = dice.between(0.3, 0.42), dice.between(0.45, 0.8)
    foot, mouth = belly * dice.between(0.5, 0.75), belly * dice.between(0.45, 0.65)
    line = [(0.0, 0.0), (foot, 0.0), (foot, 0.0), (belly, height * dice.between(0.15, 0.4)), (belly, 0.65 * height)]
    outline = silhouette(smooth([*line, (mouth, 0.95 * height), (mouth, height), (mouth, height), (0.0, height)]))
    wall = dice.between(0.025, 0.045)
    spout, bore = _spout(dice, belly, height)
    handle = _ear(dice, outline, dice.between(0.2, 0.35) * height, dice.between(0.72, 0.85) * height, 0.55 * belly)
    solid = lathe(outline, dice) + handle + spout
    if dice.chance(0.5):
        return solid - lathe(hollow(outline, wall, 1.5 * wall, mouth), dice) - bore
    knob = dice.between(0.04, 0.07)
    lid = ball((0, height, 0), (1.05 * mouth, dice.between(0.05, 0.14), 1.05 * mouth))
    return solid + lid + ball((0, height + 0.1 + knob / 2, 0), (knob, 0.07, knob), 16)


def _spout(dice: Dice, belly: float, height: float) -> tuple[Manifold, Manifold]:
    """A spout towards −x, and the bore within it."""
    reach, top = belly + dice.between(0.18, 0.32), height * dice.between(0.85, 1.05)
    start = (-0.6 * belly, height * dice.between(0.3, 0.45))
    path = smooth([start, (-belly - 0.05, start[1] + 0.03), (-belly - 0.1, 0.7 * height), (-reach, top)])
    taper = np.linspace(dice.between(0.07, 0.1), dice.between(0.03, 0.045), len(path))
    ahead = np.concatenate([path, path[-1:] + (path[-1:] - path[-2:-1])])
    inner = np.concatenate([taper, taper[-1:]]) * 0.55
    return bar(path, taper, taper), bar(ahead, inner, inner, 12)


def _ear(dice: Dice, outline: CrossSection, low: float, high: float, reach: float) -> Manifold:
    """A handle towards +x between two heights, round or angular, rooted in the body."""
    bottom, top = _radius_at(outline, low), _radius_at(outline, high)
    far = max(bottom, top) + reach
    thick, wide = dice.between(0.1, 0.17) * (high - low), dice.between(0.1, 0.22) * (high - low)
    drop = dice.between(-0.1, 0.1) * (high - low)
    corners = [(top - 0.03, high), (top + 0.4 * reach, high + 0.02), (far, high + drop), (far, low + drop)]
    path = smooth([*corners, (bottom + 0.4 * reach, low - 0.02), (bottom - 0.03, low)], dice.whole(2, 4))
    root = 1 + 0.25 * np.linspace(-1, 1, len(path)) ** 2
    return bar(path, thick * root / 2, wide * root / 2)


def _radius_at(outline: CrossSection, height: float) -> float:
    """How far an outline reaches at a height."""
    return float((outline ^ rectangle(-10, height - 0.005, 10, height + 0.005)).bounds()[2])
