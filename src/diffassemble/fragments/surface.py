"""Fragments as even samples of their surfaces: points drawn from triangles, normals of clouds, smoothing.

The spacing s is such that the whole object has about 40,000 points, one in s², and more if it is in very many pieces;
level L of a sample has spacing s / 2^L.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float32, Int64, Shaped
from scipy.spatial import cKDTree

from diffassemble.core import FragmentPieces, InputError, Mesh
from diffassemble.core.surfaces import is_closed, surface_area
from diffassemble.fragments.cloud_normals import outward_normals
from diffassemble.fragments.spatial import bucket, kernel, sort_points, thin


@dataclass(frozen=True)
class SamplingConfig:
    """How densely surfaces are sampled, and how their outside is found."""

    points: int = 40_000
    """points of the whole object at level 0"""
    pieces: int = 25
    """from so many pieces on the whole has more points, in proportion: pieces are looked at by their own size"""
    times: float = 4.0
    """up to so many times as many"""
    distance: float = 0.74
    """points at least this many spacings d apart, drawn from many, have about the density of one in d²"""
    drawn: float = 5.0
    """points that are drawn for each that is kept, about"""
    drawn_range: tuple[int, int] = (50, 4_000_000)
    probes: int = 800
    """points at which the winding number of an open surface is measured"""
    enclosing: float = 0.25
    """open surfaces are turned if their mean winding number about themselves is below minus this"""
    cuts: int = 8
    """rounds in which large triangles are cut in four, at most"""
    opposed: float = 0.1
    """normals that came with a cloud are dropped if more than this share of them oppose those of their neighbours"""


SAMPLING = SamplingConfig()


def draw(
    vertices: Float32[np.ndarray, "v c"], faces: Int64[np.ndarray, "f 3"], chance: Float32[np.ndarray, "p 3"]
) -> tuple[Float32[np.ndarray, "p c"], Float32[np.ndarray, "p 3"]]:
    """One point for each row of three chances in [0, 1), evenly by area, triangle by triangle, and the unit normals.

    The surface's area is cut into as many equal parts as points are wanted, and each part gives one. What corners have
    beside their three coordinates is interpolated.
    """
    corner, along, across = vertices[faces[:, 0]], *(vertices[faces[:, k]] - vertices[faces[:, 0]] for k in (1, 2))
    outward = np.cross(along[:, :3], across[:, :3])
    length = np.sqrt((outward * outward).sum(1))
    ends = np.cumsum(length, dtype=np.float64)
    normals = (outward * (1 / np.maximum(length, np.float64(1e-30)))[:, None]).astype(np.float32)
    place = (np.arange(len(chance)) + chance[:, 0]) / len(chance) * ends[-1]
    chosen = np.minimum(np.searchsorted(ends, place), len(faces) - 1)
    beyond = chance[:, 1] + chance[:, 2] > 1
    share = np.where(beyond[:, None], 1 - chance[:, 1:].astype(np.float64), chance[:, 1:])
    points = corner[chosen] + share[:, :1] * along[chosen] + share[:, 1:] * across[chosen]
    return points.astype(np.float32), normals[chosen]


def smoothed_normals(
    points: Float32[np.ndarray, "p 3"], normals: Float32[np.ndarray, "p 3"], radius: float
) -> Float32[np.ndarray, "p 3"]:
    """Unit normals without the roughness below the radius."""
    mean = smoothed(points, normals, np.ascontiguousarray(normals), np.float32(radius))
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), np.float32(1e-6))


@kernel
def smoothed(points, normals, values, radius):
    """Means (p, c) of values over the neighbours within the radius, weighted by how much their normals agree."""
    start, order, cubes = sort_points(points, radius)
    mask = len(start) - 2
    result = np.zeros_like(values)
    for q in range(len(points)):
        x, y, z = points[q, 0], points[q, 1], points[q, 2]
        cx, cy, cz = cubes[q, 0], cubes[q, 1], cubes[q, 2]
        total = 0.0
        for dx in range(-1, 2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    b = bucket(cx + dx, cy + dy, cz + dz, mask)
                    for k in range(start[b], start[b + 1]):
                        j = order[k]
                        u, v, w = points[j, 0] - x, points[j, 1] - y, points[j, 2] - z
                        if u * u + v * v + w * w > radius * radius:
                            continue
                        if cubes[j, 0] != cx + dx or cubes[j, 1] != cy + dy or cubes[j, 2] != cz + dz:
                            continue
                        like = normals[q, 0] * normals[j, 0] + normals[q, 1] * normals[j, 1]
                        like += normals[q, 2] * normals[j, 2]
                        if like > 0:
                            total += like
                            for c in range(values.shape[1]):
                                result[q, c] += like * values[j, c]
        for c in range(values.shape[1]):
            result[q, c] /= max(total, 1e-6)
    return result


@dataclass(frozen=True)
class Sample:
    """Evenly spaced points of a surface, their outward unit normals, and the area that each stands for.

    `colours` are sRGB in [0, 1], where they are known.
    """

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    area: float
    colours: Float32[np.ndarray, "p 3"] | None = None

    def __len__(self) -> int:
        return len(self.points)

    def part(self, kept: Shaped[np.ndarray, "k"]) -> Sample:
        """Some of the points."""
        colours = None if self.colours is None else self.colours[kept]
        return Sample(self.points[kept], self.normals[kept], self.area, colours)

    def thinned(self, spacing: float, config: SamplingConfig = SAMPLING) -> Sample:
        """Fewer points of the same surface, evenly spaced."""
        kept = thin(self.points, config.distance * spacing)
        return replace(self.part(kept), area=self.area * len(self) / max(1, len(kept)))


def is_cloud(mesh: Mesh) -> bool:
    """Whether there is no surface, only points."""
    return not len(mesh.faces) or surface_area(mesh.vertices, mesh.faces) == 0


def facing_outward(mesh: Mesh, config: SamplingConfig = SAMPLING) -> Mesh:
    """The mesh with its triangles turned round if they face inwards, as in files that are inside out.

    Closed surfaces tell it by the volume they enclose, open ones by how much of itself the surface has behind it. Mere
    sheets stay as they are: what lies behind a wall of which one side was seen, only its normals tell. So are
    the normals of clouds turned; where they have no common side, they are dropped.
    """
    if is_cloud(mesh):
        return mesh if mesh.normals is None else _with_outward_normals(mesh, mesh.normals.numpy(), config.opposed)
    if is_closed(mesh.faces):
        corners = mesh.vertices.double()[mesh.faces] - mesh.vertices.double().mean(0)
        inward = bool(torch.linalg.det(corners).sum() < 0)
    else:
        inward = enclosure(mesh, config.probes) < -config.enclosing
    return mesh.inside_out() if inward else mesh


def enclosure(mesh: Mesh, probes: int = SAMPLING.probes) -> float:
    """The mean winding number of a surface about its own points: ½ if it is closed and faces outwards, −½ if inwards.

    Of a sheet it is near 0, positive where the sheet bulges to the side that it faces.
    """
    chance = torch.rand(probes, 3, generator=torch.Generator().manual_seed(0)).numpy()
    corners = mesh.vertices.double() - mesh.vertices.double().mean(0)
    corners = (corners / corners.abs().max()).float()
    points, normals = draw(corners.numpy(), mesh.faces.numpy(), chance)
    area = surface_area(corners, mesh.faces) / probes
    apart = points[None].astype(np.float64) - points[:, None]
    far = np.maximum(np.linalg.norm(apart, axis=-1), np.sqrt(area))
    return float(((apart * normals).sum(-1) / far**3).sum(1).mean() * area / (4 * np.pi))


def _with_outward_normals(mesh: Mesh, normals: Float32[np.ndarray, "v 3"], opposed: float) -> Mesh:
    """A cloud with given normals, turned such that it encloses a positive volume, or with none if they are no use."""
    points = mesh.vertices.numpy().astype(np.float64)
    far, near = cKDTree(points).query(points, min(7, len(points)))
    beside = normals[near[:, min(1, near.shape[1] - 1)]]
    if ((normals * beside).sum(1) < -0.5).mean() > opposed:
        return replace(mesh, normals=None)
    # By the theorem of Gauss; a point stands for an area that goes with the square of the distance to its neighbours.
    volume = (far[:, -1] ** 2 * ((points - points.mean(0)) * normals).sum(1)).sum()
    return mesh if volume >= 0 else replace(mesh, normals=torch.from_numpy(-normals))


def with_normals(mesh: Mesh) -> Mesh:
    """A cloud without normals gets estimated ones, once for all samples of it; everything else stays."""
    if not is_cloud(mesh) or mesh.normals is not None:
        return mesh
    points, which = np.unique(mesh.vertices.numpy(), axis=0, return_index=True)
    normals = torch.from_numpy(outward_normals(np.ascontiguousarray(points)))
    return Mesh(mesh.vertices[which], mesh.faces, normals, None if mesh.colours is None else mesh.colours[which])


def spacing_of(pieces: FragmentPieces, config: SamplingConfig = SAMPLING) -> float:
    """The spacing s of level 0, from the surface of all pieces together; no finer than the sparsest cloud of points."""
    finest, total = 0.0, 0.0
    for mesh in pieces.meshes:
        if is_cloud(mesh):
            gap = cloud_gap(mesh)
            total += len(mesh.vertices) * gap**2
            finest = max(finest, gap)
        else:
            total += surface_area(mesh.vertices, mesh.faces)
    points = config.points * oversampling(len(pieces), config)
    spacing = max(float(np.sqrt(total / points)), finest)
    if not spacing > 0 or not np.isfinite(spacing):
        raise InputError("the fragments have neither surface nor extent; give meshes or clouds of points")
    return spacing


def oversampling(pieces: int, config: SamplingConfig = SAMPLING) -> float:
    """Factor on the number of points of an object in so many pieces."""
    return float(np.clip(pieces / config.pieces, 1, config.times))


def cloud_gap(mesh: Mesh) -> float:
    """Typical distance of neighbouring points, such that a point stands for the square of it."""
    points = np.unique(mesh.vertices.numpy(), axis=0)
    if len(points) < 7:
        return float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    far = cKDTree(points).query(points, 7)[0][:, 6]
    return float(np.sqrt(np.pi * np.median(far) ** 2 / 6.5))


def sample(mesh: Mesh, spacing: float, generator: torch.Generator, config: SamplingConfig = SAMPLING) -> Sample:
    """An even sample of the whole surface; clouds of points are thinned, and given normals if they have none."""
    corners = _with_colours(mesh)
    if is_cloud(mesh):
        _, which = np.unique(mesh.vertices.numpy(), axis=0, return_index=True)
        drawn, area = corners[which], len(which) * cloud_gap(mesh) ** 2
        outward = outward_normals(_places(drawn)) if mesh.normals is None else mesh.normals.numpy()[which]
        order = torch.randperm(len(drawn), generator=generator).numpy()
    else:
        area = surface_area(mesh.vertices, mesh.faces)
        order = np.arange(int(np.clip(config.drawn * area / spacing**2, *config.drawn_range)))
        chance = torch.rand(len(order), 3, generator=generator).numpy()
        drawn, outward = draw(corners, mesh.faces.numpy(), chance)
    kept = order[thin(_places(drawn)[order], config.distance * spacing)]
    colours = None if mesh.colours is None else drawn[kept, 3:]
    return Sample(_places(drawn)[kept], outward[kept], area / max(1, len(kept)), colours)


def _with_colours(mesh: Mesh) -> Float32[np.ndarray, "v c"]:
    """The corners, and their colours in [0, 1] beside them if there are any."""
    corners = mesh.vertices.numpy()
    return corners if mesh.colours is None else np.concatenate([corners, mesh.colours.numpy() / np.float32(255)], 1)


def _places(corners: Float32[np.ndarray, "v c"]) -> Float32[np.ndarray, "v 3"]:
    return np.ascontiguousarray(corners[:, :3])


def sample_near(
    mesh: Mesh,
    spacing: float,
    near: Float32[np.ndarray, "k 3"],
    radius: float,
    generator: torch.Generator,
    config: SamplingConfig = SAMPLING,
) -> Sample:
    """An even sample of that part of the surface that lies within the radius of given points."""
    if not is_cloud(mesh):
        corners = _triangles_near(_with_colours(mesh)[mesh.faces.numpy()], near, radius, config.cuts)
        if not len(corners):
            nothing = np.zeros((0, 3), np.float32)
            return Sample(nothing, nothing, spacing**2, None if mesh.colours is None else nothing)
        places = corners.reshape(-1, corners.shape[2])
        levels = None if mesh.colours is None else torch.from_numpy((255 * places[:, 3:]).round().astype(np.uint8))
        faces = torch.arange(len(places)).reshape(-1, 3)
        mesh = Mesh(torch.from_numpy(_places(places)), faces, colours=levels)
    drawn = sample(mesh, spacing, generator, config)
    return drawn.part(_close(drawn.points, near, radius))


def _triangles_near(
    corners: Float32[np.ndarray, "f 3 c"], near: Float32[np.ndarray, "k 3"], radius: float, cuts: int
) -> Float32[np.ndarray, "g 3 c"]:
    """The parts of triangles that may lie within the radius of given points; large ones are cut in four for it."""
    done = [corners[:0]]
    for _ in range(cuts):
        places = np.ascontiguousarray(corners[..., :3])
        centres = places.mean(1)
        reach = np.sqrt(((places - centres[:, None]) ** 2).sum(-1).max(1, initial=0.0))
        close = _close(centres, near, radius + reach)
        large = close & (reach > 2 * radius)
        done.append(corners[close & ~large])
        a, b, c = corners[large].transpose(1, 0, 2)
        ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
        parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        corners = np.concatenate([np.stack(part, 1) for part in parts])
        if not len(corners):
            break
    return np.concatenate([*done, corners])


def _close(points: np.ndarray, near: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """Which points lie within the radius, or each within its own, of given ones."""
    if not len(near):
        return np.zeros(len(points), bool)
    return cKDTree(near).query(points, 1, distance_upper_bound=1.001 * np.max(radius))[0] <= radius
