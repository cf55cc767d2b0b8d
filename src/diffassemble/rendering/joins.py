"""Pictures of joins: two fragments that touch, opened like a book, with what touches in a colour of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float32, Float64
from PIL import Image
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from trimesh.triangles import closest_point, cross

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.kind import Join
from diffassemble.rendering.picture import fragment_colours
from diffassemble.rendering.studio import Triangles, expose, frame, orbit, triangles_of

# No fragment has this colour (sRGB).
CONTACT = np.array([1.0, 0.0, 0.85], np.float32)


@dataclass(frozen=True)
class JoinStyle:
    """What counts as touching, and how joins are shown. Shares are of the object's size unless noted."""

    size: tuple[int, int] = (360, 300)  # pixels of a picture
    most: int = 24  # joins that are shown
    reach: float = 0.01  # surfaces touch within this …
    facing: float = -0.3  # … if they face each other: the cosine of their normals is below
    side: float = 0.025  # triangles are split until no side is longer …
    near: int = 8  # … and compared with so many of the other's that are nearest
    triangles: int = 120_000  # of all fragments before splitting
    opened: float = 50.0  # degrees by which each fragment is turned …
    apart: float = 0.08  # … and how far apart the two are, twice this share of what is shown
    elevation: float = 14.0  # degrees, from a little above
    around: float = 1.5  # radii of the seam that are shown …
    least: float = 0.15  # … but no less than this
    clear: float = 0.4  # unless another part comes nearer to the eye than this share of its distance
    margin: float = 0.06  # of the picture


JOINS = JoinStyle()


class Body:
    """The triangles of one fragment at its pose, small enough to find which of them touch others."""

    def __init__(self, things: Triangles, has_sides: bool = True) -> None:
        self.things, self.has_sides = things, has_sides
        self.low, self.high = things.corners.min((0, 1)), things.corners.max((0, 1))
        self.middles = things.corners.mean(1)
        across = cross(things.corners.astype(np.float64))
        size = np.linalg.norm(across, axis=1)
        self.areas, self.normals = size / 2, across / np.maximum(size, 1e-30)[:, None]

    @cached_property
    def tree(self) -> cKDTree:
        """Finds triangles by where their middles are."""
        return cKDTree(self.middles)

    def near(self, other: Body, reach: float) -> bool:
        """Whether the boxes around both come as near as this."""
        return bool((self.low - reach < other.high).all() and (other.low - reach < self.high).all())

    def touching(self, other: Body, reach: float, side: float, style: JoinStyle = JOINS) -> Bool[np.ndarray, "f"]:
        """Which triangles, by their middles, lie within reach of one of the other's that faces them.

        No side of a triangle is longer than `side`. Points without triangles have no outer side: for them both count.
        """
        touching = np.zeros(len(self.middles), bool)
        some = np.flatnonzero(((self.middles > other.low - reach) & (self.middles < other.high + reach)).all(1))
        if not len(some):
            return touching
        count = min(style.near, len(other.middles))
        _, found = other.tree.query(self.middles[some], list(range(1, count + 1)), distance_upper_bound=reach + side)
        row, column = np.nonzero(found < len(other.middles))
        mine, theirs = some[row], found[row, column]
        cosine = (self.normals[mine] * other.normals[theirs]).sum(1)
        facing = cosine < style.facing if self.has_sides and other.has_sides else np.abs(cosine) > -style.facing
        mine, theirs = mine[facing], theirs[facing]
        if len(mine):
            points = self.middles[mine].astype(np.float64)
            nearest = closest_point(other.things.corners[theirs].astype(np.float64), points)
            touching[mine[np.linalg.norm(nearest - points, axis=1) <= reach]] = True
        return touching


def split(things: Triangles, side: float) -> Triangles:
    """The same surface in triangles without sides longer than this; the longest are halved as long as there are any."""
    corners, normals, owner = things.corners, things.normals, things.owner
    done: list[Triangles] = []
    while len(corners):
        lengths = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2)
        small = lengths.max(1) <= side
        done.append(Triangles(corners[small], normals[small], owner[small]))
        order = (lengths[~small].argmax(1)[:, None] + np.arange(3)) % 3
        corners, normals = (
            _halved(np.take_along_axis(values[~small], order[..., None], 1)) for values in (corners, normals)
        )
        owner = np.tile(owner[~small], 2)
    return joined(done) if done else Triangles(corners, normals, owner)


def joined(parts: Sequence[Triangles]) -> Triangles:
    """All of them, without paint."""
    rows = [(part.corners, part.normals, part.owner) for part in parts]
    corners, normals, owner = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Triangles(corners, normals, owner)


def _halved(values: Float32[np.ndarray, "f 3 3"]) -> Float32[np.ndarray, "g 3 3"]:
    """Values at the corners of the halves of triangles, cut from the middle of the first side to the third corner."""
    first, second, third = values.transpose(1, 0, 2)
    middle = (first + second) / 2
    return np.concatenate([np.stack([first, middle, third], 1), np.stack([middle, second, third], 1)])


def draw_joins(assembly: Answer) -> list[Join]:
    """Of each placed fragment the join with the neighbour that it touches most, each once, the least certain first."""
    seams = Seams(assembly)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pictures = pool.map(lambda pair: seams.opened(*pair), seams.chosen)
        return [Join(*pair, picture) for pair, picture in zip(seams.chosen, pictures, strict=True)]


class Seams:
    """Where the fragments of an assembly touch each other."""

    def __init__(self, assembly: Answer, style: JoinStyle = JOINS) -> None:
        self.style = style
        meshes = assembly.puzzle.fragments.meshes
        self.objects = assembly.placements.numbers.tolist()
        placed = [piece for piece, there in enumerate(assembly.placements.placed) if there]
        things = triangles_of(meshes, style.triangles).placed(assembly.poses)
        shown = things.corners[np.isin(things.owner, placed)].reshape(-1, 3)
        self.size = float(np.ptp(shown, axis=0).max()) if len(shown) else 1.0
        fine = split(things, style.side * self.size)
        there = [piece for piece in placed if (fine.owner == piece).any()]
        self.bodies = {n: Body(fine.of(fine.owner == n), len(meshes[n].faces) > 0) for n in there}
        self.middle = shown.mean(0) if len(shown) else np.zeros(3)
        self.order = sorted(self.bodies, key=lambda piece: (float(assembly.placements.trust[piece]), piece))
        self.colours = fragment_colours(len(meshes))
        self.found: dict[tuple[int, int], Bool[np.ndarray, "f"]] = {}

    def contact(self, first: int, second: int) -> Bool[np.ndarray, "f"]:
        """Which triangles of one fragment touch another."""
        if (first, second) not in self.found:
            reach, side = self.style.reach * self.size, self.style.side * self.size
            self.found[first, second] = self.bodies[first].touching(self.bodies[second], reach, side, self.style)
        return self.found[first, second]

    def neighbour(self, piece: int) -> int | None:
        """The fragment of the same object that one touches most."""
        own, best, reach = self.bodies[piece], (0.0, -1), self.style.reach * self.size
        for other, body in self.bodies.items():
            if other != piece and self.objects[other] == self.objects[piece] and own.near(body, reach):
                best = max(best, (float(own.areas[self.contact(piece, other)].sum()), other))
        return best[1] if best[1] >= 0 else None

    @cached_property
    def chosen(self) -> Sequence[tuple[int, int]]:
        """The joins that are shown: fragment and neighbour."""
        pairs: list[tuple[int, int]] = []
        for piece in self.order:
            other = None if len(pairs) == self.style.most else self.neighbour(piece)
            if other is not None and (other, piece) not in pairs:
                pairs.append((piece, other))
        return pairs

    def opened(self, first: int, second: int) -> Image.Image:
        """The fragments beside each other, both turned so that their breaks face the viewer."""
        style, bodies = self.style, (self.bodies[first], self.bodies[second])
        touching = self.contact(first, second), self.contact(second, first)
        axes, spine = book(bodies, touching, self.middle)
        seam = np.concatenate([body.middles[marked] for body, marked in zip(bodies, touching, strict=True)])
        wide = max(style.around * float(np.linalg.norm(seam - spine, axis=1).max()), style.least * self.size)
        parts, gap, close = [], style.apart * wide, []
        for number, (body, marked) in enumerate(zip(bodies, touching, strict=True)):
            angle = -style.opened if number == 0 else style.opened
            turn = Rotation.from_euler("y", angle, degrees=True).as_matrix() @ axes
            corners = (body.things.corners - spine) @ turn.T.astype(np.float32)
            edge = corners[..., 0].max() + gap if number == 0 else corners[..., 0].min() - gap
            corners[..., 0] -= edge
            owner = np.where(marked, 2, number).astype(np.int64)
            close.append(corners[np.linalg.norm(body.middles - spine, axis=1) <= wide].reshape(-1, 3))
            normals = body.things.normals @ turn.T.astype(np.float32)
            parts.append(Triangles(corners.astype(np.float32), normals, owner))
        both = joined(parts)
        points, view = both.corners.reshape(-1, 3), orbit(0.0, style.elevation)
        camera = frame(np.concatenate(close), view, style.size, style.margin)
        if camera.view(points)[:, 2].min() < style.clear * camera.distance:  # parts of a large fragment come too near
            camera = frame(points, view, style.size, style.margin)
        colours = np.stack([self.colours[first], self.colours[second], CONTACT])
        return expose(both, camera, style.size, ground=float(points[:, 1].min())).coloured(colours)


def book(
    bodies: tuple[Body, Body], touching: tuple[np.ndarray, np.ndarray], middle: Float32[np.ndarray, "3"]
) -> tuple[Float64[np.ndarray, "3 3"], Float32[np.ndarray, "3"]]:
    """Axes and origin of an open book: from the first to the second body, along the seam, outwards from the middle."""
    both = list(zip(bodies, touching, strict=True))
    points = np.concatenate([body.middles[marked] for body, marked in both])
    sums = [(body.normals * body.areas[:, None])[marked].sum(0) for body, marked in both]
    across, area = sums[0] - sums[1], sum(float(body.areas[marked].sum()) for body, marked in both)
    if np.linalg.norm(across) < 0.2 * area:  # a seam that runs all around, or points without sides
        across = bodies[1].middles.mean(0) - bodies[0].middles.mean(0)
    across = across / max(float(np.linalg.norm(across)), 1e-12)
    spine = np.average(points, axis=0, weights=np.concatenate([body.areas[marked] for body, marked in both]) + 1e-12)
    flat = (points - spine) - ((points - spine) @ across)[:, None] * across
    along = np.linalg.eigh(flat.T.astype(np.float64) @ flat)[1][:, -1]
    along = along - (along @ across) * across
    along /= max(float(np.linalg.norm(along)), 1e-12)
    towards = np.cross(across, along)
    if towards @ (spine - middle) < 0:
        along, towards = -along, -towards
    return np.stack([across, along, towards]), spine.astype(np.float32)
