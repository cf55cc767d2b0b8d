"""Fragments as even samples of their surfaces: points drawn from triangles, normals of clouds, smoothing.

The spacing s is such that the whole object has about 40,000 points, one in s², and more if it is in very many pieces;
level L of a sample has spacing s / 2^L.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int64, Shaped
from scipy import ndimage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree

from diffassemble.core import FragmentPieces, InputError, Mesh
from diffassemble.core.surfaces import is_closed, surface_area
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
    longest: float = 3.5
    """triangles with longer sides than so many radii are cut where a part of the surface is sampled"""
    cuts: int = 16
    """times that triangles are cut in two, at most"""
    opposed: float = 0.1
    """normals that came with a cloud are dropped if more than this share of them oppose those of their neighbours"""


SAMPLING = SamplingConfig()


def draw(
    triangles: Float32[np.ndarray, "f 3 c"], chance: Float32[np.ndarray, "p 3"]
) -> tuple[Float32[np.ndarray, "p c"], Float32[np.ndarray, "p 3"]]:
    """One point for each row of three chances in [0, 1), evenly by area, triangle by triangle, and the unit normals.

    The surface's area is cut into as many equal parts as points are wanted, and each part gives one. What corners have
    beside their three coordinates is interpolated.
    """
    corner, along, across = triangles[:, 0], triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    outward = np.cross(along[:, :3], across[:, :3])
    length = np.sqrt((outward * outward).sum(1))
    ends = np.cumsum(length, dtype=np.float64)
    normals = (outward / np.maximum(length, np.float64(1e-30))[:, None]).astype(np.float32)
    place = (np.arange(len(chance)) + chance[:, 0]) / len(chance) * ends[-1:].sum()
    chosen = np.minimum(np.searchsorted(ends, place), len(triangles) - 1)
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

    For closed surfaces the volume they enclose decides, for open ones the winding number; mere sheets stay as they are,
    since only their normals show what is behind a wall of which one side was scanned. Normals of clouds are turned
    likewise; where they have no common side, they are dropped.
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
    points, normals = draw(corners[mesh.faces].numpy(), chance)
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
    # By the theorem of Gauss; the area of a point goes with the square of the distance to its neighbours.
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


def sample(
    mesh: Mesh,
    spacing: float,
    generator: torch.Generator,
    near: Float32[np.ndarray, "k 3"] | None = None,
    radius: float = 0.0,
    config: SamplingConfig = SAMPLING,
) -> Sample:
    """An even sample of the surface, or of what is within the radius of given points.

    Clouds of points are thinned, and given normals if they have none.
    """
    levels = [] if mesh.colours is None else [mesh.colours.numpy() / np.float32(255)]
    corners = np.concatenate([mesh.vertices.numpy(), *levels], 1)
    if is_cloud(mesh):
        which = np.unique(corners[:, :3], axis=0, return_index=True)[1]
        drawn, area = corners[which], len(which) * cloud_gap(mesh) ** 2
        normals = outward_normals(drawn[:, :3].copy()) if mesh.normals is None else mesh.normals.numpy()[which]
        order = torch.randperm(len(drawn), generator=generator).numpy()
    else:
        triangles, area = corners[mesh.faces.numpy()], surface_area(mesh.vertices, mesh.faces)
        if near is not None:
            parts, close = subdivided(triangles, near, config.longest * radius, radius, config.cuts)
            triangles, places = parts[close], torch.from_numpy(parts[close][..., :3].reshape(-1, 3))
            area = surface_area(places, torch.arange(len(places)).reshape(-1, 3))
        order = np.arange(int(np.clip(config.drawn * area / spacing**2, *config.drawn_range)) if area else 0)
        drawn, normals = draw(triangles, torch.rand(len(order), 3, generator=generator).numpy())
    kept = order[thin(drawn[order, :3].copy(), config.distance * spacing)]
    colours = None if mesh.colours is None else drawn[kept, 3:]
    area = area / len(kept) if len(kept) else spacing**2
    found = Sample(drawn[kept, :3].copy(), normals[kept], area, colours)
    if near is None:
        return found
    return found.part(cKDTree(near).query(found.points, distance_upper_bound=1.001 * radius)[0] <= radius)


def subdivided(
    triangles: Float32[np.ndarray, "f 3 c"], near: Float32[np.ndarray, "k 3"], longest: float, radius: float, cuts: int
) -> tuple[Float32[np.ndarray, "g 3 c"], Bool[np.ndarray, "g"]]:
    """Triangles, cut across their longest sides until these are short where they may be near given points, and for each
    whether it may be. Corners of neighbours meet no longer, but their surfaces still do."""
    tree, done, close = cKDTree(near), [], []
    for number in range(cuts + 1):
        places = triangles[..., :3]
        sides = np.linalg.norm(places - np.roll(places, -1, 1), axis=2)
        reach = radius + sides.max(1, initial=0.0)
        far = tree.query(places.mean(1), distance_upper_bound=float(reach.max(initial=radius)))[0]
        large = (reach > radius + longest) & (far < reach) & (number < cuts)
        done.append(triangles[~large])
        close.append((far < reach)[~large])
        if not large.any():
            break
        start = sides[large].argmax(1)
        a, b, c = (triangles[large][np.arange(len(start)), (start + k) % 3] for k in range(3))
        halfway = (a + b) / 2
        triangles = np.concatenate([np.stack([a, halfway, c], 1), np.stack([halfway, b, c], 1)])
    return np.concatenate(done), np.concatenate(close)


# Normals of clouds that have none


@dataclass(frozen=True)
class NormalsConfig:
    """How normals are estimated."""

    neighbours: int = 16
    """points that a plane is fitted to"""
    links: int = 8
    """neighbours along which sides spread"""
    cube: float = 1.8
    """width of the cubes that are walls, in distances between points"""
    most_cubes: int = 200
    """along the longest side"""
    steps: int = 24
    """half cubes that the way out is followed"""
    shorter: int = 3
    """steps by which the way out must be shorter on one side, to count"""
    rounds: int = 20
    """times that neighbours' votes are added"""
    against: float = -0.3
    """votes below this turn a normal round"""
    like: int = 6
    """power of the cosine with which neighbours that face another way lose their weight"""
    wide: float = 0.7
    """distance at which weights fall to 1/e, as a share of the farthest neighbour's"""
    again: int = 2
    """times that planes are fitted again to neighbours that face the same way"""
    at_once: int = 20_000
    """points that are computed together, for memory"""


NORMALS = NormalsConfig()
Normals = Float[np.ndarray, "p 3"]
Rows = Int64[np.ndarray, "q"]


def outward_normals(points: Float32[np.ndarray, "p 3"], config: NormalsConfig = NORMALS) -> Float32[np.ndarray, "p 3"]:
    """Unit normals that agree with those of their neighbours and point away from the inside.

    Neighbours first make their normals agree along a tree. Where that went over an edge or through a thin wall, the way
    out decides: cubes that hold points are walls, what a flood from outside reaches is outside, and it is nearer on the
    outer side. At last each plane is fitted again to neighbours that face the same way, so that edges stay sharp.
    """
    if len(points) < 4:
        return np.tile(np.array([[0, 0, 1]], np.float32), (len(points), 1))
    far, near = cKDTree(points).query(points, min(config.neighbours, len(points)))

    def in_parts(work: Callable[[Rows], np.ndarray]) -> np.ndarray:
        starts = range(0, len(points), config.at_once)
        return np.concatenate([work(np.arange(low, min(low + config.at_once, len(points)))) for low in starts])

    def refitted(rows: Rows) -> np.ndarray:
        alike = np.clip((normals[near[rows]] * normals[rows, None]).sum(-1), 0, 1)
        weight = alike**config.like * np.exp(-((far[rows] / (config.wide * far[rows, -1:] + 1e-30)) ** 2))
        plane = _planes(points, near[rows], weight)
        return np.where((plane * normals[rows]).sum(1, keepdims=True) < 0, -plane, plane)

    plain = in_parts(lambda rows: _planes(points, near[rows], np.ones((len(rows), near.shape[1]))))
    normals = _agreeing(points, near[:, : config.links + 1], plain)
    votes = _ways_out(points, normals, float(np.median(far[:, min(4, far.shape[1] - 1)])), config)
    weight = in_parts(lambda rows: _in_plane(points, normals, near, rows))
    added, total = votes, np.maximum(np.abs(weight).sum(1), 1e-30)
    for _ in range(config.rounds):
        added = 0.5 * votes + (weight * added[near]).sum(1) / total
    normals = np.where(added[:, None] < config.against, -normals, normals)
    for _ in range(config.again):
        normals = in_parts(refitted)
    return normals.astype(np.float32)


def _planes(
    points: Float32[np.ndarray, "p 3"], near: Int64[np.ndarray, "q k"], weight: Float[np.ndarray, "q k"]
) -> Float[np.ndarray, "q 3"]:
    """Normals, of either side, of the planes through some weighted points each."""
    places = points[near].astype(np.float64)
    middle = (weight[..., None] * places).sum(1) / np.maximum(weight.sum(1), 1e-30)[:, None]
    centred = places - middle[:, None]
    return np.linalg.eigh((weight[..., None] * centred).transpose(0, 2, 1) @ centred)[1][:, :, 0]


def _agreeing(points: Float32[np.ndarray, "p 3"], near: Int64[np.ndarray, "p k"], normals: Normals) -> Normals:
    """Normals on one side, which spreads from the outermost point along a tree that prefers neighbours in one plane;
    what hangs together encloses a positive volume."""
    first = np.repeat(np.arange(len(points)), near.shape[1] - 1)
    second = near[:, 1:].reshape(-1)
    across = points[second] - points[first]
    across /= np.linalg.norm(across, axis=1, keepdims=True) + 1e-12
    off_plane = np.abs((across * normals[first]).sum(1)) + np.abs((across * normals[second]).sum(1))
    unlike = 1 - np.abs((normals[first] * normals[second]).sum(1)) + off_plane + 1e-4
    links = coo_matrix((unlike, (first, second)), (len(points), len(points)))
    tree = minimum_spanning_tree(links.maximum(links.T)).tocoo()
    # One more node joins the outermost points of all parts, so that one search finds every point's predecessor.
    part, outward, root = connected_components(tree, directed=False)[1], points - points.mean(0), len(points)
    order = np.argsort(-(outward**2).sum(1), kind="stable")
    outermost = order[np.unique(part[order], return_index=True)[1]]
    rows, columns = np.r_[tree.row, np.full(len(outermost), root)], np.r_[tree.col, outermost]
    joined = coo_matrix((np.ones(len(rows)), (rows, columns)), (root + 1, root + 1))
    before = breadth_first_order(joined.tocsr(), root, directed=False)[1][:root]
    before = np.where(before == root, np.arange(root), before)
    side = np.where((normals * normals[before]).sum(1) < 0, -1.0, 1.0)
    while (before[before] != before).any():
        side, before = side * side[before], before[before]
    turned = normals * side[:, None]
    volume = np.bincount(part, (turned * outward).sum(1))
    return np.where(volume[part, None] < 0, -turned, turned)


def _ways_out(
    points: Float32[np.ndarray, "p 3"], normals: Normals, gap: float, config: NormalsConfig
) -> Float[np.ndarray, "p"]:
    """1 where the way out is shorter along the normal, −1 where it is shorter the other way, else 0."""
    low, margin = points.min(0), 4
    side = max(config.cube * gap, float(np.ptp(points, axis=0).max()) / config.most_cubes, 1e-30)
    cubes = np.floor((points - low) / side).astype(np.int64) + margin
    walls = np.zeros(cubes.max(0) + margin + 1, bool)
    walls[tuple(cubes.T)] = True
    # Holes between points are closed for the flood, which then comes back to the walls.
    parts = ndimage.label(~ndimage.binary_dilation(walls))[0]
    outside = ndimage.binary_dilation(parts == parts[0, 0, 0]) & ~walls
    steps = []
    for way in (normals, -normals):
        first = np.full(len(points), config.steps)
        for step in range(config.steps, 0, -1):
            at = np.floor((points + way * (0.5 * step * side) - low) / side).astype(np.int64) + margin
            beyond = ((at < 0) | (at >= walls.shape)).any(1)
            at = np.clip(at, 0, np.array(walls.shape) - 1)
            first[beyond | outside[tuple(at.T)]] = step
        steps.append(first)
    shorter = steps[1] - steps[0]
    return np.where(np.abs(shorter) >= config.shorter, np.sign(shorter), 0).astype(np.float64)


def _in_plane(
    points: Float32[np.ndarray, "p 3"], normals: Normals, near: Int64[np.ndarray, "p k"], rows: Rows
) -> Float[np.ndarray, "q k"]:
    """Weights of neighbours' votes: those in one plane count, whichever of its sides their normals are on.

    What is beside the plane may be the other side of a wall.
    """
    like, way = (normals[near[rows]] * normals[rows, None]).sum(-1), points[near[rows]] - points[rows, None]
    off = np.abs((way * normals[rows, None]).sum(-1)) / np.maximum(np.linalg.norm(way, axis=-1), 1e-30)
    return np.sign(like) * like**4 * np.maximum(0, 1 - 2 * off)
