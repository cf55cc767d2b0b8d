"""A solid breaks into fragments along bent, rough sheets, and these become a puzzle; meshes as solids, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from manifold3d import Error, Manifold
from manifold3d import Mesh as Surface
from manifold3d import Mesh64 as FineSurface
from torch import Tensor

from diffassemble.core import FragmentPieces, InputError, Mesh, Poses, Puzzle
from diffassemble.core.pieces import surviving
from diffassemble.core.poses import random_rotations
from diffassemble.core.surfaces import clean_surface, sample_surface

POINTS = 1000
"""points that a puzzle gives of each fragment, as the benchmark does"""


@dataclass(frozen=True)
class BreakingConfig:
    """How solids break. Lengths are shares of the solid's longest side."""

    bend: float = 0.8
    """curvature of a break"""
    roughness: float = 0.1
    """height of its waves, times the weight of their frequency (waves across the solid)"""
    frequencies: tuple[float, ...] = (2.0, 6.0, 16.0, 40.0)
    weights: tuple[float, ...] = (0.55, 0.28, 0.14, 0.07)
    waves: int = 3
    """waves of each frequency"""
    cells: tuple[int, int] = (10, 32)
    """least and greatest number of cells along a break"""
    margin: float = 1.05
    """how far a break reaches beyond the piece, as a factor"""
    most_pieces: int = 200
    volume_error: float = 1e-4
    """greatest difference between the volume of the whole and of its fragments"""
    sliver: float = 0.02
    """least volume of a fragment, as a share of what all would have if they were alike"""
    chip: tuple[float, float] = (0.01, 0.12)
    """volumes of chips, as such shares"""
    attempts: int = 60
    """breaks that are tried for each fragment"""
    unevenness: float = 2.6
    """a break takes half of u^unevenness off a piece, u drawn evenly from [0, 1]: broken objects keep one large part"""
    grain: float = 2.0**-22
    """places nearer to each other than this share of the largest coordinate are one: files keep 24 bits"""


BREAKING = BreakingConfig()


class Sheet(NamedTuple):
    """Where a break runs: `frame` has its two directions and its normal in rows, `centre` is on it."""

    frame: Float[np.ndarray, "3 3"]
    centre: Float[np.ndarray, "3"]


def across(normal: Float[np.ndarray, "3"], centre: Float[np.ndarray, "3"], generator: torch.Generator) -> Sheet:
    """A sheet with this normal, its other directions drawn at random."""
    upward = normal / np.linalg.norm(normal)
    first = np.cross(upward, _normal(generator))
    first = first / np.linalg.norm(first)
    return Sheet(np.stack([first, np.cross(upward, first), upward]), centre)


def _normal(generator: torch.Generator) -> Float[np.ndarray, "3"]:
    return torch.randn(3, generator=generator, dtype=torch.double).numpy()


def block_below(
    sheet: Sheet,
    points: Float[np.ndarray, "p 3"],
    generator: torch.Generator,
    roughness: float = 1.0,
    config: BreakingConfig = BREAKING,
) -> Manifold:
    """A closed block that reaches from the sheet to below all points, with the break as its top.

    Lengths are in shares of the whole solid, whose longest side is 1: so is the grain of the break.
    """
    local = (points - sheet.centre) @ sheet.frame.T
    low, high = local.min(0), local.max(0)
    middle, half = (low + high) / 2, config.margin * (high - low) / 2 + 1e-3
    size, (fewest, most) = float(half[:2].max()), config.cells
    cells = [max(fewest, min(most, math.ceil(2 * side * most))) for side in half[:2]]
    grid = np.stack(np.meshgrid(*(np.linspace(-1, 1, side + 1) for side in cells), indexing="ij"), -1)
    # Corners within are moved about, so that no lattice shows.
    jitter = torch.rand(cells[0] - 1, cells[1] - 1, 2, generator=generator, dtype=torch.double).numpy() - 0.5
    grid[1:-1, 1:-1] += 1.2 * jitter / cells
    plane = middle[:2] + grid.reshape(-1, 2) * half[:2]
    height = roughness * size * _relief(plane / max(size, 1e-6), 2 * size, generator, config)
    floor = min(low[2], float(height.min())) - 0.1 * size
    border, faces = _block_faces(cells[0] + 1, cells[1] + 1)
    edge = np.concatenate([plane[border], middle[None, :2]])
    corners = np.concatenate([np.column_stack([plane, height]), np.column_stack([edge, np.full(len(edge), floor)])])
    return surface_solid(corners @ sheet.frame + sheet.centre, faces)


def _relief(
    plane: Float[np.ndarray, "p 2"], extent: float, generator: torch.Generator, config: BreakingConfig
) -> Float[np.ndarray, "p"]:
    """Heights over the plane, both in half sizes of the piece: bent, with waves of several lengths upon it."""
    bend, (x, y) = config.bend * _normal(generator) / 2, plane.T
    height = bend[0] * (x * x - 0.3) + bend[1] * (y * y - 0.3) + bend[2] * x * y
    for frequency, weight in zip(config.frequencies, config.weights, strict=True):
        angle, phase = 2 * math.pi * torch.rand(2, config.waves, generator=generator, dtype=torch.double).numpy()
        waves = math.pi * frequency * np.stack([np.cos(angle), np.sin(angle)])
        height = height + config.roughness * weight * np.sin(plane @ waves * max(extent, 0.3) + phase).sum(1)
    return height


def _block_faces(rows: int, cols: int) -> tuple[Int[np.ndarray, "e"], Int[np.ndarray, "f 3"]]:
    """The border of a top that is numbered row by row, and the triangles of the block below it.

    After the corners of the top come those below its border, in the border's order, and the middle of the bottom.
    """
    number = np.arange(rows * cols).reshape(rows, cols)
    a, b, c, d = (x.ravel() for x in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    border = np.concatenate([number[:-1, 0], number[-1, :-1], number[:0:-1, -1], number[0, :0:-1]])
    under = rows * cols + np.arange(len(border))
    after, under_after, middle = np.roll(border, -1), np.roll(under, -1), np.full(len(border), under[-1] + 1)
    corners = [(a, b, c), (a, c, d), (border, under, after), (after, under, under_after), (middle, under_after, under)]
    return border, np.concatenate([np.stack(three, 1) for three in corners])


def scatter(meshes: Sequence[Mesh], generator: torch.Generator, points: int = POINTS) -> Puzzle:
    """A puzzle out of assembled fragments, by the benchmark's protocol.

    The whole's longest side becomes 1 and its middle the origin; a fragment's frame has its origin at the mean of its
    points and is turned at random. The truth puts all back.
    """
    corners = torch.cat([mesh.vertices for mesh in meshes])
    low, high = corners.amin(0), corners.amax(0)
    unit, middle = float((high - low).max()), (low + high) / 2
    order = torch.randperm(len(meshes), generator=generator).tolist()
    standing = [meshes[i].placed((meshes[i].vertices - middle) / unit) for i in order]
    drawn = torch.stack([sample_surface(mesh.vertices, mesh.faces, points, generator)[0] for mesh in standing])
    return turned_apart(standing, drawn, generator, unit)


def turned_apart(
    standing: Sequence[Mesh], drawn: Float[Tensor, "n p 3"], generator: torch.Generator, unit: float = 1.0
) -> Puzzle:
    """A puzzle of assembled fragments, each turned at random about the mean of the points drawn from it."""
    centres, turns = drawn.mean(1), random_rotations(len(drawn), generator)
    moved = [
        mesh.placed((mesh.vertices - at) @ turn.T, turn)
        for mesh, at, turn in zip(standing, centres, turns, strict=True)
    ]
    local = (drawn - centres[:, None]) @ turns.mT
    width = max(2, len(str(len(drawn) - 1)))
    names = tuple(f"fragment_{number:0{width}d}" for number in range(len(drawn)))
    pieces = FragmentPieces(local, tuple(moved), torch.zeros(len(drawn), 3), unit)
    return Puzzle(pieces, None, names, Poses(turns.mT, centres))


class _Part(NamedTuple):
    """One fragment while the breaking goes on; chips are not broken again."""

    solid: Manifold
    volume: float
    chip: bool = False


def fracture(
    mesh: Mesh,
    pieces: int,
    generator: torch.Generator,
    chips: float = 0.0,
    roughness: float = 1.0,
    config: BreakingConfig = BREAKING,
) -> list[Mesh]:
    """Break a solid into exactly so many fragments, which stay where they were in the whole.

    Breaks are bent and rough, the less so the smaller `roughness` is: at 0 they are plane, as a saw cuts. Every
    fragment is watertight and in one part. A share `chips` of the fragments (but never all) are small ones, off the
    edges of the others.
    """
    if not 2 <= pieces <= config.most_pieces:
        raise InputError(f"cannot break into {pieces} pieces; ask for 2 to {config.most_pieces}")
    if not 0 <= chips < 1:
        raise InputError(f"share of chips {chips} is not at least 0 and under 1; 0.3 makes 30 % of the pieces small")
    low, high = mesh.vertices.amin(0), mesh.vertices.amax(0)
    middle, unit = (low + high) / 2, float((high - low).max())
    whole = solid_of(Mesh((mesh.vertices - middle) / max(unit, 1e-30), mesh.faces))
    parts = [_Part(body, body.volume()) for body in bodies(whole)]
    if len(parts) > pieces:
        raise InputError(f"has {len(parts)} separate parts; ask for at least {len(parts)} pieces")
    small = min(round(pieces * chips), pieces - len(parts))
    parts = _broken(parts, pieces - small, pieces, generator, roughness, config)
    parts = _chipped(parts, pieces, generator, roughness, config)
    volume = whole.volume()
    if abs(sum(part.volume for part in parts) - volume) > config.volume_error * volume:
        raise InputError("intersects itself, so that it cannot be broken cleanly; repair it and try again")
    return [mesh_of(part.solid, unit, middle) for part in parts]


def fracture_puzzle(
    mesh: Mesh, pieces: int, generator: torch.Generator, missing: float = 0.0, chips: float = 0.0, points: int = POINTS
) -> Puzzle:
    """Break a solid into fragments, each centred and turned at random, and lose a share `missing` of them.

    Middle and size of the whole are those before any fragment was lost.
    """
    if not 0 <= missing < 1:
        raise InputError(f"missing share {missing} is not at least 0 and under 1; 0.2 takes 20 % of the pieces away")
    puzzle = scatter(fracture(mesh, pieces, generator, chips), generator, points)
    kept = puzzle.reordered(surviving(len(puzzle), missing, generator))
    return Puzzle(kept.pieces, None, puzzle.names[: len(kept)], kept.truth)


def _broken(
    parts: list[_Part], wanted: int, pieces: int, generator: torch.Generator, roughness: float, config: BreakingConfig
) -> list[_Part]:
    """Break part after part, large ones rather than small ones, until there are so many."""
    least, failures = config.sliver * sum(part.volume for part in parts) / pieces, 0
    while len(parts) < wanted:
        chosen = _drawn([part.volume for part in parts], generator)
        sheet = _break_through(parts[chosen].solid, generator, config.unevenness)
        found = _split(parts[chosen].solid, sheet, generator, roughness, config)
        if 2 <= len(found) <= wanted - len(parts) + 1 and min(part.volume for part in found) > least:
            parts = [*parts[:chosen], *parts[chosen + 1 :], *found]
            continue
        failures += 1
        least = least if failures % config.attempts else least / 4
        if failures > config.attempts * (3 + wanted):
            raise InputError(f"cannot be broken into {pieces} pieces; ask for fewer")
    return parts


def _chipped(
    parts: list[_Part], pieces: int, generator: torch.Generator, roughness: float, config: BreakingConfig
) -> list[_Part]:
    """Take chips off parts that are none until there are so many fragments; the depth of a break is found by trying."""
    mean, failures, depth = sum(part.volume for part in parts) / pieces, 0, 0.1
    while len(parts) < pieces:
        chosen = _drawn([0.0 if part.chip else part.volume for part in parts], generator)
        sheet = _break_off(parts[chosen].solid, depth, generator)
        found = sorted(_split(parts[chosen].solid, sheet, generator, roughness, config), key=lambda part: part.volume)
        if len(found) == 2 and config.chip[0] * mean < found[0].volume < config.chip[1] * mean:
            parts = [*parts[:chosen], *parts[chosen + 1 :], found[0]._replace(chip=True), found[1]]
            continue
        taken = sum(part.volume for part in found[:-1])
        depth = max(depth / 1.5, 0.003) if taken > config.chip[0] * mean else min(depth * 1.3, 0.3)
        failures += 1
        if failures > config.attempts * (3 + pieces):
            raise InputError(f"cannot be broken into {pieces} pieces with so many chips; ask for fewer")
    return parts


def _drawn(volumes: list[float], generator: torch.Generator) -> int:
    return int(torch.multinomial(torch.tensor(volumes), 1, generator=generator))


def _split(
    solid: Manifold, sheet: Sheet, generator: torch.Generator, roughness: float, config: BreakingConfig
) -> list[_Part]:
    """What a break along the sheet leaves of a solid."""
    halves = solid.split(block_below(sheet, _corners(solid), generator, roughness, config))
    return [_Part(body, body.volume()) for half in halves if not half.is_empty() for body in bodies(half)]


def _break_through(solid: Manifold, generator: torch.Generator, unevenness: float) -> Sheet:
    """Where a piece breaks: mostly across its long axes, some way off its middle."""
    points = _corners(solid)
    spread, axes = np.linalg.eigh(np.cov(points.T) + 1e-12 * np.eye(3))
    normal = axes @ (np.sqrt(spread) * _normal(generator))
    share, along, side = torch.rand(3, generator=generator, dtype=torch.double).tolist()
    share, normal = max(0.02, 0.5 * share**unevenness), normal / np.linalg.norm(normal)
    offset = np.quantile(points @ normal, share if side < 0.5 else 1 - share)
    nearest = points[np.argsort(np.abs(points @ normal - offset))[: max(1, len(points) // 10)]]
    return across(normal, nearest[int(along * len(nearest))], generator)


def _break_off(solid: Manifold, depth: float, generator: torch.Generator) -> Sheet:
    """A break just below some outermost corner of a piece."""
    points, (low, high) = _corners(solid), bounds(solid)
    direction = _normal(generator) * np.sqrt(high - low)
    normal = direction / np.linalg.norm(direction)
    return across(normal, points[np.argmax(points @ normal)] - depth * normal, generator)


def _corners(solid: Manifold) -> Float[np.ndarray, "v 3"]:
    return np.array(solid.to_mesh().vert_properties[:, :3], np.float64)


def solid_of(mesh: Mesh) -> Manifold:
    """The solid within a closed surface, outside and inside distinguished by which of them is finite."""
    if len(mesh.faces) == 0:
        raise InputError("has no triangles; give the surface of a solid")
    if not bool(mesh.vertices.isfinite().all()):
        raise InputError("has corners that are not finite numbers; repair it and try again")
    solid = surface_solid(mesh.vertices.numpy(), mesh.faces.numpy())
    if solid.status() != Error.NoError:
        raise InputError("not watertight; close its holes, for example with MeshLab, and try again")
    size = float((mesh.vertices.amax(0) - mesh.vertices.amin(0)).max())
    if solid.is_empty() or abs(solid.volume()) <= 1e-9 * size**3:
        raise InputError("encloses no volume; give a solid with thickness")
    return solid if solid.volume() > 0 else solid_of(Mesh(mesh.vertices, mesh.faces.flip(1)))


def surface_solid(vertices: Float[np.ndarray, "v 3"], faces: np.ndarray) -> Manifold:
    """The solid of corners and triangles; corners that files list once for each triangle are joined."""
    # manifold3d takes nothing but writable arrays of these very types.
    surface = Surface(np.array(vertices, np.float32, order="C"), np.array(faces, np.uint32, order="C"))
    solid = Manifold(surface)
    return Manifold(surface) if solid.status() == Error.NotManifold and surface.merge() else solid


def mesh_of(solid: Manifold, unit: float = 1.0, middle: Float[Tensor, "3"] | None = None) -> Mesh:
    """The surface of a solid, made `unit` times as large and moved to `middle`.

    Corners that files could hardly distinguish are one, if every edge still joins two triangles then.
    """
    surface = solid.to_mesh64()
    vertices = torch.from_numpy(np.array(surface.vert_properties[:, :3])) * unit + (0 if middle is None else middle)
    faces = torch.from_numpy(np.array(surface.tri_verts, np.int64))
    grain = float(vertices.abs().max()) * BREAKING.grain
    rounded = (vertices / grain).round() * grain
    welded, triangles, *_ = clean_surface(rounded.float(), faces)
    return Mesh(welded, triangles) if every_edge_joins_two(triangles) else Mesh(rounded.float(), faces)


def every_edge_joins_two(faces: Int[Tensor, "f 3"]) -> bool:
    """Whether each edge of each triangle is run along by exactly one other, the opposite way."""
    count = int(faces.max()) + 1
    start, end = faces.flatten(), faces.roll(-1, 1).flatten()
    there, back = (start * count + end).sort().values, (end * count + start).sort().values
    return bool((there[1:] > there[:-1]).all() and torch.equal(there, back))


def bounds(solid: Manifold) -> tuple[Float[np.ndarray, "3"], Float[np.ndarray, "3"]]:
    """The least and greatest coordinates of a solid."""
    box = np.array(solid.bounding_box())
    return box[:3], box[3:]


def bodies(solid: Manifold) -> list[Manifold]:
    """The connected parts of a solid, each with the cavities within it."""
    parts = solid.decompose()
    full = [part for part in parts if part.volume() > 0]
    for cavity in (part for part in parts if part.volume() < 0):
        low, high = bounds(cavity)
        boxes = [bounds(body) for body in full]
        around = [i for i, (least, most) in enumerate(boxes) if (least <= low).all() and (high <= most).all()]
        if around:
            nearest = min(around, key=lambda i: full[i].volume())
            outer, inner = full[nearest].to_mesh64(), cavity.to_mesh64()  # whose surface faces inwards already
            vertices = np.concatenate([outer.vert_properties[:, :3], inner.vert_properties[:, :3]])
            faces = np.concatenate([outer.tri_verts, inner.tri_verts + len(outer.vert_properties)])
            full[nearest] = Manifold(FineSurface(vertices.astype(np.float64), faces.astype(np.uint64)))
    return full
