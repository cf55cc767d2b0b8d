"""Statues and toys: bodies blended out of limbs, on plinths or on their own feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from manifold3d import Manifold
from skimage.measure import marching_cubes

from diffassemble.cutting.solids import surface_solid
from diffassemble.datasets.synthetic.dice import Dice, Number
from diffassemble.datasets.synthetic.shaping import ball, box, bumpy
from diffassemble.datasets.synthetic.turning import lathe, silhouette

# Voxels along the longest side of a figure.
RESOLUTION = 52
Point = tuple[Number, Number, Number]


@dataclass(frozen=True)
class Limb:
    """A round cone between two points."""

    start: Point
    end: Point
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
    limbs += [
        Limb((0.2, height, 0), skull, 0.8 * fat, 0.06),
        Limb(skull, (skull[0] + 0.13, skull[1] - 0.04, skull[2]), size, 0.05),
    ]
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
        hand = (side * (wide / 2 + 0.08), -0.25 * tall, side * swing * 0.5)
        solid += Manifold.batch_hull(
            [ball((side * wide / 2, 0.3 * tall, 0), (arm,) * 3, 20), ball(hand, (arm,) * 3, 20)]
        )
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
