"""Pieces whose poses are unknown: pictures, meshes and clouds, flat outlines; and what erosion and loss do to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64, Int, Num, UInt8
from PIL import Image
from torch import Tensor

from diffassemble.core.poses import Poses
from diffassemble.core.surfaces import surface_area


@dataclass(frozen=True)
class ImagePieces:
    """Equal pieces of one picture, colours in [0, 1]; square ones may be turned by quarters, oblong ones by halves."""

    pixels: Float[Tensor, "n 3 h w"]
    kind: ClassVar[str] = "squares"
    called: ClassVar[str] = "pieces of a picture"
    flat: ClassVar[bool] = True

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: Int[Tensor, "m"]) -> ImagePieces:
        return ImagePieces(self.pixels[index])

    @property
    def content(self) -> Float[Tensor, "n 3 s s"]:
        """What the pieces show, as squares: oblong ones are resized."""
        if self.height == self.width:
            return self.pixels
        side = round((self.height * self.width) ** 0.5)
        return F.interpolate(self.pixels, (side, side), mode="bicubic", antialias=True).clamp(0, 1)

    @property
    def height(self) -> int:
        """Height of a piece in pixels."""
        return self.pixels.shape[-2]

    @property
    def width(self) -> int:
        """Width of a piece in pixels."""
        return self.pixels.shape[-1]

    @property
    def size(self) -> int:
        """The side of a square piece in pixels, the longer one of an oblong piece."""
        return max(self.height, self.width)


@dataclass(frozen=True, eq=False)
class Texture:
    """A picture on a mesh, and the places of each triangle's corners on it: lower left (0, 0), upper right (1, 1)."""

    places: Float[Tensor, "f 3 2"]
    picture: Image.Image


@dataclass(frozen=True)
class Mesh:
    """Corners and triangles (counter-clockwise seen from outside); without triangles it is a cloud of points.

    `normals` are outward unit vectors of a cloud, `colours` sRGB levels of the corners; a `texture` shows finer ones.
    """

    vertices: Float[Tensor, "v 3"]
    faces: Int[Tensor, "f 3"]
    normals: Float[Tensor, "v 3"] | None = None
    colours: UInt8[Tensor, "v 3"] | None = None
    texture: Texture | None = None

    def inside_out(self) -> Mesh:
        """The same mesh with its triangles facing the other way."""
        own = self.texture
        texture = None if own is None else replace(own, places=own.places.flip(1))
        return replace(self, faces=self.faces.flip(1), texture=texture)

    def uncoloured(self) -> Mesh:
        """The bare shape."""
        return replace(self, colours=None, texture=None)

    def placed(self, vertices: Float[Tensor, "v 3"], turn: Float[Tensor, "3 3"] | None = None) -> Mesh:
        """The same mesh with other corners; `turn` is the rotation that brought them there, if any."""
        normals = self.normals
        if normals is not None and turn is not None:
            normals = normals @ turn.T.to(normals)
        return replace(self, vertices=vertices, normals=normals)


@dataclass(frozen=True)
class FragmentPieces:
    """Fragments of one object, each in a frame whose origin is the mean of its `points`, samples of the surface.

    File coordinates = origins + unit · coordinates.
    """

    points: Float[Tensor, "n p 3"]
    meshes: tuple[Mesh, ...]
    origins: Float[Tensor, "n 3"]
    unit: float = 1.0
    kind: ClassVar[str] = "fragments"
    called: ClassVar[str] = "fragments of an object"
    flat: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: Int[Tensor, "m"]) -> FragmentPieces:
        meshes = tuple(self.meshes[i] for i in index.tolist())
        return FragmentPieces(self.points[index], meshes, self.origins[index], self.unit)

    @property
    def content(self) -> Float[Tensor, "n p 3"]:
        return self.points

    @property
    def typical_length(self) -> float:
        """The length by which poses are judged: that of the whole."""
        return 1.0

    @property
    def areas(self) -> Float64[Tensor, "n"]:
        """Surface of each fragment; of clouds, the variance of their points."""
        spread = self.points.var(1).sum(-1).tolist()
        found = [surface_area(mesh.vertices, mesh.faces) for mesh in self.meshes]
        areas = [area or guess for area, guess in zip(found, spread, strict=True)]
        return torch.tensor(areas, dtype=torch.double).clamp(min=1e-12)


@dataclass(frozen=True)
class OutlinePieces:
    """Flat pieces of any outline: jigsaw pieces with tabs, fresco fragments, torn paper, strips. Lengths are pixels.

    `textures` are sRGB levels with alpha. The origin of a piece's frame is the centre of its area, at `origins` from
    the top left corner of its picture. `contours` are closed outlines in that frame, clockwise as seen, about a
    pixel from point to point. `coloured` is false for silhouettes.
    """

    textures: tuple[UInt8[Tensor, "4 _ _"], ...]
    contours: tuple[Float[Tensor, "_ 2"], ...]
    origins: Float[Tensor, "n 2"]
    coloured: bool = True
    kind: ClassVar[str] = "outlines"
    called: ClassVar[str] = "pieces of any outline"
    flat: ClassVar[bool] = True

    def __len__(self) -> int:
        return len(self.contours)

    def __getitem__(self, index: Int[Tensor, "m"]) -> OutlinePieces:
        chosen = index.tolist()
        textures, contours = (tuple(kept[i] for i in chosen) for kept in (self.textures, self.contours))
        return OutlinePieces(textures, contours, self.origins[index], self.coloured)

    @property
    def content(self) -> Float[Tensor, "n 64 2"]:
        """64 points along each outline."""
        spread = torch.arange(64) / 64
        return torch.stack([contour[(spread * len(contour)).long()] for contour in self.contours])

    @property
    def typical_length(self) -> float:
        """The length by which poses are judged, in pixels: twice the root of the median area."""
        return 2 * float(torch.stack([*map(polygon_area, self.content)]).median()) ** 0.5

    @property
    def areas(self) -> Float[Tensor, "n"]:
        """In square pixels."""
        return torch.stack([polygon_area(contour) for contour in self.contours])

    @property
    def widths(self) -> Float[Tensor, "n"]:
        """The shorter side of the rectangle with the second moments of each piece, in pixels."""
        found = []
        for contour in self.contours:
            here = contour.double()
            following = here.roll(-1, 0)
            cross = here[:, 0] * following[:, 1] - here[:, 1] * following[:, 0]
            # Green's theorem, about the centre of the area, which is the origin.
            both = torch.stack([here, following, here + following])
            moments = (cross[:, None, None] * (both[..., :, None] * both[..., None, :]).sum(0)).sum(0) / 24
            spread = torch.linalg.eigvalsh(moments / (cross.sum() / 2))[0].clamp(min=0)
            found.append(float((12 * spread).sqrt()))
        return torch.tensor(found)

    def placed_contours(self, poses: Poses) -> list[Float64[np.ndarray, "_ 2"]]:
        """The outlines moved by poses."""
        turns, shifts = poses.rotation.cpu().double().numpy(), poses.translation.cpu().double().numpy()
        moved = zip(self.contours, turns, shifts, strict=True)
        return [contour.double().numpy() @ turn.T + shift for contour, turn, shift in moved]

    def corner(self, poses: Poses) -> tuple[int, int]:
        """The top left pixel (x, y) of the whole, by the outlines."""
        low = np.stack([contour.min(0) for contour in self.placed_contours(poses)]).min(0)
        # A little more, so that rounding does not move what begins exactly at a pixel.
        x, y = np.floor(low + 1e-3).astype(int).tolist()
        return x, y


Colour = tuple[int, int, int]
"""sRGB levels"""


def to_linear(srgb: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """The amounts of light (0…1) behind the numbers of screens and files."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def to_srgb(linear: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """Amounts of light (0…1) as screens and files count them."""
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def polygon_area(contour: Float[Tensor, "c 2"]) -> Float[Tensor, ""]:
    """Area of an outline; positive if it runs clockwise as seen, with y down."""
    x, y = contour.unbind(1)
    return (x * y.roll(-1) - y * x.roll(-1)).sum() / 2


def erode_pixels(pixels: Num[Tensor, "n c h w"], pixels_lost: int) -> Num[Tensor, "n c _ _"]:
    """Pieces that lost a strip of `pixels_lost` pixels at every side."""
    if pixels_lost == 0:
        return pixels
    return pixels[..., pixels_lost:-pixels_lost, pixels_lost:-pixels_lost]


def surviving(count: int, missing: float, generator: torch.Generator) -> Int[Tensor, "kept"]:
    """Indices, in random order, of the pieces left when a share `missing` is lost; at least one."""
    kept = max(1, count - round(count * missing))
    return torch.randperm(count, generator=generator)[:kept]
