"""A photographer's studio: things on a light table, lit from the upper left, with soft shadows."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float32, Float64
from PIL import Image
from scipy.ndimage import uniform_filter

from diffassemble.rendering.camera import Camera, bounds
from diffassemble.rendering.canvas import TABLE
from diffassemble.rendering.palette import to_linear, to_srgb
from diffassemble.rendering.rasteriser import NOTHING, Layers, rasterise
from diffassemble.rendering.shading import KEY_LIGHT, TILE, find_occlusion, find_shadow, lay_ground, shine
from diffassemble.rendering.triangles import Triangles

# How far corners darken each other, and how wide shadows blur, in units of the whole's longest side.
_REACH = 0.16
_BLUR = 0.022
# The share of the picture over which shadows fade out at its borders.
_FADE = 0.16


def photograph(
    things: Triangles,
    colours: Float32[np.ndarray, "n 3"],
    camera: Camera,
    size: tuple[int, int],
    *,
    ground: float,
    samples: int = 2,
) -> Image.Image:
    """A picture of `size` pixels of triangles that stand in space, in their owners' colours (sRGB), on a table.

    `ground` is the table's height. With `samples` = 2 every pixel is the mean of 2 × 2; contours are a pixel wide.
    """
    fine = camera.enlarged(samples)
    wide = (size[0] * samples, size[1] * samples)
    seen = fine.view(things.corners)
    normals = (things.normals.reshape(-1, 3) @ fine.rotation.T.astype(np.float32)).reshape(seen.shape)
    layers = rasterise(fine.project(seen), normals, things.owner, wide)
    up = fine.rotation[:, 1].copy()
    below = float(up @ (np.array([0, 0, fine.distance]) + fine.rotation @ (np.array([0, ground, 0]) - fine.target)))
    place = (fine.focal, *fine.middle)
    lay_ground(layers.nearness, layers.normal, *place, up, below)
    # Darkness changes slowly, so it's found for whole pixels only.
    whole = Layers(*(layer[::samples, ::samples] for layer in (layers.owner, layers.nearness, layers.normal)))
    coarse = (camera.focal, *camera.middle)
    occlusion, shade = (
        layer.repeat(samples, 0).repeat(samples, 1) for layer in _darkness(whole, seen, normals, things, coarse)
    )
    light = np.zeros((wide[1], wide[0], 3), np.float32)
    paints, table = to_linear(colours.astype(float)), to_linear(np.array(TABLE) / 255)
    shine(layers.owner, layers.nearness, layers.normal, occlusion, shade, paints, table, up, *place, samples, light)
    picture = Image.fromarray(_bytes(light))
    return picture.reduce(samples) if samples > 1 else picture


def _darkness(
    layers: Layers,
    seen: Float32[np.ndarray, "f 3 3"],
    normals: Float32[np.ndarray, "f 3 3"],
    things: Triangles,
    place: tuple[float, float, float],
) -> tuple[Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w"]]:
    """How much of the sky, and how much of the key light, is hidden from each pixel."""
    occlusion, shade = _occlusion(layers, place), np.zeros_like(layers.nearness)
    if not len(seen):
        return occlusion, shade
    axes, side = _light_axes(), 384
    flat = (seen.reshape(-1, 3) @ axes.T.astype(np.float32)).reshape(seen.shape)
    low, high = bounds(flat)
    extent = max(float((high - low)[:2].max()), 1e-6)
    scale = 0.96 * side / extent
    shift = np.array([side / 2, side / 2, 1.0]) - np.array([scale, scale, 1.0]) * np.append(
        (low + high)[:2] / 2, low[2]
    )
    lit = flat * np.array([scale, scale, 1], np.float32) + shift.astype(np.float32)
    cast = rasterise(lit, normals, things.owner, (side, side)).nearness
    blur = max(1.5, _BLUR * scale)
    bias = 2.5 * blur / scale
    find_shadow(layers.owner, layers.nearness, layers.normal, *place, axes, scale, shift, cast, blur, bias, shade)
    shown = layers.owner != NOTHING
    return _smooth(occlusion, shown) * _fading(shown), _smooth(shade, shown) * _fading(shown)


def _smooth(darkness: Float32[np.ndarray, "h w"], shown: Bool[np.ndarray, "h w"]) -> Float32[np.ndarray, "h w"]:
    """Means over tiles, for things and the table each by themselves."""
    result = np.zeros_like(darkness)
    for part in (shown, ~shown):
        share = uniform_filter(part.astype(np.float32), TILE)
        result[part] = (uniform_filter(darkness * part, TILE) / np.maximum(share, np.float32(1e-3)))[part]
    return result


def _fading(shown: Bool[np.ndarray, "h w"]) -> Float32[np.ndarray, "h w"]:
    """1 on things; on the table it falls to 0 at the picture's borders, so that no shadow is cut off."""
    rows, columns = (np.minimum(np.arange(side) + 0.5, side - np.arange(side) - 0.5) / side for side in shown.shape)
    within = np.minimum(rows[:, None], columns) / _FADE
    return np.where(shown, 1, np.clip(within, 0, 1)).astype(np.float32)


def _occlusion(layers: Layers, place: tuple[float, float, float]) -> Float32[np.ndarray, "h w"]:
    """How much of the sky is hidden from each pixel by things near it; looked for only where there are things near."""
    focal, x, y = place
    occlusion = np.zeros_like(layers.nearness)
    shown = layers.owner != NOTHING
    rows, columns = np.flatnonzero(shown.any(1)), np.flatnonzero(shown.any(0))
    if not len(rows):
        return occlusion
    around = int(focal * _REACH * float(layers.nearness[shown].max())) + 1
    top, left = max(0, int(rows[0]) - around), max(0, int(columns[0]) - around)
    near = (slice(top, int(rows[-1]) + around), slice(left, int(columns[-1]) + around))
    find_occlusion(layers.nearness[near], layers.normal[near], focal, x - left, y - top, _REACH, occlusion[near])
    return occlusion


def _light_axes() -> Float64[np.ndarray, "3 3"]:
    """Axes of a picture taken by the key light; the last one points towards it."""
    across = np.cross(KEY_LIGHT, [0.0, 1.0, 0.0])
    across /= np.linalg.norm(across)
    return np.stack([across, np.cross(KEY_LIGHT, across), KEY_LIGHT])


def _bytes(light: Float32[np.ndarray, "h w 3"]) -> np.ndarray:
    """Light as the bytes of a picture."""
    levels = (to_srgb(np.linspace(0, 1, 4096)) * 255).round().astype(np.uint8)
    return levels[(light.clip(0, 1) * 4095).round().astype(np.int32)]
