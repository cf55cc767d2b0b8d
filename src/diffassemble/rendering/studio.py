"""A small renderer that needs no display: triangles, a camera, a rasteriser, and a light table with soft shadows.

Space has y up. What a camera sees has x to the right, y down and z away from it; a pixel at (x, y) shows what is in
direction ((x − middle) / focal, 1). Fragments are loose triangles with normals at their corners, clouds small discs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Float64, Int32, Int64, UInt8
from PIL import Image
from scipy.ndimage import uniform_filter
from scipy.spatial import cKDTree
from torch import Tensor
from trimesh.triangles import cross

from diffassemble.core import Mesh, Poses
from diffassemble.core.kernels import kernel
from diffassemble.core.pieces import to_linear, to_srgb
from diffassemble.rendering.picture import TABLE

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

    The last are the numbers of these points; all discs have equally many triangles, one after another.
    """
    numbers = np.arange(0, len(points), max(1, math.ceil(len(points) / max(limit, 1))))
    chosen = points[numbers].astype(np.float64)
    if not len(chosen):
        return points, np.zeros((0, 3), np.int64), numbers
    if len(chosen) < style.surface:
        size = style.bead * max(float(np.ptp(chosen, axis=0).max()), 0.1)
        shapes, faces = np.broadcast_to(_BEAD * size, (len(chosen), 6, 3)), _BEAD_FACES
    else:
        distance, neighbours = cKDTree(chosen).query(chosen, style.neighbours + 1)
        gathered = chosen[neighbours] - chosen[neighbours].mean(1, keepdims=True)
        # Rows of `axes` are directions; points spread most along the last, least along the first.
        axes = np.linalg.eigh(np.einsum("pki,pkj->pij", gathered, gathered))[1].transpose(0, 2, 1)
        angle = 2 * np.pi * np.arange(style.sides) / style.sides
        rim = np.cos(angle)[:, None] * axes[:, None, 1] + np.sin(angle)[:, None] * axes[:, None, 2]
        shapes = style.disc * float(np.median(distance[:, style.neighbours // 3])) * rim
        faces = np.stack([np.zeros(style.sides - 2, int), *(np.arange(n, style.sides - 2 + n) for n in (1, 2))], -1)
    shift = shapes.shape[1] * np.arange(len(chosen))[:, None, None]
    return (chosen[:, None] + shapes).reshape(-1, 3).astype(np.float32), (faces + shift).reshape(-1, 3), numbers


@dataclass(frozen=True)
class Triangles:
    """Corners and unit normals there, each in the frame of its owner, the piece with that number.

    `paint` is each corner's own colour (sRGB shares), or, if its owner is one of `pictures`, its place on that,
    (u, v, 0) with v upwards; below 0 it has none.
    """

    corners: Float32[np.ndarray, "f 3 3"]
    normals: Float32[np.ndarray, "f 3 3"]
    owner: Int64[np.ndarray, "f"]
    paint: Float32[np.ndarray, "f 3 3"] | None = None
    pictures: Mapping[int, UInt8[np.ndarray, "_ _ 3"]] = field(default_factory=dict)

    def placed(self, poses: Poses) -> Triangles:
        """The triangles at their owners' poses."""
        rotation, place = (part.detach().cpu().float().numpy() for part in (poses.rotation, poses.translation))
        turns = rotation[self.owner].mT
        return replace(self, corners=self.corners @ turns + place[self.owner, None], normals=self.normals @ turns)

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
    """Meshes ready to draw, simplified to about `limit` triangles; points without triangles become small discs."""
    arrays = [_arrays(mesh, max(64, limit // len(meshes))) for mesh in meshes]
    cell = coarse_cell([shape[:2] for shape in arrays], limit)
    parts = []
    for vertices, faces, paint in arrays:
        extent = float(np.ptp(vertices, axis=0).max()) if len(vertices) else 0.0
        merged, triangles, kept = cluster(vertices, faces, max(cell, style.weld * extent))
        parts.append((merged[triangles], corner_normals(merged, triangles, style), paint[kept]))
    owner = np.repeat(np.arange(len(meshes)), [len(corners) for corners, *_ in parts])
    corners, normals, paints = (np.concatenate(kind) for kind in zip(*parts, strict=True))
    pictures = {n: np.asarray(mesh.texture.picture) for n, mesh in enumerate(meshes) if mesh.texture is not None}
    own = pictures or any(mesh.colours is not None for mesh in meshes)
    return Triangles(corners, normals, owner, paints if own else None, pictures)


def cluster(
    vertices: Float32[np.ndarray, "v c"], faces: Int64[np.ndarray, "f 3"], cell: float
) -> tuple[Float32[np.ndarray, "w c"], Int64[np.ndarray, "g 3"], Bool[np.ndarray, "f"]]:
    """Vertices within a cubic cell of this side become one, at the mean of all columns; also which triangles stay."""
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
    weighted = cross(vertices[faces]).astype(np.float32)
    unit = _unit(weighted)
    around = np.argsort(faces.ravel(), kind="stable") // 3
    start = np.concatenate([[0], np.bincount(faces.ravel(), minlength=len(vertices)).cumsum()])
    summed = np.zeros((len(faces), 3, 3), np.float32)
    _gather(faces, weighted, unit, around, start, math.cos(math.radians(style.crease)), summed)
    return _unit(summed)


def _unit(vectors: Float32[np.ndarray, "*s 3"]) -> Float32[np.ndarray, "*s 3"]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32(1e-30))


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
        if levels is None:
            return corners, faces, np.full(corners[faces].shape, -1, np.float32)
        each = np.repeat(points, len(faces) // max(1, len(points)))
        return corners, faces, np.repeat(levels[sound][each][:, None], 3, 1)
    faces = faces[(kept := sound[faces].all(-1))]
    if mesh.texture is not None:
        paint = np.pad(mesh.texture.places.numpy()[kept], ((0, 0), (0, 0), (0, 1))).astype(np.float32)
    else:
        paint = np.full((*faces.shape, 3), -1, np.float32) if levels is None else levels[faces]
    return np.where(sound[:, None], vertices, np.float32(0)), faces, paint


def coarse_cell(arrays: Sequence[tuple[np.ndarray, np.ndarray]], limit: int) -> float:
    """The side of cells that leaves about `limit` triangles; 0 if there are no more than that."""
    if sum(len(faces) for _, faces in arrays) <= limit:
        return 0.0
    area = sum(float(np.linalg.norm(cross(vertices[faces]), axis=-1).sum()) / 2 for vertices, faces in arrays)
    # A cell's share of a surface becomes one vertex, and a surface has twice as many triangles as vertices; as it
    # crosses cells at all angles, it meets about half as many again as its area says.
    return math.sqrt(3 * area / limit)


@kernel
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


@dataclass(frozen=True)
class Studio:
    """Light and lens. Strengths are shares of full light."""

    eye: float = 4.5  # radii from the whole: near enough for some perspective, far enough not to distort
    key: float = 0.74  # the light from the upper left, which casts shadows
    fill: float = 0.20  # the one from the right, which brightens them
    sky: float = 0.46  # light from above …
    floor: float = 0.26  # … and from below
    gloss: float = 0.10  # strength of highlights …
    shine: float = 36.0  # … and how small they are
    line: float = 0.62  # how much light contours leave
    shadow: float = 0.34  # how much of its light a shadow takes from the table …
    near: float = 0.6  # … and what is near to it
    corner: float = 0.85  # how much of the sky corners hide
    reach: float = 0.16  # how far corners darken each other, in units of the whole's longest side
    blur: float = 0.022  # how wide shadows blur, in the same unit
    fade: float = 0.16  # share of the picture over which shadows fade out at its borders
    side: int = 384  # pixels of the map of shadows

    @property
    def strengths(self) -> tuple[float, ...]:
        """What `shine` takes: from `key` to `corner`."""
        return tuple(float(value) for value in astuple(self)[1:11])


STUDIO = Studio()


@dataclass(frozen=True)
class Camera:
    """Turns space about `target`, `distance` before the eye; (x, y, z) falls on `middle` + `focal` · (x, y) / z."""

    rotation: Float64[np.ndarray, "3 3"]
    target: Float64[np.ndarray, "3"]
    distance: float
    focal: float
    middle: tuple[float, float]

    def view(self, points: Float32[np.ndarray, "*s 3"]) -> Float32[np.ndarray, "*s 3"]:
        """Points of space as they lie before the eye."""
        offset = np.array([0, 0, self.distance]) - self.rotation @ self.target
        turned = points.reshape(-1, 3) @ self.rotation.T.astype(np.float32)
        return (turned + offset.astype(np.float32)).reshape(points.shape)

    def project(self, seen: Float32[np.ndarray, "*s 3"]) -> Float32[np.ndarray, "*s 3"]:
        """Points before the eye as (x, y, 1/z), x and y in pixels; 1/z is linear on a plane as it appears."""
        nearness = 1 / seen[..., 2:]
        places = seen[..., :2] * (np.float32(self.focal) * nearness) + np.array(self.middle, np.float32)
        return np.concatenate([places, nearness], -1)

    def enlarged(self, times: int) -> Camera:
        """The same view on a picture with `times` as many pixels along each side."""
        return replace(self, focal=self.focal * times, middle=(self.middle[0] * times, self.middle[1] * times))


def orbit(azimuth: float, elevation: float) -> Float64[np.ndarray, "3 3"]:
    """The rotation of a camera at these angles (degrees): azimuth from +z towards +x, elevation upwards."""
    a, e = math.radians(azimuth), math.radians(elevation)
    back = np.array([math.sin(a) * math.cos(e), math.sin(e), math.cos(a) * math.cos(e)])
    right = np.array([math.cos(a), 0.0, -math.sin(a)])
    return np.stack([right, -np.cross(back, right), -back])


def bounds(points: Float32[np.ndarray, "*s d"]) -> Float64[np.ndarray, "2 d"]:
    """The lowest and the highest coordinates; axis by axis, which is many times faster than all at once."""
    axes = [points[..., axis] for axis in range(points.shape[-1])]
    return np.array([[float(axis.min()) for axis in axes], [float(axis.max()) for axis in axes]])


def frame(
    points: Float32[np.ndarray, "p 3"], rotation: Float64[np.ndarray, "3 3"], size: tuple[int, int], margin: float
) -> Camera:
    """A camera that shows all points as large as fits into `size` pixels, less a share of `margin` along each side."""
    low, high = bounds(points)
    target, radius = (low + high) / 2, max(float(np.linalg.norm(high - low)) / 2, 1e-6)
    plain = Camera(rotation, target, STUDIO.eye * radius, 1.0, (0.0, 0.0))
    start, end = (side[:2] for side in bounds(plain.project(plain.view(points))))
    room = np.array(size) * (1 - 2 * margin)
    focal = float((room / np.maximum(end - start, 1e-6)).min())
    x, y = np.array(size) / 2 - focal * (start + end) / 2
    return Camera(rotation, target, plain.distance, focal, (float(x), float(y)))


NOTHING = -1
# Rounding must not open gaps between triangles that share an edge.
_TOUCH = 1e-9


@dataclass(frozen=True)
class Layers:
    """What pixels show: owner (`NOTHING`: none), nearness (1/distance, 0: none), normal, own paint (below 0: none)."""

    owner: Int32[np.ndarray, "h w"]
    nearness: Float32[np.ndarray, "h w"]
    normal: Float32[np.ndarray, "h w 3"]
    paint: Float32[np.ndarray, "_ _ 3"]


def rasterise(
    corners: Float32[np.ndarray, "f 3 3"],
    normals: Float32[np.ndarray, "f 3 3"],
    owner: Int64[np.ndarray, "f"],
    size: tuple[int, int],
    paint: Float32[np.ndarray, "f 3 3"] | None = None,
) -> Layers:
    """The pixels of a picture of `size` (width, height) whose centres triangles cover.

    Corners are (x, y, nearness), pixels to the right and down, counter-clockwise seen from outside; normals of inner
    sides are turned round. Triangles without area, or with corners that aren't numbers, cover nothing.
    """
    width, height = size
    layers = Layers(
        np.full((height, width), NOTHING, np.int32),
        np.zeros((height, width), np.float32),
        np.zeros((height, width, 3), np.float32),
        np.full((0, 0, 3) if paint is None else (height, width, 3), -1, np.float32),
    )
    given = np.zeros((0, 3, 3), np.float32) if paint is None else paint
    _fill(corners, normals, owner, given, *vars(layers).values())
    return layers


@kernel
def _fill(corners, normals, owner, paint, shown, nearness, normal, painted):
    height, width = shown.shape
    for index in range(len(corners)):
        ax, ay, aw = corners[index, 0]
        bx, by, bw = corners[index, 1]
        cx, cy, cw = corners[index, 2]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if not math.isfinite(area) or area == 0:
            continue
        outside = -1.0 if area > 0 else 1.0
        left = max(math.ceil(max(min(ax, bx, cx), 0.0) - 0.5), 0)
        right = min(math.floor(min(max(ax, bx, cx), float(width)) - 0.5), width - 1)
        top = max(math.ceil(max(min(ay, by, cy), 0.0) - 0.5), 0)
        bottom = min(math.floor(min(max(ay, by, cy), float(height)) - 0.5), height - 1)
        for row in range(top, bottom + 1):
            y = row + 0.5
            for column in range(left, right + 1):
                x = column + 0.5
                first = ((bx - x) * (cy - y) - (by - y) * (cx - x)) / area
                second = ((cx - x) * (ay - y) - (cy - y) * (ax - x)) / area
                third = 1 - first - second
                if first < -_TOUCH or second < -_TOUCH or third < -_TOUCH:
                    continue
                near = first * aw + second * bw + third * cw
                if near <= nearness[row, column]:
                    continue
                nearness[row, column] = near
                shown[row, column] = owner[index]
                for axis in range(3):
                    normal[row, column, axis] = outside * (
                        first * normals[index, 0, axis]
                        + second * normals[index, 1, axis]
                        + third * normals[index, 2, axis]
                    )
                    if len(paint):
                        # What is linear on a surface is so on the picture only if weighed by nearness.
                        painted[row, column, axis] = (
                            first * aw * paint[index, 0, axis]
                            + second * bw * paint[index, 1, axis]
                            + third * cw * paint[index, 2, axis]
                        ) / near


# From the upper left, before the object; and a weak one from the right, to brighten its shadow.
KEY_LIGHT = np.array([-0.46, -0.78, -0.62]) / np.linalg.norm([-0.46, -0.78, -0.62])
FILL_LIGHT = np.array([0.85, -0.1, -0.5]) / np.linalg.norm([0.85, -0.1, -0.5])
# Points spread evenly over a disc of radius 1, along a spiral; turned otherwise for each pixel of a tile, so that the
# mean over a tile knows many more.
TILE, _SAMPLES = 4, 12
_ANGLE = np.arange(_SAMPLES) * np.pi * (3 - np.sqrt(5)) + np.arange(TILE * TILE)[:, None] * 2 * np.pi * (5**0.5 - 1) / 2
_DISC = np.sqrt((np.arange(_SAMPLES) + 0.5) / _SAMPLES)[:, None] * np.stack([np.cos(_ANGLE), np.sin(_ANGLE)], -1)


@kernel
def find_occlusion(nearness, normal, focal, middle_x, middle_y, reach, occlusion):
    """How much of the sky above each pixel is hidden by what lies within `reach` of it: 0 nothing, 1 all."""
    height, width = nearness.shape
    for row in range(height):
        for column in range(width):
            near = nearness[row, column]
            if near <= 0:
                continue
            x, y = (column + 0.5 - middle_x) / focal / near, (row + 0.5 - middle_y) / focal / near
            spread, hidden = min(focal * reach * near, 0.25 * width), 0.0
            tile = row % TILE * TILE + column % TILE
            for sample in range(_SAMPLES):
                other_column = int(column + 0.5 + spread * _DISC[tile, sample, 0])
                other_row = int(row + 0.5 + spread * _DISC[tile, sample, 1])
                if not (0 <= other_column < width and 0 <= other_row < height):
                    continue
                other = nearness[other_row, other_column]
                if other <= 0:
                    continue
                dx = (other_column + 0.5 - middle_x) / focal / other - x
                dy = (other_row + 0.5 - middle_y) / focal / other - y
                dz = 1 / other - 1 / near
                squared = dx * dx + dy * dy + dz * dz + 1e-12
                above = dx * normal[row, column, 0] + dy * normal[row, column, 1] + dz * normal[row, column, 2]
                fade = 1 - squared / (reach * reach)
                if fade > 0:
                    hidden += fade * max(0.0, above / math.sqrt(squared) - 0.12)
            occlusion[row, column] = min(1.0, 2.2 * hidden / _SAMPLES)


@kernel
def find_shadow(
    owner, nearness, normal, focal, middle_x, middle_y, light, scale, shift, shadow_map, softness, bias, shade
):
    """How much of the key light each pixel misses: 0 nothing, 1 all, with soft borders.

    Point p falls on the shadow map's pixel scale · light[:2] p + shift[:2], at nearness light[2] p + shift[2]; what is
    nearer by less than `bias` casts no shade.
    """
    side = shadow_map.shape[0]
    for row in range(nearness.shape[0]):
        for column in range(nearness.shape[1]):
            near = nearness[row, column]
            if near <= 0:
                continue
            facing = 0.0
            for axis in range(3):
                facing += normal[row, column, axis] * light[2, axis]
            if facing <= 0:
                shade[row, column] = 1.0
                continue
            x, y, z = (column + 0.5 - middle_x) / focal / near, (row + 0.5 - middle_y) / focal / near, 1 / near
            u = scale * (light[0, 0] * x + light[0, 1] * y + light[0, 2] * z) + shift[0]
            v = scale * (light[1, 0] * x + light[1, 1] * y + light[1, 2] * z) + shift[1]
            # The table casts no shadow, so it can't be mistaken for its own shade, and needs hardly any bias.
            wide, closeness = (2.5 * softness, 0.1 * bias) if owner[row, column] < 0 else (softness, bias)
            depth = light[2, 0] * x + light[2, 1] * y + light[2, 2] * z + shift[2] + closeness
            hidden = 0
            tile = row % TILE * TILE + column % TILE
            for sample in range(_SAMPLES):
                a = math.floor(u + wide * _DISC[tile, sample, 0])
                b = math.floor(v + wide * _DISC[tile, sample, 1])
                if 0 <= a < side and 0 <= b < side and shadow_map[b, a] > max(depth, 0.0):
                    hidden += 1
            shade[row, column] = hidden / _SAMPLES


@kernel
def shine(
    owner, nearness, normal, paint, occlusion, shade, colours, table, up, focal, middle_x, middle_y, line, studio, light
):
    """Amounts of light (linear) of each pixel, into `light`; `line` is the width of contours in pixels.

    Surfaces have their own `paint`, or else the colours of their owners; `studio` is `Studio.strengths`.
    """
    from_key, from_fill, above, below, gloss, small, contour, shadow, near, corner = studio
    height, width = owner.shape
    for row in range(height):
        for column in range(width):
            piece, dark = owner[row, column], 1.0
            beside, under = owner[row, min(column + line, width - 1)], owner[min(row + line, height - 1), column]
            if beside != piece or under != piece:
                dark = contour
            if piece < 0:
                level = dark * (1 - shadow * shade[row, column]) * (1 - near * occlusion[row, column])
                for channel in range(3):
                    light[row, column, channel] = table[channel] * level
                continue
            x, y = (column + 0.5 - middle_x) / focal, (row + 0.5 - middle_y) / focal
            eye = 1 / math.sqrt(x * x + y * y + 1)
            size, key, fill, sky, half, glossy = 1e-12, 0.0, 0.0, 0.0, 1e-12, 0.0
            for axis in range(3):
                size += normal[row, column, axis] ** 2
            size = math.sqrt(size)
            for axis in range(3):
                facing = normal[row, column, axis] / size
                between = KEY_LIGHT[axis] - eye * (x if axis == 0 else y if axis == 1 else 1.0)
                key += facing * KEY_LIGHT[axis]
                fill += facing * FILL_LIGHT[axis]
                sky += facing * up[axis]
                glossy += facing * between
                half += between * between
            lit = 1 - shade[row, column]
            ambient = below + (above - below) * (0.5 + 0.5 * sky)
            open_sky = 1 - corner * occlusion[row, column]
            diffuse = open_sky * (ambient + from_fill * max(0.0, fill)) + from_key * lit * max(0.0, key)
            highlight = gloss * lit * max(0.0, glossy / math.sqrt(half)) ** small if key > 0 else 0.0
            own = len(paint) > 0 and paint[row, column, 0] >= 0
            for channel in range(3):
                colour = paint[row, column, channel] if own else colours[piece, channel]
                light[row, column, channel] = dark * (colour * diffuse + highlight)


@dataclass(frozen=True)
class Exposure:
    """A picture but for the colours: what each pixel shows, how dark it is there, and from where it is seen."""

    layers: Layers
    occlusion: Float32[np.ndarray, "h w"]
    shade: Float32[np.ndarray, "h w"]
    camera: Camera
    samples: int
    studio: Studio = STUDIO

    def coloured(self, colours: Float32[np.ndarray, "n 3"], own: bool = False) -> Image.Image:
        """The picture of things in their owners' colours (sRGB), or in their `own` where they have any."""
        camera, samples, (owner, nearness, normal, paint) = self.camera, self.samples, vars(self.layers).values()
        light, up = np.zeros_like(normal), camera.rotation[:, 1].copy()
        paints, table = to_linear(colours.astype(float)), to_linear(np.array(TABLE) / 255)
        seen = (owner, nearness, normal, paint if own else paint[:0, :0], self.occlusion, self.shade)
        shine(*seen, paints, table, up, camera.focal, *camera.middle, samples, self.studio.strengths, light)
        levels = (to_srgb(np.linspace(0, 1, 4096)) * 255).round().astype(np.uint8)
        picture = Image.fromarray(levels[(light.clip(0, 1) * 4095).round().astype(np.int32)])
        return picture.reduce(samples) if samples > 1 else picture


def expose(
    things: Triangles,
    camera: Camera,
    size: tuple[int, int],
    *,
    ground: float,
    samples: int = 2,
    studio: Studio = STUDIO,
) -> Exposure:
    """A picture of `size` pixels of triangles on a table at height `ground`; pixels are means of `samples`² points."""
    fine = camera.enlarged(samples)
    wide = (size[0] * samples, size[1] * samples)
    seen = fine.view(things.corners)
    normals = (things.normals.reshape(-1, 3) @ fine.rotation.T.astype(np.float32)).reshape(seen.shape)
    layers = rasterise(fine.project(seen), normals, things.owner, wide, things.paint)
    _develop(layers, things.pictures)
    up = fine.rotation[:, 1].copy()
    below = float(up @ (np.array([0, 0, fine.distance]) + fine.rotation @ (np.array([0, ground, 0]) - fine.target)))
    # Pixels that show nothing show the table, the plane up·p = below, as far as it reaches below the horizon.
    x, y = ((np.arange(side) + 0.5 - middle) / fine.focal for side, middle in zip(wide, fine.middle, strict=True))
    table = (up[0] * x + up[1] * y[:, None] + up[2]) / below
    free = (layers.nearness <= 0) & (table > 0)
    layers.nearness[free], layers.normal[free] = table[free], up
    # Darkness changes slowly, so it's found for whole pixels only.
    whole = Layers(*(layer[::samples, ::samples].copy() for layer in vars(layers).values()))
    dark = _darkness(whole, seen, normals, things, (camera.focal, *camera.middle), studio)
    occlusion, shade = (layer.repeat(samples, 0).repeat(samples, 1) for layer in dark)
    return Exposure(layers, occlusion, shade, fine, samples, studio)


def _develop(layers: Layers, pictures: Mapping[int, UInt8[np.ndarray, "_ _ 3"]]) -> None:
    """Turn paint into amounts of light: places on pictures into what these show there, colours from sRGB."""
    for owner, picture in pictures.items():
        shown = layers.owner == owner
        height, width = picture.shape[:2]
        u, v, _ = layers.paint[shown].T
        column, row = (np.floor(part).astype(np.int64) for part in (u * width, (1 - v) * height))
        layers.paint[shown] = picture[row % height, column % width] / np.float32(255)
    known = layers.paint[..., 0] >= 0
    layers.paint[known] = to_linear(layers.paint[known].astype(float).clip(0, 1))


def _darkness(
    layers: Layers,
    seen: Float32[np.ndarray, "f 3 3"],
    normals: Float32[np.ndarray, "f 3 3"],
    things: Triangles,
    place: tuple[float, float, float],
    studio: Studio,
) -> Float32[np.ndarray, "2 h w"]:
    """How much of the sky, and how much of the key light, is hidden from each pixel."""
    occlusion, shade = np.zeros((2, *layers.nearness.shape), np.float32)
    if not len(seen):
        return np.stack([occlusion, shade])
    find_occlusion(layers.nearness, layers.normal, *place, studio.reach, occlusion)
    # Axes of a picture taken by the key light; the last one points towards it.
    across, side = np.cross(KEY_LIGHT, [0.0, 1.0, 0.0]), studio.side
    across /= np.linalg.norm(across)
    axes = np.stack([across, np.cross(KEY_LIGHT, across), KEY_LIGHT])
    flat = (seen.reshape(-1, 3) @ axes.T.astype(np.float32)).reshape(seen.shape)
    low, high = bounds(flat)
    extent = max(float((high - low)[:2].max()), 1e-6)
    scale = 0.96 * side / extent
    start = np.append((low + high)[:2] / 2, low[2])
    shift = np.array([side / 2, side / 2, 1.0]) - np.array([scale, scale, 1.0]) * start
    lit = flat * np.array([scale, scale, 1], np.float32) + shift.astype(np.float32)
    cast = rasterise(lit, normals, things.owner, (side, side)).nearness
    blur = max(1.5, studio.blur * scale)
    bias = 2.5 * blur / scale
    find_shadow(layers.owner, layers.nearness, layers.normal, *place, axes, scale, shift, cast, blur, bias, shade)
    # Means over tiles, of things and of the table apart; on the table they fade out towards the picture's borders.
    shown, dark = layers.owner != NOTHING, np.stack([occlusion, shade])
    smooth = np.zeros_like(dark)
    for part in (shown, ~shown):
        share = np.maximum(uniform_filter(part.astype(np.float32), TILE), np.float32(1e-3))
        smooth[:, part] = (uniform_filter(dark * part, TILE, axes=(1, 2)) / share)[:, part]
    rows, columns = (np.minimum(np.arange(side) + 0.5, side - np.arange(side) - 0.5) / side for side in shown.shape)
    within = np.minimum(rows[:, None], columns) / studio.fade
    return smooth * np.where(shown, 1, np.clip(within, 0, 1)).astype(np.float32)
