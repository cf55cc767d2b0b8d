"""Vessels: bowls, cups, plates, vases, glasses, bottles, and those with handles and spouts."""

from __future__ import annotations

import numpy as np
from manifold3d import CrossSection, Manifold, OpType

from diffassemble.fragments.shapes.tools import Dice, ball, bar, hollow, lathe, moulded, rectangle, silhouette, smooth


def bowl(dice: Dice) -> Manifold:
    """Round or straight sides on a small foot, sometimes with a turned-out rim."""
    depth, foot = dice.between(0.25, 0.6), dice.between(0.18, 0.32)
    belly, stand = dice.between(0.36, 0.5), dice.between(0.0, 0.05)
    wall, rim = dice.between(0.018, 0.06), dice.between(0.47, 0.5)
    line = [(0.0, stand / 2), *[(foot, 0.0)] * 2, (foot, stand), (belly, stand + depth * dice.between(0.15, 0.45))]
    line += [(rim, depth * dice.between(0.7, 0.9)), (rim, depth), (rim, depth), (0.0, depth)]
    outline = silhouette(smooth(line))
    if dice.chance(0.25):
        outline += rectangle(-rim - 0.04, depth - 1.2 * wall, rim + 0.04, depth)
    return moulded(lathe(outline - hollow(outline, wall, stand + wall, rim), dice), dice)


def cup(dice: Dice) -> Manifold:
    """A beaker that widens upwards, with rings around it; some are full, some have a lid and a straw."""
    rim, foot = dice.between(0.25, 0.36), dice.between(0.16, 0.24)
    return _beaker(dice, foot, rim, dice.between(0.012, 0.05))


def drinking_utensil(dice: Dice) -> Manifold:
    """A wide tumbler."""
    rim, foot = dice.between(0.36, 0.48), dice.between(0.28, 0.38)
    return _beaker(dice, foot, rim, dice.between(0.015, 0.07))


def _beaker(dice: Dice, foot: float, rim: float, wall: float) -> Manifold:
    middle = (foot + rim) / 2 + dice.between(-0.02, 0.03)
    line = [(0.0, 0.0), (foot, 0.0), (foot, 0.0), (foot, 0.03), (middle, 0.5), (rim, 0.95), (rim, 1.0), (rim, 1.0)]
    outline = silhouette(smooth([*line, (0.0, 1.0)], dice.whole(1, 3)))
    if dice.chance(0.4):
        height, band = dice.between(0.3, 0.92), dice.between(0.01, 0.03)
        reach = foot + (rim - foot) * height + band
        outline += rectangle(-reach, height, reach, height + dice.between(0.02, 0.08))
    if dice.chance(0.12):
        lid = rectangle(-rim - 0.02, 0.97, rim + 0.02, 1.02)
        straw = Manifold.cylinder(0.4, 0.02, 0.02, 12).rotate((-90 + dice.between(-20, 20), 0, 0))
        return lathe(outline + lid, dice) + straw.translate((dice.between(-0.1, 0.1), 0.9, 0))
    floor = dice.between(0.3, 0.85) if dice.chance(0.15) else wall * dice.between(1, 2)
    return moulded(lathe(outline - hollow(outline, wall, floor, rim), dice), dice)


def plate(dice: Dice) -> Manifold:
    """A shallow disc with a raised rim; sometimes a few of them in a pile."""
    height, thick = dice.between(0.02, 0.14), dice.between(0.012, 0.035)
    well = dice.between(0.26, 0.36)
    rise = dice.between(0, 0.3) * height
    under = smooth([(0.0, 0.0), (well, 0.0), (well + 0.04, rise), (0.46, 0.8 * height), (0.5, height)])
    line = np.concatenate([under, [[0.5, height + thick]], under[:-1][::-1] + np.array([0, thick])])
    one = lathe(silhouette(line), dice)
    pile = dice.whole(2, 3) if dice.chance(0.15) else 1
    whole = Manifold.batch_boolean([one.translate((0, 0.9 * thick * i, 0)) for i in range(pile)], OpType.Add)
    return moulded(whole, dice)


def vase(dice: Dice) -> Manifold:
    """A foot, a belly, a throat and a rim, each as wide as it likes."""
    foot, belly = dice.between(0.12, 0.3), dice.between(0.2, 0.45)
    throat, rim = dice.between(0.09, 0.24), dice.between(0.14, 0.36)
    widest, narrow = dice.between(0.25, 0.55), dice.between(0.72, 0.88)
    line = [(0.0, 0.0), (foot, 0.0), (foot, 0.0), (foot, 0.04), (dice.between(0.5, 1) * foot, 0.08)]
    line += [(belly, widest - 0.12), (belly, widest + 0.08), (throat, narrow), (throat, narrow + 0.03)]
    outline = silhouette(smooth([*line, (rim, 0.97), (rim, 1.0), (rim, 1.0), (0.0, 1.0)]))
    wall = dice.between(0.018, 0.06)
    if dice.chance(0.3):
        side = max(foot, 0.8 * belly) * dice.between(1, 1.2)
        plinth = Manifold.cube((2 * side, 0.08, 2 * side), True)
        return lathe(outline - hollow(outline, wall, 0.1 + wall, rim), dice) + plinth
    if dice.chance(0.15):
        return lathe(outline, dice) + ball((0, 1.0, 0), (0.9 * rim, dice.between(0.08, 0.2), 0.9 * rim))
    return moulded(lathe(outline - hollow(outline, wall, wall * dice.between(1, 3), rim), dice), dice)


def wine_glass(dice: Dice) -> Manifold:
    """A bowl on a stem on a foot; some have wine in them."""
    foot, stem = dice.between(0.18, 0.28), dice.between(0.014, 0.035)
    start, belly, rim = dice.between(0.3, 0.55), dice.between(0.19, 0.31), dice.between(0.15, 0.24)
    line = [(0.0, 0.0), (foot, 0.0), (foot, 0.0), (foot, 0.012), (3 * stem, 0.05), (stem, 0.1), (stem, start)]
    widest = start + (1 - start) * dice.between(0.3, 0.6)
    line += [(0.6 * belly, start + 0.03), (belly, widest), ((belly + rim) / 2, 0.9), (rim, 1.0), (rim, 1.0), (0.0, 1.0)]
    wall, outline = dice.between(0.012, 0.022), silhouette(smooth(line))
    floor = dice.between(widest - 0.05, 0.9) if dice.chance(0.35) else start + 0.06
    return lathe(outline - hollow(outline, wall, floor, rim), dice)


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
        solid += bar(path, np.full(len(path), 0.012), np.full(len(path), 0.02), 10)
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


def _body(radius: float, shoulder: float, dent: float) -> list[tuple[float, float]]:
    """From the middle of the bottom up to the shoulder."""
    bottom = [(0.0, dent), (0.55 * radius, dent / 3), (0.9 * radius, 0.0)]
    return [*bottom, (radius, 0.02), (radius, 0.1), (radius, shoulder)]


def _neck(radius: float, start: float, lip: float) -> list[tuple[float, float]]:
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


def mug(dice: Dice) -> Manifold:
    """A straight or bellied pot with one ear; some are full."""
    radius = dice.between(0.3, 0.42)
    foot, belly = radius * dice.between(0.7, 1), radius * dice.between(0.95, 1.12)
    line = [(0.0, 0.0), (foot, 0.0), (foot, 0.0), (belly, 0.15), (belly, 0.55), (radius, 0.95), (radius, 1.0)]
    outline = silhouette(smooth([*line, (radius, 1.0), (0.0, 1.0)], dice.whole(2, 3)))
    wall = dice.between(0.025, 0.07)
    floor = dice.between(0.6, 0.85) if dice.chance(0.15) else 1.5 * wall
    ear = _ear(dice, outline, dice.between(0.15, 0.35), dice.between(0.7, 0.88), dice.between(0.2, 0.32))
    return lathe(outline, dice) + ear - lathe(hollow(outline, wall, floor, radius), dice)


def teacup(dice: Dice) -> Manifold:
    """A small round cup with an ear, mostly on a saucer; some are full."""
    depth, rim = dice.between(0.28, 0.5), dice.between(0.26, 0.34)
    foot, wall = rim * dice.between(0.45, 0.65), dice.between(0.014, 0.035)
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
    return solid.translate((0, max(thick - 0.01, 0.005), 0)) + lathe(silhouette(saucer), dice)


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
