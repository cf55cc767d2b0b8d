"""Procedural everyday solids by name: endlessly many of each, watertight, in one body, upright, of length 1.

`VESSELS` is a table of what the lathe turns and `SKELETONS` one of what is made of limbs; other classes have a function
each. `SOLIDS` has them all.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from manifold3d import CrossSection, Error, FillRule, JoinType, Manifold
from skimage.measure import marching_cubes

from diffassemble.core import InputError, Mesh, Puzzle
from diffassemble.core.seeds import check_seed
from diffassemble.core.surfaces import clean_surface
from diffassemble.fragments.breaking import bounds, every_edge_joins_two, fracture_puzzle, mesh_of, surface_solid
from diffassemble.io.meshes import MESH_ENDINGS, read_mesh

T = TypeVar("T")
Number = float | int
Point = tuple[Number, Number]
Line = Sequence[Point] | Float[np.ndarray, "_ 2"]
Place = Float[np.ndarray, "3"]
Rows = Float[np.ndarray, "v 3"]
Limb = tuple[Place, Place, float, float]
"""a round cone: its two ends and the radii there"""


@dataclass(frozen=True)
class SolidConfig:
    """How finely solids are meshed, and which are sound. Lengths in units of the solid, which is about 1 high."""

    segments: int = 56
    """of a turn of the lathe"""
    longest_edge: float = 0.12
    finest: float = 0.002
    """smaller details of outlines are dropped"""
    voxels: int = 52
    """along the longest side of a figure of limbs"""
    triangles: tuple[int, int] = (2000, 8000)
    attempts: int = 20
    """draws of which one must be sound; mostly the first is"""
    least_volume: float = 1e-4
    """of a solid whose longest side is 1"""


SOLID = SolidConfig()


@dataclass(frozen=True)
class Dice:
    """Draws numbers and choices from one generator."""

    generator: torch.Generator

    def between(self, low: Number, high: Number) -> float:
        """Any number between two, all equally probable."""
        return low + (high - low) * float(torch.rand((), generator=self.generator, dtype=torch.double))

    def each(self, *ranges: Point) -> list[float]:
        """A number from each of several ranges, drawn in this order."""
        return [self.between(*limits) for limits in ranges]

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def chance(self, probability: Number) -> bool:
        """True with this probability."""
        return self.between(0, 1) < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of several, all equally probable."""
        return options[self.whole(0, len(options) - 1)]


# Outlines in the plane, as (radius, height)


def smooth(points: Line, rounds: int = 3) -> Float[np.ndarray, "p 2"]:
    """A line whose corners are cut again and again; a point given twice stays a corner. The ends stay."""
    line = np.array(points, np.float64)
    for _ in range(rounds):
        start, end = line[:-1], line[1:]
        inner = np.stack([0.75 * start + 0.25 * end, 0.25 * start + 0.75 * end], 1).reshape(-1, 2)
        line = np.concatenate([line[:1], inner, line[-1:]])
    return line


def outline(points: Line, rounds: int = 3) -> CrossSection:
    """The area between a smoothed line and its mirror image."""
    line = smooth(points, rounds)
    return CrossSection([np.concatenate([line, line[::-1] * (-1, 1)])], FillRule.NonZero)


def rectangle(left: Number, low: Number, right: Number, high: Number) -> CrossSection:
    """An upright rectangle."""
    return CrossSection([np.array([[left, low], [right, low], [right, high], [left, high]])])


def radius_at(section: CrossSection, height: Number) -> float:
    """How far an outline reaches at a height."""
    return float((section ^ rectangle(-9, height - 0.005, 9, height + 0.005)).bounds()[2])


def hollow(section: CrossSection, wall: Number, floor: Number, mouth: Number) -> CrossSection:
    """The room inside an outline: a wall away from it, above the floor, open at the top within the mouth's radius."""
    top = section.bounds()[3]
    chimney = rectangle(-mouth, top - 2 * wall, mouth, top + 1)
    inside = (section + chimney).offset(-wall, JoinType.Round, circular_segments=24)
    return inside ^ rectangle(-9, floor, 9, 9)


# Solids


def ball(centre: Sequence[Number], radii: Sequence[Number], segments: int = 24) -> Manifold:
    """An ellipsoid."""
    return Manifold.sphere(1.0, segments).scale(tuple(radii)).translate(tuple(centre))


def box(centre: Sequence[Number], sides: Sequence[Number]) -> Manifold:
    """An upright box."""
    return Manifold.cube(tuple(sides), True).translate(tuple(centre))


def lathe(section: CrossSection, segments: int = SOLID.segments) -> Manifold:
    """The solid that a section sweeps when it goes around the axis; the part left of the axis is ignored."""
    right = (section ^ rectangle(0, -9, 9, 9)).simplify(SOLID.finest)
    return right.revolve(segments).rotate((-90, 0, 0)).refine_to_length(SOLID.longest_edge)


def bar(
    path: Float[np.ndarray, "p 2"], thickness: Float[np.ndarray, "p"], width: Float[np.ndarray, "p"], sides: int = 16
) -> Manifold:
    """A bar along a path in the plane z = 0, with half its thickness in that plane and half its width across it.

    Both go point by point; the section is an ellipse, the ends are flat.
    """
    along = np.gradient(path, axis=0)
    beside = along[:, ::-1] * (-1, 1) / np.linalg.norm(along, axis=1, keepdims=True)

    def bent(points: Rows) -> Rows:
        at = points[:, 2].round().astype(int)
        return np.column_stack(
            [path[at] + (thickness[at] * points[:, 0])[:, None] * beside[at], width[at] * points[:, 1]]
        )

    rod = CrossSection.circle(1.0, sides).extrude(len(path) - 1, len(path) - 2)
    return rod.warp_batch(bent)


def blended(limbs: Sequence[Limb], softness: float) -> Manifold:
    """Limbs grown together: the surface where Σ exp(−distance / softness) is 1."""
    ends = np.array([limb[:2] for limb in limbs], np.float32)
    reach = max(limb[2] for limb in limbs) + softness
    low, high = ends.min((0, 1)) - reach, ends.max((0, 1)) + reach
    step = float((high - low).max()) / SOLID.voxels
    axes = [np.arange(a, b + step, step, dtype=np.float32) for a, b in zip(low, high, strict=True)]
    grid, inside = np.stack(np.meshgrid(*axes, indexing="ij"), -1), np.float32(0)
    for (start, end), (*_, thick, thin) in zip(ends, limbs, strict=True):
        share = np.clip((grid - start) @ (end - start) / max(float(((end - start) ** 2).sum()), 1e-12), 0, 1)
        distance = np.linalg.norm(grid - start - share[..., None] * (end - start), axis=-1)
        inside = inside + np.exp((thick + (thin - thick) * share - distance) / softness)
    vertices, faces, _, _ = marching_cubes(softness * np.log(np.maximum(inside, 1e-30)), 0.0, spacing=(step,) * 3)
    return surface_solid(vertices + low, faces[:, ::-1]).simplify(0.15 * step)


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
    drawn = 2 * torch.rand(6, 7, generator=dice.generator, dtype=torch.double).numpy() - 1
    waves, phases, shifts = frequency * drawn[:, :3], math.pi * drawn[:, 3], height / 2 * drawn[:, 4:]
    return solid.warp_batch(lambda points: points + np.sin(points @ waves.T + phases) @ shifts)


# Vessels

# fmt: off
PROFILES: dict[str, tuple[Point, ...]] = {
    "BeerBottle": ((0, .02), (.07, .01), (.12, 0), (.135, .02), (.135, .1), (.135, .57), (.049, .76), (.049, .93),
                   (.06, .93), (.06, .93), (.06, .985), (.054, 1), (0, 1)),
    "Bottle": ((0, .02), (.11, .005), (.18, 0), (.2, .02), (.2, .1), (.2, .64), (.1, .83), (.1, .93), (.11, .93),
               (.11, .93), (.11, .985), (.1, 1), (0, 1)),
    "Bowl": ((0, .02), (.25, 0), (.25, 0), (.25, .03), (.45, .17), (.5, .36), (.5, .42), (.5, .42), (0, .42)),
    "Cup": ((0, 0), (.2, 0), (.2, 0), (.2, .03), (.25, .5), (.3, .95), (.3, 1), (.3, 1), (0, 1)),
    "DrinkBottle": ((0, .02), (.13, 0), (.16, .03), (.16, .25), (.135, .37), (.16, .5), (.16, .64), (.062, .85),
                    (.062, .93), (.07, .93), (.07, .93), (.07, .985), (.063, 1), (0, 1)),
    "DrinkingUtensil": ((0, 0), (.33, 0), (.33, 0), (.33, .03), (.37, .5), (.42, .95), (.42, 1), (.42, 1), (0, 1)),
    "Mug": ((0, 0), (.32, 0), (.32, 0), (.37, .15), (.37, .55), (.36, .95), (.36, 1), (.36, 1), (0, 1)),
    "PillBottle": ((0, .01), (.3, 0), (.33, .02), (.33, .1), (.33, .66), (.28, .77), (.28, .8), (.31, .8), (.31, .8),
                   (.31, .99), (.3, 1), (0, 1)),
    "Teacup": ((0, .01), (.17, 0), (.17, 0), (.17, .03), (.28, .15), (.3, .33), (.3, .4), (.3, .4), (0, .4)),
    "Teapot": ((0, 0), (.22, 0), (.22, 0), (.36, .17), (.36, .4), (.2, .59), (.2, .62), (.2, .62), (0, .62)),
    "Vase": ((0, 0), (.2, 0), (.2, 0), (.2, .04), (.15, .08), (.32, .28), (.32, .48), (.15, .8), (.15, .83),
             (.25, .97), (.25, 1), (.25, 1), (0, 1)),
    "WineBottle": ((0, .05), (.07, .015), (.115, 0), (.13, .02), (.13, .1), (.13, .52), (.044, .72), (.044, .93),
                   (.053, .93), (.053, .93), (.053, .985), (.048, 1), (0, 1)),
    "WineGlass": ((0, 0), (.23, 0), (.23, 0), (.23, .012), (.07, .05), (.024, .1), (.024, .42), (.15, .45),
                  (.25, .74), (.22, .9), (.19, 1), (.19, 1), (0, 1)),
}
# fmt: on
"""outlines of (radius, height) from the middle of the bottom to that of the top; a point given twice is a corner"""


class Vessel(NamedTuple):
    """How a turned profile is finished."""

    wall: Point
    """range of its thickness"""
    closed: float = 0.0
    """probability of a solid body with a lid or cap"""
    floor: float = 0.0
    """least height of the room within, as a share of the whole height"""
    full: float = 0.15
    """probability that it is full"""
    ear: Point | None = None
    """range of how far a handle reaches, as a share of the height"""
    mould: bool = False
    """whether it may be other than round"""


VESSELS = {
    "BeerBottle": Vessel((0.012, 0.022), closed=0.5),
    "Bottle": Vessel((0.015, 0.03), closed=0.6, mould=True),
    "Bowl": Vessel((0.018, 0.06), full=0.0, mould=True),
    "Cup": Vessel((0.012, 0.05), closed=0.1, mould=True),
    "DrinkBottle": Vessel((0.012, 0.025), closed=0.6, mould=True),
    "DrinkingUtensil": Vessel((0.015, 0.07), mould=True),
    "Mug": Vessel((0.025, 0.07), ear=(0.2, 0.32)),
    "PillBottle": Vessel((0.025, 0.06), closed=0.65),
    "Teacup": Vessel((0.014, 0.035), ear=(0.3, 0.45)),
    "Teapot": Vessel((0.025, 0.045), closed=0.5, ear=(0.2, 0.35)),
    "Vase": Vessel((0.018, 0.06), closed=0.1, mould=True),
    "WineBottle": Vessel((0.012, 0.025), closed=0.6),
    "WineGlass": Vessel((0.012, 0.02), floor=0.62),
}


def turned(dice: Dice, name: str) -> Manifold:
    """A vessel of this name with its profile stretched at random: empty, full to some height, or closed."""
    vessel, (radii, heights) = VESSELS[name], np.array(PROFILES[name]).T
    knots = np.linspace(0, heights.max(), 5)
    radii = radii * np.interp(heights, knots, dice.each(*[(0.75, 1.25)] * 5))
    heights = np.interp(heights, knots, [0.0, *np.cumsum(dice.each(*[(0.65, 1.35)] * 4)) * knots[1]])
    section, wall = outline(np.stack([radii, heights], 1), dice.whole(2, 3)), dice.between(*vessel.wall)
    height = section.bounds()[3]
    mouth, solid = radius_at(section, height), lathe(section)
    if vessel.ear is not None:
        solid += _ear(dice, section, dice.between(*vessel.ear) * height)
    if name == "Teapot":
        solid += _spout(dice, radius_at(section, height / 2), height)
    if dice.chance(vessel.closed):
        return solid + ball((0, height, 0), (1.05 * mouth, dice.between(0.05, 0.14), 1.05 * mouth))
    floor = dice.between(max(0.6, vessel.floor), 0.88) if dice.chance(vessel.full) else vessel.floor
    solid -= lathe(hollow(section, wall, max(floor * height, wall * dice.between(1, 2)), mouth))
    return moulded(solid, dice) if vessel.mould else solid


def _ear(dice: Dice, section: CrossSection, reach: float) -> Manifold:
    """A handle towards +x, round or angular, rooted in the body."""
    low, high = (share * section.bounds()[3] for share in dice.each((0.2, 0.35), (0.72, 0.85)))
    bottom, top, tall = radius_at(section, low), radius_at(section, high), high - low
    far, (thick, wide, drop) = max(bottom, top) + reach, dice.each((0.1, 0.17), (0.1, 0.22), (-0.1, 0.1))
    line = [(top - 0.03, high), (top + 0.4 * reach, high + 0.02), (far, high + drop * tall), (far, low + drop * tall)]
    path = smooth([*line, (bottom + 0.4 * reach, low - 0.02), (bottom - 0.03, low)], dice.whole(2, 4))
    root = tall * (1 + 0.25 * np.linspace(-1, 1, len(path)) ** 2) / 2
    return bar(path, thick * root, wide * root)


def _spout(dice: Dice, belly: float, height: float) -> Manifold:
    """A spout towards −x with a bore."""
    reach, top, low = belly + dice.between(0.18, 0.32), height * dice.between(0.85, 1.05), 0.4 * height
    path = smooth([(-0.6 * belly, low), (-belly - 0.05, low + 0.03), (-belly - 0.1, 0.7 * height), (-reach, top)])
    taper = np.linspace(dice.between(0.07, 0.1), dice.between(0.03, 0.045), len(path))
    ahead = np.concatenate([path, path[-1:] + (path[-1:] - path[-2:-1])])
    inner = 0.55 * np.concatenate([taper, taper[-1:]])
    return bar(path, taper, taper) - bar(ahead, inner, inner, 12).trim_by_plane((-1, 0, 0), 0.98 * belly)


def plate(dice: Dice) -> Manifold:
    """A shallow disc with a raised rim; sometimes two in a pile."""
    height, thick, well, rise = dice.each((0.02, 0.14), (0.012, 0.035), (0.26, 0.36), (0, 0.3))
    under = smooth([(0.0, 0.0), (well, 0.0), (well + 0.04, rise * height), (0.46, 0.8 * height), (0.5, height)])
    over = under[::-1] + np.array([0.0, thick])
    one = lathe(outline(np.concatenate([under, over]), 0))
    return moulded(one + one.translate((0, 0.9 * thick, 0)) if dice.chance(0.15) else one, dice)


# Flat things, statues and toys


def cookie(dice: Dice) -> Manifold:
    """A lumpy disc, mostly with chips of chocolate on it."""
    thick, edge, dome = dice.each((0.06, 0.2), (0.3, 0.48), (0.9, 1.3))
    line = [(0.0, 0.0), (edge, 0.0), (0.5, 0.3 * thick), (0.5, 0.7 * thick), (edge, thick), (0.0, thick * dome)]
    disc = bumpy(lathe(outline(line)), dice.between(0.005, 0.02), 9.0, dice)
    for _ in range(dice.whole(0, 16)):
        angle, share, size, high = dice.each((0, 2 * math.pi), (0, 1), (0.02, 0.045), (0.5, 1.2))
        x, z = (0.4 * math.sqrt(share) * wave(angle) for wave in (math.cos, math.sin))
        disc += ball((x, thick, z), (size, high * size + 0.02, size), 8)
    return disc


def mirror(dice: Dice) -> Manifold:
    """A rectangular, oval or arched glass in its frame, upright: alone, with a foot, or with a handle."""
    width, depth, frame = dice.each((0.5, 0.95), (0.03, 0.08), (0.03, 0.1))
    sheet = rectangle(-width / 2, -0.5, width / 2, 0.5)
    sheet = sheet.offset(-0.05, JoinType.Miter).offset(0.05, JoinType.Round, circular_segments=24)
    arch = rectangle(-width / 2, -0.5, width / 2, 0.5 - width / 2)
    arch += CrossSection.circle(width / 2, 56).translate((0, 0.5 - width / 2))
    shape = dice.pick((sheet, arch, CrossSection.circle(0.5, 56).scale((width, 1.0))))
    slab, kind = shape.extrude(depth), dice.pick(("alone", "foot", "handle"))
    if dice.chance(0.75):
        slab -= shape.offset(-frame, JoinType.Round, circular_segments=48).extrude(depth).translate((0, 0, 0.6 * depth))
    if kind == "foot":
        slab += box((0, -0.55, depth / 2), (0.1, 0.14, 0.8 * depth))
        slab += box((0, -0.62, depth / 2), (dice.between(0.3, 0.6), 0.05, 0.3))
    if kind == "handle":
        path = smooth([(0, -0.48), (0, -0.7), (0, -1.0)])
        grip = np.linspace(dice.between(0.04, 0.06), dice.between(0.05, 0.09), len(path))
        slab += bar(path, grip, grip * 0.5).translate((0, 0, depth / 2))
    return slab


def ring(dice: Dice) -> Manifold:
    """An upright band, mostly with cut stones on top, their points downwards."""
    thick, wide = dice.each((0.025, 0.08), (0.03, 0.18))
    band = CrossSection.square((2 * thick, 2 * wide), True).offset(-0.4 * thick, JoinType.Miter)
    band = band.offset(0.4 * thick, JoinType.Round, circular_segments=16)
    solid = lathe(band.translate((0.42, 0))).rotate((90, 0, 0))
    stones = dice.pick((0, 1, 1, 1, 5))
    for number in range(stones):
        size, crown = dice.each((0.1, 0.22) if stones == 1 else (0.07, 0.1), (0.5, 0.75))
        line = np.array([(0.0, -1.1), (0.45, -0.5), (1.0, 0.0), (1.0, 0.1), (crown, 0.4), (0.0, 0.4)])
        stone = lathe(outline(size * line, 0), dice.pick((4, 6, 8, 12, 32)))
        solid += stone.translate((0, 0.42 + thick + 0.2 * size, 0)).rotate((0, 0, (number - (stones - 1) / 2) * 19))
    return solid


def spoon(dice: Dice) -> Manifold:
    """A shallow bowl on a bent handle; along z, its hollow upwards and its handle to the front."""
    length, wide, deep, wall = dice.each((0.24, 0.38), (0.08, 0.18), (0.035, 0.07), (0.01, 0.018))
    rise, end = dice.each((0.0, 0.1), (0, 0.05))
    outer, inner = (ball((0, 0, 0), [side - off for side in (length / 2, deep, wide)], 48) for off in (0, wall))
    shell = (outer - inner).trim_by_plane((0, -1, 0), 0)
    path = smooth([(length / 2 - wall, -0.3 * wall), (length / 2 + 0.1, rise), (0.55, rise), (1 - length / 2, end)])
    narrow, swell, thick = dice.each((0.014, 0.022), (0.3, 2), (0.008, 0.016))
    handle = bar(path, np.full(len(path), thick), narrow * (1 + swell * np.linspace(0, 1, len(path)) ** 2))
    return (shell + handle).rotate((0, -90, 0))


# fmt: off
SKELETONS: dict[str, tuple[dict[str, tuple[float, ...]], Sequence[tuple[str, str, float, float]]]] = {
    "person": (
        {"HIP": (0, .5, 0, 0), "CHEST": (0, .74, 0, .03), "NECK": (0, .9, 0, .02), "HEM": (0, .2, 0, .1),
         "CHIN": (0, .95, 0, .02), "CROWN": (.01, .99, 0, .02), "hip": (0, .5, .06, 0), "knee": (.03, .27, .09, .04),
         "foot": (0, .04, .1, .04), "toe": (.07, .03, .1, .02), "arm": (0, .74, .12, 0), "elbow": (0, .7, .24, .1),
         "hand": (.1, .7, .26, .16)},
        (("HIP", "CHEST", .095, .11), ("CHEST", "NECK", .05, .04), ("CHIN", "CROWN", .062, .058),
         ("hip", "knee", .075, .05), ("knee", "foot", .05, .035), ("foot", "toe", .035, .03),
         ("arm", "elbow", .045, .038), ("elbow", "hand", .038, .034), ("HIP", "HEM", .1, .12)),
    ),
    "bust": (
        {"CHEST": (0, .5, 0, 0), "BASE": (0, .3, 0, 0), "NECK": (0, .75, 0, .02), "side": (0, .5, .2, .02),
         "CHIN": (.02, .82, 0, .03), "CROWN": (0, .92, 0, .03), "NOSE": (.15, .82, 0, .03)},
        (("CHEST", "side", .13, .13), ("CHEST", "BASE", .16, .1), ("CHEST", "NECK", .085, .075),
         ("CHIN", "CROWN", .12, .135), ("CHIN", "NOSE", .03, .025)),
    ),
    "animal": (
        {"RUMP": (-.25, .38, 0, .03), "CHEST": (.22, .4, 0, .05), "SKULL": (.38, .58, 0, .08),
         "SNOUT": (.5, .54, 0, .05), "TAIL": (-.48, .4, 0, .12), "brow": (.37, .58, .04, .01),
         "ear": (.35, .75, .1, .04), "hip": (-.24, .38, .06, 0), "heel": (-.24, .04, .09, .04),
         "arm": (.2, .38, .06, 0), "hand": (.2, .04, .09, .04)},
        (("RUMP", "CHEST", .13, .12), ("CHEST", "SKULL", .1, .06), ("SKULL", "SNOUT", .1, .05),
         ("RUMP", "TAIL", .035, .025), ("brow", "ear", .04, .025), ("hip", "heel", .07, .045),
         ("arm", "hand", .07, .045)),
    ),
}
# fmt: on
"""of figures that look towards +x, feet at 0: joints (x, y, z and how far they may be off) and limbs between two joints
with their radii there; joints and limbs in small letters are on both sides, z being that on one of them"""


def figure(dice: Dice, name: str, softness: float, head: float = 1.0) -> Manifold:
    """The limbs of a skeleton with a head this many times as large as usual, grown together."""
    joints, limbs = SKELETONS[name]
    girth, places, drawn = dice.between(0.8, 1.2), dict[str, Place](), list[Limb]()
    for side in (1, -1):
        for joint, (x, y, z, off) in joints.items():
            if side == 1 or joint.islower():
                places[joint] = np.array((x, y, side * z)) + dice.each((-off, off), (-off, off), (-off, off))
        for start, end, thick, thin in limbs:
            if side == 1 or end.islower():
                scale = head if end == "CROWN" else girth
                drawn.append((places[start], places[end], thick * scale, thin * scale))
    return blended(drawn, softness)


def statue(dice: Dice) -> Manifold:
    """A person, a bust or an animal in stone on a round or square plinth."""
    name = dice.pick(("person", "person", "bust", "animal"))
    wide, height = (
        {"person": 0.28, "bust": 0.17, "animal": 0.5}[name] * dice.between(0.85, 1.15),
        dice.between(0.08, 0.3),
    )
    line = np.array([(0, -1), (1.15, -1), (1.15, -0.7), (1, -0.6), (1, 0.1), (0, 0.1)]) * (wide, height)
    plinth = lathe(outline(line, 0), dice.pick((4, 40))).rotate((0, 45, 0))
    return bumpy(figure(dice, name, 0.025), 0.012, 16.0, dice) + plinth.translate((0, 0.24 * (name == "bust"), 0))


def toy_figure(dice: Dice) -> Manifold:
    """A doll with a large head, or an animal."""
    return figure(dice, dice.pick(("person", "animal")), 0.025, dice.between(1.4, 2.2))


# The catalogue


_OTHERS = {"Cookie": cookie, "Mirror": mirror, "Plate": plate, "Ring": ring, "Spoon": spoon, "Statue": statue}
_VESSELS: dict[str, Callable[[Dice], Manifold]] = {name: partial(turned, name=name) for name in VESSELS}
SOLIDS = dict(sorted({**_VESSELS, **_OTHERS, "ToyFigure": toy_figure}.items()))
"""what makes a solid of each class"""


def solid_name(word: str) -> str | None:
    """The class that a word means, whatever its capitals, dashes and spaces; none if it means none."""
    plain = word.lower().translate(str.maketrans("", "", "-_ "))
    return next((name for name in SOLIDS if name.lower() == plain), None)


def make_solid(name: str, generator: torch.Generator, config: SolidConfig = SOLID) -> Mesh:
    """A solid of the class with this name, another one with every draw."""
    known = solid_name(name)
    if known is None:
        raise InputError(f"unknown solid {name!r}; use one of: {', '.join(SOLIDS)}")
    for _ in range(config.attempts):
        drawn = SOLIDS[known](Dice(generator))
        if drawn.status() == Error.NoError and not drawn.is_empty():
            mesh = mesh_of(_fitted(drawn, config))
            if _is_sound(mesh, config):
                return mesh
    raise RuntimeError(f"no sound solid in {config.attempts} attempts")


def _fitted(solid: Manifold, config: SolidConfig) -> Manifold:
    """The solid with its box centred on the origin, its longest side 1, and neither too few nor too many triangles."""
    low, high = bounds(solid)
    fitted = solid.translate(tuple(-(low + high) / 2)).scale((1 / float((high - low).max()),) * 3).simplify(1e-5)
    tolerance, length = 2.5e-4, 0.25
    while fitted.num_tri() > config.triangles[1] and tolerance < 0.01:
        fitted, tolerance = fitted.simplify(tolerance), 2 * tolerance
    while fitted.num_tri() < config.triangles[0]:
        fitted, length = fitted.refine_to_length(length), 0.8 * length
    return fitted


def _is_sound(mesh: Mesh, config: SolidConfig) -> bool:
    """Whether a mesh with rounded corners, those at one place joined, is still one body with a volume."""
    vertices, faces, *_ = clean_surface(mesh.vertices, mesh.faces)
    if not every_edge_joins_two(faces):
        return False
    solid = surface_solid(vertices.numpy(), faces.numpy())
    return solid.status() == Error.NoError and solid.volume() > config.least_volume and len(solid.decompose()) == 1


def fracture_file(source: Path | str, pieces: int, seed: int = 0, missing: float = 0.0, chips: float = 0.0) -> Puzzle:
    """Break the solid of a mesh file, or a procedural one if `source` is the name of a class and no file.

    The same seed gives the same puzzle.
    """
    check_seed(seed)
    generator, path = torch.Generator().manual_seed(seed), Path(source)
    if not path.exists() and solid_name(str(path)) is not None:
        mesh = make_solid(str(path), generator)
    elif not path.exists() and path.suffix.lower() not in MESH_ENDINGS:
        raise InputError(f"{path}: is neither a mesh file nor the name of a solid; solids are: {', '.join(SOLIDS)}")
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an open mesh is refused a moment later, in one line
            mesh = read_mesh(path)
    try:
        return fracture_puzzle(mesh, pieces, generator, missing, chips)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
