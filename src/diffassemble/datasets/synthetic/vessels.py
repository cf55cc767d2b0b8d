"""Open vessels: bowls, cups, plates, vases, glasses, all with real walls."""

from __future__ import annotations

import numpy as np
from manifold3d import Manifold, OpType

from diffassemble.datasets.synthetic.dice import Dice
from diffassemble.datasets.synthetic.shaping import ball, moulded
from diffassemble.datasets.synthetic.turning import hollow, lathe, rectangle, silhouette, smooth


def bowl(dice: Dice) -> Manifold:
    """Round or straight sides on a small foot, sometimes with a turned-out rim."""
    depth, foot = dice.between(0.25, 0.6), dice.between(0.18, 0.32)
    belly, stand = dice.between(0.36, 0.5), dice.between(0.0, 0.05)
    wall, rim = dice.between(0.018, 0.06), dice.between(0.47, 0.5)
    line = [
        (0.0, stand / 2),
        (foot, 0.0),
        (foot, 0.0),
        (foot, stand),
        (belly, stand + depth * dice.between(0.15, 0.45)),
    ]
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
    bulge = dice.between(-0.02, 0.03)
    line = [
        (0.0, 0.0),
        (foot, 0.0),
        (foot, 0.0),
        (foot, 0.03),
        ((foot + rim) / 2 + bulge, 0.5),
        (rim, 0.95),
        (rim, 1.0),
    ]
    outline = silhouette(smooth([*line, (rim, 1.0), (0.0, 1.0)], dice.whole(1, 3)))
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
    under = smooth(
        [(0.0, 0.0), (well, 0.0), (well + 0.04, dice.between(0, 0.3) * height), (0.46, 0.8 * height), (0.5, height)]
    )
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
