"""A small renderer that needs no display: a camera, a rasteriser, and a light table with soft shadows.

Space has y up. What a camera sees has x to the right, y down and z away from it; a pixel at (x, y) shows what lies in
direction ((x − middle) / focal, 1). Loops over triangles and pixels are compiled by numba; type checkers are kept away
from them, since what those wrap can't be compiled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32, Int64, UInt8
from numba import njit
from PIL import Image
from scipy.ndimage import uniform_filter

from diffassemble.core.colours import to_linear, to_srgb
from diffassemble.rendering.picture import TABLE
from diffassemble.rendering.triangles import Triangles


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
    """Turns space by `rotation` about `target`, looks at it from `distance`, and spreads it over a picture.

    A point at (x, y, z) before the eye falls on the pixel `middle` + `focal` · (x, y) / z.
    """

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
        result = np.empty_like(seen)
        result[..., 2] = 1 / seen[..., 2]
        for axis in range(2):
            middle = np.float32(self.middle[axis])
            result[..., axis] = seen[..., axis] * (np.float32(self.focal) * result[..., 2]) + middle
        return result

    def enlarged(self, times: int) -> Camera:
        """The same view on a picture with `times` as many pixels along each side."""
        x, y = self.middle
        return Camera(self.rotation, self.target, self.distance, self.focal * times, (x * times, y * times))


def orbit(azimuth: float, elevation: float) -> Float64[np.ndarray, "3 3"]:
    """The turn of a camera that stands at these angles (degrees): azimuth from +z towards +x, elevation upwards."""
    a, e = math.radians(azimuth), math.radians(elevation)
    back = np.array([math.sin(a) * math.cos(e), math.sin(e), math.cos(a) * math.cos(e)])
    right = np.array([math.cos(a), 0.0, -math.sin(a)])
    return np.stack([right, -np.cross(back, right), -back])


def bounds(points: Float32[np.ndarray, "*s d"]) -> tuple[Float64[np.ndarray, "d"], Float64[np.ndarray, "d"]]:
    """The lowest and the highest coordinates; axis by axis, which is many times faster than all at once."""
    axes = [points[..., axis] for axis in range(points.shape[-1])]
    return np.array([float(axis.min()) for axis in axes]), np.array([float(axis.max()) for axis in axes])


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
    """What each pixel shows: whose surface (`NOTHING` for none), how near (1/distance, 0 for none), facing where.

    And, if there are surfaces with paint of their own, which; below 0 where there is none.
    """

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

    Corners are (x, y, nearness) with x to the right and y down, in pixels from the upper left corner of the picture;
    they run counter-clockwise as seen from outside. Both sides of a triangle are seen, and the normals of inner sides
    are turned round. Triangles without area, or with corners that aren't numbers, cover nothing.
    """
    width, height = size
    layers = Layers(
        np.full((height, width), NOTHING, np.int32),
        np.zeros((height, width), np.float32),
        np.zeros((height, width, 3), np.float32),
        np.full((0, 0, 3) if paint is None else (height, width, 3), -1, np.float32),
    )
    given = np.zeros((0, 3, 3), np.float32) if paint is None else paint
    _fill(corners, normals, owner, given, layers.owner, layers.nearness, layers.normal, layers.paint)
    return layers


@njit(cache=True, nogil=True)
@no_type_check
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


@njit(cache=True, nogil=True)
@no_type_check
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


@njit(cache=True, nogil=True)
@no_type_check
def find_shadow(
    owner, nearness, normal, focal, middle_x, middle_y, light, scale, shift, shadow_map, softness, bias, shade
):
    """How much of the key light each pixel misses: 0 nothing, 1 all, with soft borders.

    Rows of `light` are the axes of the shadow map, the last one towards the light; a point p falls on its pixel
    scale · light[:2] p + shift[:2], at nearness light[2] p + shift[2]. What is nearer by less than `bias`
    casts no shade.
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


@njit(cache=True, nogil=True)
@no_type_check
def shine(
    owner, nearness, normal, paint, occlusion, shade, colours, table, up, focal, middle_x, middle_y, line, studio, light
):
    """Amounts of light (linear) of each pixel, into `light`; `line` is how wide contours are, in pixels.

    Surfaces have their own `paint`, or else the colours of their owners. `studio` are the strengths from `key` to
    `corner` of a `Studio`, in that order.
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
        layers, camera, samples = self.layers, self.camera, self.samples
        light, up = np.zeros_like(layers.normal), camera.rotation[:, 1].copy()
        paints, table = to_linear(colours.astype(float)), to_linear(np.array(TABLE) / 255)
        paint = layers.paint if own else layers.paint[:0, :0]
        seen = (layers.owner, layers.nearness, layers.normal, paint, self.occlusion, self.shade)
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
    """A picture of `size` pixels of triangles that stand in space, on a table.

    `ground` is the table's height. With `samples` = 2 every pixel is the mean of 2 × 2; contours are a pixel wide.
    """
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
    every = (layers.owner, layers.nearness, layers.normal, layers.paint)
    whole = Layers(*(layer[::samples, ::samples].copy() for layer in every))
    coarse = (camera.focal, *camera.middle)
    occlusion, shade = (
        layer.repeat(samples, 0).repeat(samples, 1) for layer in _darkness(whole, seen, normals, things, coarse, studio)
    )
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
) -> tuple[Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w"]]:
    """How much of the sky, and how much of the key light, is hidden from each pixel."""
    occlusion, shade = _occlusion(layers, place, studio), np.zeros_like(layers.nearness)
    if not len(seen):
        return occlusion, shade
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
    shown = layers.owner != NOTHING
    fading = _fading(shown, studio)
    return _smooth(occlusion, shown) * fading, _smooth(shade, shown) * fading


def _smooth(darkness: Float32[np.ndarray, "h w"], shown: Bool[np.ndarray, "h w"]) -> Float32[np.ndarray, "h w"]:
    """Means over tiles, for things and the table each by themselves."""
    result = np.zeros_like(darkness)
    for part in (shown, ~shown):
        share = uniform_filter(part.astype(np.float32), TILE)
        result[part] = (uniform_filter(darkness * part, TILE) / np.maximum(share, np.float32(1e-3)))[part]
    return result


def _fading(shown: Bool[np.ndarray, "h w"], studio: Studio) -> Float32[np.ndarray, "h w"]:
    """1 on things; on the table it falls to 0 at the picture's borders, so that no shadow is cut off."""
    rows, columns = (np.minimum(np.arange(side) + 0.5, side - np.arange(side) - 0.5) / side for side in shown.shape)
    within = np.minimum(rows[:, None], columns) / studio.fade
    return np.where(shown, 1, np.clip(within, 0, 1)).astype(np.float32)


def _occlusion(layers: Layers, place: tuple[float, float, float], studio: Studio) -> Float32[np.ndarray, "h w"]:
    """How much of the sky is hidden from each pixel by things near it; looked for only where there are things near."""
    (focal, x, y), reach = place, studio.reach
    occlusion = np.zeros_like(layers.nearness)
    shown = layers.owner != NOTHING
    rows, columns = np.flatnonzero(shown.any(1)), np.flatnonzero(shown.any(0))
    if not len(rows):
        return occlusion
    around = int(focal * reach * float(layers.nearness[shown].max())) + 1
    top, left = max(0, int(rows[0]) - around), max(0, int(columns[0]) - around)
    near = (slice(top, int(rows[-1]) + around), slice(left, int(columns[-1]) + around))
    nearness, normal = (np.ascontiguousarray(layer[near]) for layer in (layers.nearness, layers.normal))
    found = np.zeros_like(nearness)
    find_occlusion(nearness, normal, focal, x - left, y - top, reach, found)
    occlusion[near] = found
    return occlusion
