"""Bottles: a body, a shoulder, a neck and a lip; empty with walls, or full, as scanned bottles mostly are."""

from __future__ import annotations

from manifold3d import CrossSection, Manifold

from diffassemble.datasets.synthetic.dice import Dice
from diffassemble.datasets.synthetic.shaping import bar, moulded
from diffassemble.datasets.synthetic.turning import Point, hollow, lathe, rectangle, silhouette, smooth


def beer_bottle(dice: Dice) -> Manifold:
    """A slender bottle with a long neck and a lip or a crown cap."""
    radius, neck = dice.between(0.11, 0.16), dice.between(0.042, 0.055)
    shoulder = dice.between(0.5, 0.64)
    line = [*_body(radius, shoulder, dice.between(0, 0.03)), *_neck(neck, dice.between(0.72, 0.8), 1.25 * neck)]
    return _made(silhouette(smooth(line)), dice, 0.5, dice.between(0.012, 0.022), neck)


def wine_bottle(dice: Dice) -> Manifold:
    """High shoulders or a long slope, a dent in the bottom, a narrow lip."""
    radius, neck = dice.between(0.11, 0.15), dice.between(0.038, 0.05)
    shoulder = dice.between(0.42, 0.62)
    end = shoulder + dice.between(0.08, 0.28)
    line = [*_body(radius, shoulder, dice.between(0.01, 0.09)), *_neck(neck, min(end, 0.8), 1.2 * neck)]
    return _made(silhouette(smooth(line)), dice, 0.35, dice.between(0.012, 0.025), neck)


def bottle(dice: Dice) -> Manifold:
    """Any bottle: flasks, jars with a cap, soft or square shoulders."""
    radius = dice.between(0.13, 0.28)
    neck = radius * dice.between(0.3, 0.7)
    shoulder = dice.between(0.5, 0.78)
    line = [*_body(radius, shoulder, dice.between(0, 0.03)), *_neck(neck, dice.between(0.8, 0.87), 1.1 * neck)]
    outline = silhouette(smooth(line, dice.whole(2, 3)))
    return moulded(_made(outline, dice, 0.35, dice.between(0.015, 0.03), neck), dice)


def drink_bottle(dice: Dice) -> Manifold:
    """A waisted bottle with a cap, as soft drinks come in; some have a loop to carry it."""
    radius, neck = dice.between(0.13, 0.2), dice.between(0.05, 0.075)
    waist, height = radius * dice.between(0.72, 0.98), dice.between(0.25, 0.5)
    swell = radius * dice.between(0.95, 1.08)
    line = [(0.0, 0.02), (0.8 * radius, 0.0), (radius, 0.03), (radius, height - 0.1), (waist, height)]
    line += [(swell, height + 0.12), (swell, 0.66), *_neck(neck, dice.between(0.82, 0.88), 1.1 * neck)]
    solid = _made(silhouette(smooth(line)), dice, 0.3, dice.between(0.012, 0.025), neck)
    if dice.chance(0.2):
        path = smooth([(0.9 * neck, 0.95), (3 * neck, 1.02), (4 * neck, 0.9), (0.9 * neck, 0.89)])
        solid += bar(path, [0.012] * len(path), [0.02] * len(path), 10)
    return moulded(solid, dice)


def pill_bottle(dice: Dice) -> Manifold:
    """A stout jar with a wide cap."""
    radius = dice.between(0.2, 0.46)
    neck, cap = radius * dice.between(0.75, 0.92), radius * dice.between(0.82, 1.08)
    shoulder, seam = dice.between(0.6, 0.72), dice.between(0.76, 0.84)
    line = [*_body(radius, shoulder, dice.between(0, 0.02)), (neck, seam - 0.03), (neck, seam), (neck, seam)]
    if dice.chance(0.35):
        line = [*line, (neck, 0.97), (neck, 1.0), (0.0, 1.0)]
        return _made(silhouette(smooth(line, 2)), dice, 1.0, dice.between(0.025, 0.06), neck)
    line = [*line, (cap, seam), (cap, seam), (cap, 0.99), (cap, 1.0), (0.97 * cap, 1.0), (0.0, 1.0)]
    return lathe(silhouette(smooth(line, 2)), dice)


def _body(radius: float, shoulder: float, dent: float) -> list[Point]:
    """From the middle of the bottom up to the shoulder."""
    return [
        (0.0, dent),
        (0.55 * radius, dent / 3),
        (0.9 * radius, 0.0),
        (radius, 0.02),
        (radius, 0.1),
        (radius, shoulder),
    ]


def _neck(radius: float, start: float, lip: float) -> list[Point]:
    """From where the neck begins to the middle of its top."""
    edge = max(0.93, start + 0.04)
    return [(radius, start), (radius, edge), (lip, edge), (lip, edge), (lip, 0.985), (0.9 * lip, 1.0), (0.0, 1.0)]


def _made(outline: CrossSection, dice: Dice, empty: float, wall: float, mouth: float) -> Manifold:
    """The bottle, empty with this probability, and otherwise full and perhaps with a cap on."""
    if dice.chance(empty):
        return lathe(outline - hollow(outline, wall, 2 * wall, mouth), dice)
    if dice.chance(0.5):
        cap = 1.3 * mouth
        outline = outline + rectangle(-cap, 0.9, cap, dice.between(0.95, 1.02))
    return lathe(outline, dice)
