"""Fragments as loose triangles with normals at their corners, clouds as small discs: all one needs to draw them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int64, UInt8
from numba import njit
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.core import Mesh, Poses

_BEAD = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], np.float64)
_BEAD_FACES = np.array([[a, b, c] for a in (0, 1) for b in (2, 3) for c in (4, 5)])


@dataclass(frozen=True)
class TriangleStyle:
    """How meshes and clouds become triangles."""

    neighbours: int = 12  # points of a cloud around one that tell how its disc is turned
    sides: int = 6  # of a disc
    surface: int = 16  # fewer points suggest no surface: they are drawn as beads …
    bead: float = 0.06  # … of this radius, as a share of what they reach
    disc: float = 0.8  # radius of a disc, of the distance to the point that is the third part of the way round
    crease: float = 40.0  # surfaces that meet at less than this angle (degrees) look like one, round surface
    weld: float = 1e-5  # corners closer than this share of a mesh are one


TRIANGLES = TriangleStyle()


def as_discs(
    points: Float32[np.ndarray, "p 3"], limit: int, style: TriangleStyle = TRIANGLES
) -> tuple[Float32[np.ndarray, "v 3"], Int64[np.ndarray, "f 3"], Int64[np.ndarray, "q"]]:
    """Vertices and triangles of discs at (about `limit` of) the points, just large enough to touch each other.

    The last tells at which points; all discs have equally many triangles, one after another.
    """
    numbers = np.arange(0, len(points), max(1, math.ceil(len(points) / max(limit, 1))))
    chosen = points[numbers].astype(np.float64)
    if not len(chosen):
        return points, np.zeros((0, 3), np.int64), numbers
    if len(chosen) < style.surface:
        size = style.bead * max(float(np.ptp(chosen, axis=0).max()), 0.1)
        return *_copies(chosen, np.broadcast_to(_BEAD * size, (len(chosen), 6, 3)), _BEAD_FACES), numbers
    distance, neighbours = cKDTree(chosen).query(chosen, style.neighbours + 1)
    gathered = chosen[neighbours] - chosen[neighbours].mean(1, keepdims=True)
    # Rows of `axes` are directions; points spread most along the last, least along the first.
    axes = np.linalg.eigh(np.einsum("pki,pkj->pij", gathered, gathered))[1].transpose(0, 2, 1)
    radius = style.disc * float(np.median(distance[:, style.neighbours // 3]))
    angle = 2 * np.pi * np.arange(style.sides) / style.sides
    rim = np.cos(angle)[:, None] * axes[:, None, 1] + np.sin(angle)[:, None] * axes[:, None, 2]
    fan = np.stack([np.zeros(style.sides - 2, int), np.arange(1, style.sides - 1), np.arange(2, style.sides)], -1)
    return *_copies(chosen, radius * rim, fan), numbers


def _copies(
    places: np.ndarray, shapes: np.ndarray, faces: np.ndarray
) -> tuple[Float32[np.ndarray, "v 3"], Int64[np.ndarray, "f 3"]]:
    """One shape at each place, all with the same triangles."""
    vertices = (places[:, None] + shapes).reshape(-1, 3).astype(np.float32)
    shift = shapes.shape[1] * np.arange(len(places))
    return vertices, (faces + shift[:, None, None]).reshape(-1, 3)


@dataclass(frozen=True)
class Triangles:
    """Corners and unit normals there, each in the frame of its owner, the piece with that number.

    `paint` is what each corner has of its own: a colour (sRGB shares), or, if its owner is one of `pictures`, where it
    lies on that, (u, v, 0) with v upwards; below 0 it has none. Nobody has any where there is no such array.
    """

    corners: Float32[np.ndarray, "f 3 3"]
    normals: Float32[np.ndarray, "f 3 3"]
    owner: Int64[np.ndarray, "f"]
    paint: Float32[np.ndarray, "f 3 3"] | None = None
    pictures: Mapping[int, UInt8[np.ndarray, "_ _ 3"]] = field(default_factory=dict)

    def placed(self, poses: Poses) -> Triangles:
        """The triangles where their owners stand."""
        rotation, place = (part.detach().cpu().float().numpy() for part in (poses.rotation, poses.translation))
        corners, normals = np.repeat(place[self.owner, None], 3, axis=1), np.zeros_like(self.normals)
        # Axis by axis, which is faster than a product of small matrices for each triangle.
        for axis, column in enumerate(rotation[self.owner, None].transpose(3, 0, 1, 2)):
            corners += column * self.corners[..., axis, None]
            normals += column * self.normals[..., axis, None]
        return replace(self, corners=corners, normals=normals)

    def of(self, shown: Bool[np.ndarray, "f"]) -> Triangles:
        """Some of the triangles."""
        paint = None if self.paint is None else self.paint[shown]
        return Triangles(self.corners[shown], self.normals[shown], self.owner[shown], paint, self.pictures)

    def extremes(self, count: int) -> Float[Tensor, "n 64 3"]:
        """The corners of each of `count` pieces that reach farthest in 64 directions: what framing a picture needs."""
        height = 1 - 2 * (np.arange(64) + 0.5) / 64
        angle = np.arange(64) * np.pi * (3 - np.sqrt(5))
        across = np.sqrt(1 - height**2)
        directions = np.stack([across * np.cos(angle), height, across * np.sin(angle)], -1).astype(np.float32)
        found = np.zeros((count, 64, 3), np.float32)
        ends = np.searchsorted(self.owner, np.arange(count + 1))
        for piece in range(count):
            points = self.corners[ends[piece] : ends[piece + 1]].reshape(-1, 3)
            if len(points):
                found[piece] = points[(directions @ points.T).argmax(1)]
        return torch.from_numpy(found)


def triangles_of(meshes: Sequence[Mesh], limit: int, style: TriangleStyle = TRIANGLES) -> Triangles:
    """Meshes ready to draw: about `limit` triangles at most, so fine details of very large meshes are left out.

    Points without triangles become small discs.
    """
    arrays = [_arrays(mesh, max(64, limit // len(meshes))) for mesh in meshes]
    cell = coarse_cell([shape[:2] for shape in arrays], limit)
    parts = []
    for vertices, faces, paint in arrays:
        extent = float(np.ptp(vertices, axis=0).max()) if len(vertices) else 0.0
        merged, triangles, kept = cluster(vertices, faces, max(cell, style.weld * extent))
        parts.append((merged[triangles], corner_normals(merged, triangles, style), paint[kept]))
    owner = np.repeat(np.arange(len(meshes)), [len(corners) for corners, *_ in parts])
    corners, normals, paints = (np.concatenate(kind) for kind in zip(*parts, strict=True))
    pictures = {
        number: np.asarray(mesh.texture.picture) for number, mesh in enumerate(meshes) if mesh.texture is not None
    }
    own = pictures or any(mesh.colours is not None for mesh in meshes)
    return Triangles(corners, normals, owner, paints if own else None, pictures)


def cluster(
    vertices: Float32[np.ndarray, "v c"], faces: Int64[np.ndarray, "f 3"], cell: float
) -> tuple[Float32[np.ndarray, "w c"], Int64[np.ndarray, "g 3"], Bool[np.ndarray, "f"]]:
    """Vertices within a cubic cell of this side become one, at their mean; triangles that shrink to nothing go.

    Columns of vertices after the third, such as colours, become means, too. The last tells which triangles stayed.
    """
    if not cell > 0 or not len(faces):
        return vertices, faces, np.ones(len(faces), bool)
    place = ((vertices[:, :3].astype(np.float64) - vertices[:, :3].min(0)) / cell).astype(np.int64)
    steps = place.max(0) + 1
    _, group = np.unique((place[:, 0] * steps[1] + place[:, 1]) * steps[2] + place[:, 2], return_inverse=True)
    count = np.bincount(group)
    means = np.stack([np.bincount(group, axis) / count for axis in vertices.T.astype(np.float64)], -1)
    merged = group[faces]
    first, second, third = merged.T
    kept = (first != second) & (second != third) & (third != first)
    return means.astype(np.float32), merged[kept], kept


def corner_normals(
    vertices: Float32[np.ndarray, "v 3"], faces: Int64[np.ndarray, "f 3"], style: TriangleStyle = TRIANGLES
) -> Float32[np.ndarray, "f 3 3"]:
    """Unit normals at the corners of triangles: smooth over round surfaces, sharp at creases."""
    first, second, third = (vertices[faces[:, corner]] for corner in range(3))
    weighted = np.cross(second - first, third - first).astype(np.float32)
    unit = weighted / np.maximum(np.linalg.norm(weighted, axis=-1, keepdims=True), np.float32(1e-30))
    around = np.argsort(faces.ravel(), kind="stable") // 3
    start = np.concatenate([[0], np.bincount(faces.ravel(), minlength=len(vertices)).cumsum()])
    summed = np.zeros((len(faces), 3, 3), np.float32)
    _gather(faces, weighted, unit, around, start, math.cos(math.radians(style.crease)), summed)
    return summed / np.maximum(np.linalg.norm(summed, axis=-1, keepdims=True), np.float32(1e-30))


def _arrays(
    mesh: Mesh, discs: int
) -> tuple[Float32[np.ndarray, "v 3"], Int64[np.ndarray, "f 3"], Float32[np.ndarray, "f 3 3"]]:
    """Corners, triangles and their paint, without triangles whose corners are not numbers; clouds as discs."""
    vertices = mesh.vertices.detach().cpu().float().numpy()
    faces = mesh.faces.detach().cpu().numpy()
    sound = np.isfinite(vertices).all(-1)
    levels = None if mesh.colours is None else mesh.colours.cpu().numpy().astype(np.float32) / 255
    if not len(faces):
        corners, faces, points = as_discs(vertices[sound], discs // 4)
        colours = None if levels is None else levels[sound][points]
        return corners, faces, _painted(colours, np.arange(len(faces)) * len(points) // max(1, len(faces)))
    kept = sound[faces].all(-1)
    if mesh.texture is not None:
        places = mesh.texture.places.numpy()[kept]
        paint = np.concatenate([places, np.zeros_like(places[..., :1])], -1).astype(np.float32)
    else:
        paint = _painted(levels, faces[kept])
    return np.where(sound[:, None], vertices, np.float32(0)), faces[kept], paint


def _painted(
    levels: Float32[np.ndarray, "v 3"] | None, which: Int64[np.ndarray, "f"] | Int64[np.ndarray, "f 3"]
) -> Float32[np.ndarray, "f 3 3"]:
    """The colours of the corners of triangles, whose three have one number each or all one; or none."""
    if levels is None:
        return np.full((len(which), 3, 3), -1, np.float32)
    return levels[which if which.ndim == 2 else np.repeat(which[:, None], 3, 1)]


def coarse_cell(arrays: Sequence[tuple[np.ndarray, np.ndarray]], limit: int) -> float:
    """The side of cells that leaves about `limit` triangles; 0 if there are no more than that."""
    if sum(len(faces) for _, faces in arrays) <= limit:
        return 0.0
    area = 0.0
    for vertices, faces in arrays:
        first, second, third = (vertices[faces[:, corner]] for corner in range(3))
        area += float(np.linalg.norm(np.cross(second - first, third - first), axis=-1).sum(dtype=np.float64)) / 2
    # A cell's share of a surface becomes one vertex, and a surface has twice as many triangles as vertices; as it
    # crosses cells at all angles, it meets about half as many again as its area says.
    return math.sqrt(3 * area / limit)


@njit(cache=True, nogil=True)
@no_type_check
def _gather(faces, weighted, unit, around, start, threshold, summed):
    for face in range(len(faces)):
        for corner in range(3):
            vertex = faces[face, corner]
            for place in range(start[vertex], start[vertex + 1]):
                other = around[place]
                along = 0.0
                for axis in range(3):
                    along += unit[face, axis] * unit[other, axis]
                if along > threshold or other == face:
                    for axis in range(3):
                        summed[face, corner, axis] += weighted[other, axis]
