"""Flat things, statues and toys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from manifold3d import CrossSection, JoinType, Manifold
from skimage.measure import marching_cubes

from diffassemble.fragments.breaking import surface_solid
from diffassemble.fragments.shapes.tools import Dice, Place, ball, bar, box, bumpy, lathe, rectangle, silhouette, smooth

# Voxels along the longest side of a figure.
RESOLUTION = 52


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
    """A shallow bowl on a bent handle; it lies along z, its hollow upwards and its handle to the front."""
    length, wide = dice.between(0.24, 0.36), dice.between(0.08, 0.12)
    if dice.chance(0.15):
        length, wide = dice.between(0.3, 0.4), dice.between(0.14, 0.2)
    deep, wall = dice.between(0.035, 0.07), dice.between(0.01, 0.018)
    outer = ball((0, 0, 0), (length / 2, deep, wide), 48)
    shell = (outer - ball((0, 0, 0), (length / 2 - wall, deep - wall, wide - wall), 48)).trim_by_plane((0, -1, 0), 0)
    rise, end = dice.between(0.0, 0.1), dice.between(0, 0.05)
    path = smooth([(length / 2 - wall, -0.3 * wall), (length / 2 + 0.1, rise), (0.55, rise), (1 - length / 2, end)])
    along = np.linspace(0, 1, len(path))
    width = dice.between(0.014, 0.022) * (1 + dice.between(0.3, 2) * along**2)
    handle = bar(path, np.full(len(path), dice.between(0.008, 0.016)), width)
    return (shell + handle).rotate((0, -90, 0))


@dataclass(frozen=True)
class Limb:
    """A round cone between two points."""

    start: Place
    end: Place
    thick: float
    thin: float


def blended(limbs: Sequence[Limb], softness: float) -> Manifold:
    """Limbs grown together into one body; the softer, the wider their joints are filled."""
    ends = np.array([[limb.start, limb.end] for limb in limbs]).reshape(-1, 3)
    reach = max(limb.thick for limb in limbs) + softness
    low, high = ends.min(0) - reach, ends.max(0) + reach
    step = float((high - low).max()) / RESOLUTION
    axes = [np.arange(a, b + step, step, dtype=np.float32) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    inside = sum(np.exp(-_distance(grid, limb) / softness) for limb in limbs)
    field = softness * np.log(np.maximum(inside, 1e-30))
    vertices, faces, _, _ = marching_cubes(field, 0.0, spacing=(step,) * 3)
    return surface_solid(vertices + low, faces[:, ::-1]).simplify(0.15 * step)


def _distance(grid: Float[np.ndarray, "x y z 3"], limb: Limb) -> Float[np.ndarray, "x y z"]:
    """How far each place is from the surface of a limb; negative within."""
    start, end = np.array(limb.start, np.float32), np.array(limb.end, np.float32)
    along = end - start
    share = np.clip((grid - start) @ along / max(float(along @ along), 1e-12), 0, 1)
    radius = limb.thick + (limb.thin - limb.thick) * share
    return np.linalg.norm(grid - start - share[..., None] * along, axis=-1) - radius


def statue(dice: Dice) -> Manifold:
    """A person, a bust or an animal in stone on a plinth."""
    kind = dice.pick(("person", "person", "bust", "animal"))
    if kind == "animal":
        body = blended(_animal(dice), 0.03)
        return bumpy(body, 0.01, 14.0, dice) + box((0, 0.0, 0), (1.05, dice.between(0.08, 0.2), 0.45))
    if kind == "bust":
        body = bumpy(blended(_bust(dice), 0.035), 0.015, 16.0, dice)
        return body + _plinth(dice, dice.between(0.14, 0.2), dice.between(0.15, 0.35)).translate((0, 0.24, 0))
    body = bumpy(blended(_person(dice, 1.0), 0.02), 0.012, 18.0, dice)
    return body + _plinth(dice, dice.between(0.24, 0.34), dice.between(0.08, 0.35))


def toy_figure(dice: Dice) -> Manifold:
    """A doll, an animal, a robot or a little monument."""
    kind = dice.pick(("doll", "animal", "robot", "monument"))
    if kind == "doll":
        return blended(_person(dice, dice.between(1.4, 2.2)), 0.025)
    if kind == "animal":
        return blended(_animal(dice), 0.025)
    return _robot(dice) if kind == "robot" else _monument(dice)


def _person(dice: Dice, head: float) -> list[Limb]:
    """Somebody who stands about 1 high, feet at 0, with a head this many times as large as usual."""
    lean, hip, chest = dice.between(-0.04, 0.04), 0.5, 0.74
    limbs = [Limb((0, hip, 0), (lean, chest, 0), dice.between(0.08, 0.11), dice.between(0.09, 0.13))]
    limbs += [Limb((lean, chest, 0), (lean, 0.9, 0), 0.05, 0.04)]
    limbs += [Limb((lean, 0.88 + 0.05 * head, 0), (lean, 0.9 + 0.07 * head, 0.01), 0.062 * head, 0.058 * head)]
    for side in (-1, 1):
        knee = (side * dice.between(0.06, 0.12), 0.27, dice.between(-0.02, 0.08))
        foot = (side * dice.between(0.06, 0.14), 0.03, dice.between(-0.05, 0.05))
        limbs += [Limb((side * 0.06, hip, 0), knee, 0.075, 0.05), Limb(knee, foot, 0.05, 0.035)]
        limbs += [Limb(foot, (foot[0], 0.03, foot[2] + 0.07), 0.035, 0.03)]
        elbow = (lean + side * dice.between(0.17, 0.3), dice.between(0.55, 0.85), dice.between(-0.08, 0.08))
        hand = (elbow[0] + side * dice.between(-0.08, 0.14), elbow[1] + dice.between(-0.2, 0.2), dice.between(0, 0.16))
        limbs += [Limb((lean + side * 0.12, chest, 0), elbow, 0.045, 0.038), Limb(elbow, hand, 0.038, 0.034)]
    if dice.chance(0.4):
        limbs += [Limb((0, hip, 0), (0, 0.05, 0), 0.1, dice.between(0.14, 0.2))]
    return limbs


def _bust(dice: Dice) -> list[Limb]:
    """Head and shoulders."""
    turn = dice.between(-0.05, 0.05)
    limbs = [Limb((-0.2, 0.5, 0), (0.2, 0.5, 0), dice.between(0.11, 0.15), dice.between(0.11, 0.15))]
    limbs += [Limb((0, 0.5, 0), (0, 0.3, 0), 0.16, 0.1), Limb((0, 0.5, 0), (turn / 2, 0.75, 0), 0.085, 0.075)]
    limbs += [Limb((turn, 0.82, 0.02), (turn, 0.92, 0), dice.between(0.11, 0.13), dice.between(0.12, 0.15))]
    return [*limbs, Limb((turn, 0.84, 0.12), (turn, 0.8, 0.16), 0.02, 0.025)]


def _animal(dice: Dice) -> list[Limb]:
    """Something on four legs that looks towards +x, about 1 long, feet at 0."""
    height, fat = dice.between(0.3, 0.45), dice.between(0.1, 0.16)
    limbs = [Limb((-0.25, height, 0), (0.22, height + dice.between(-0.03, 0.08), 0), fat, fat * dice.between(0.8, 1.1))]
    skull = (0.25 + dice.between(0.05, 0.2), height + dice.between(0.1, 0.3), dice.between(-0.05, 0.05))
    size = dice.between(0.08, 0.12)
    snout = (skull[0] + 0.13, skull[1] - 0.04, skull[2])
    limbs += [Limb((0.2, height, 0), skull, 0.8 * fat, 0.06), Limb(skull, snout, size, 0.05)]
    limbs += [Limb((-0.3, height + 0.05, 0), (-0.48, height + dice.between(-0.15, 0.2), 0), 0.035, 0.025)]
    leg = dice.between(0.035, 0.055)
    for side in (-1, 1):
        ear = (skull[0] - 0.03, skull[1] + size + dice.between(0.02, 0.1), skull[2] + side * 0.09)
        limbs += [Limb((skull[0], skull[1], skull[2] + side * 0.04), ear, 0.04, 0.025)]
        for x in (-0.24, 0.2):
            foot = (x + dice.between(-0.05, 0.05), leg, side * dice.between(0.06, 0.11))
            limbs += [Limb((x, height, side * 0.06), foot, 1.5 * leg, leg)]
    return limbs


def _plinth(dice: Dice, radius: float, height: float) -> Manifold:
    """A round, square or stepped base, its top a little above 0."""
    if dice.chance(0.4):
        line = [(0.0, -height), (1.15 * radius, -height), (1.15 * radius, -0.7 * height), (radius, -0.6 * height)]
        return lathe(silhouette(np.array([*line, (radius, 0.03), (0.0, 0.03)])), dice, 40)
    base = box((0, (0.03 - height) / 2, 0), (2 * radius, height + 0.03, 2 * radius * dice.between(0.7, 1)))
    if dice.chance(0.5):
        base += box((0, -height, 0), (2.3 * radius, 0.05, 2.3 * radius))
    return base


def _robot(dice: Dice) -> Manifold:
    """A toy of boxes and balls."""
    wide, deep, tall = dice.between(0.3, 0.5), dice.between(0.2, 0.3), dice.between(0.3, 0.45)
    solid = box((0, 0, 0), (wide, tall, deep))
    skull = dice.between(0.12, 0.2)
    if dice.chance(0.5):
        solid += ball((0, tall / 2 + 0.8 * skull, 0), (skull, skull, skull), 32)
    else:
        solid += box((0, tall / 2 + skull, 0), (1.6 * skull, 2.1 * skull, 1.5 * skull))
    solid += Manifold.cylinder(0.3, 0.015, 0.015, 10).rotate((-90, 0, 0)).translate((0.05, tall / 2 + skull, 0))
    swing, arm = dice.between(-0.3, 0.3), dice.between(0.05, 0.07)
    for side in (-1, 1):
        ends = (side * wide / 2, 0.3 * tall, 0), (side * (wide / 2 + 0.08), -0.25 * tall, side * swing * 0.5)
        solid += Manifold.batch_hull([ball(end, (arm,) * 3, 20) for end in ends])
        solid += box((side * 0.28 * wide, -tall / 2 - 0.12, 0), (0.3 * wide, 0.3, 0.6 * deep))
        solid += box((side * 0.28 * wide, -tall / 2 - 0.26, 0.04), (0.36 * wide, 0.08, 0.9 * deep))
    return solid


def _monument(dice: Dice) -> Manifold:
    """A slab, a ball or an obelisk on a stepped base."""
    base, high = dice.between(0.3, 0.5), dice.between(0.15, 0.3)
    solid = box((0, high / 2, 0), (2 * base, high, 2 * base * dice.between(0.4, 1)))
    solid += box((0, high + 0.03, 0), (1.4 * base, 0.1, 1.4 * base * 0.4))
    kind = dice.pick(("slab", "ball", "obelisk"))
    if kind == "slab":
        solid += box((0, high + 0.3, 0), (1.3 * base, 0.5, dice.between(0.06, 0.14)))
    elif kind == "ball":
        size = dice.between(0.15, 0.28)
        solid += ball((0, high + 0.05 + 0.9 * size, 0), (size,) * 3, 36)
    else:
        width = dice.between(0.08, 0.16)
        shaft = Manifold.cylinder(dice.between(0.4, 0.8), width, 0.6 * width, dice.pick((4, 6, 24)))
        solid += shaft.rotate((-90, 45, 0)).translate((0, high, 0))
    return solid
