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
    """Equal pieces of one picture, colours in [0, 1], as they lie on the table: shuffled and turned.

    Square ones may be turned by quarters, oblong ones by halves.
    """

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
        """What the pieces show; oblong ones are brought to squares, which networks know."""
        if self.height == self.width:
            return self.pixels
        side = round((self.height * self.width) ** 0.5)
        return F.interpolate(self.pixels, (side, side), mode="bicubic", antialias=True).clamp(0, 1)

    @property
    def size(self) -> int:
        """The side of a square piece in pixels, the longer one of an oblong piece."""
        return max(self.height, self.width)

    @property
    def height(self) -> int:
        """Of a piece, in pixels."""
        return self.pixels.shape[-2]

    @property
    def width(self) -> int:
        """Of a piece, in pixels."""
        return self.pixels.shape[-1]


@dataclass(frozen=True, eq=False)
class Texture:
    """A picture that lies on a mesh, and where the corners of each triangle lie on the picture.

    Places count from the picture's lower left, (0, 0), to its upper right, (1, 1); beyond, the picture repeats.
    """

    places: Float[Tensor, "f 3 2"]
    picture: Image.Image


@dataclass(frozen=True)
class Mesh:
    """Corners and triangles (counter-clockwise seen from outside); without triangles it is a cloud of points.

    `normals` are outward unit vectors that a scanner gave a cloud, `colours` sRGB levels of the corners, where known;
    a `texture` shows finer ones.
    """

    vertices: Float[Tensor, "v 3"]
    faces: Int[Tensor, "f 3"]
    normals: Float[Tensor, "v 3"] | None = None
    colours: UInt8[Tensor, "v 3"] | None = None
    texture: Texture | None = None

    def inside_out(self) -> Mesh:
        """The same mesh with its triangles facing the other way."""
        look = self.texture
        turned = None if look is None else replace(look, places=look.places.flip(1))
        return replace(self, faces=self.faces.flip(1), texture=turned)

    def uncoloured(self) -> Mesh:
        """The bare shape."""
        return replace(self, colours=None, texture=None)

    def placed(self, vertices: Float[Tensor, "v 3"], turn: Float[Tensor, "3 3"] | None = None) -> Mesh:
        """The same mesh with its corners elsewhere; `turn` is the rotation that brought them there, if any."""
        normals = self.normals
        if normals is not None and turn is not None:
            normals = normals @ turn.T.to(normals)
        return replace(self, vertices=vertices, normals=normals)


@dataclass(frozen=True)
class FragmentPieces:
    """Fragments of one object, each in a frame of its own: the origin is the mean of its points.

    `points` are drawn evenly from the surface. One unit of length here is `unit` in the files that the fragments came
    from, where the origins lay at `origins`: file coordinates = origins + unit · coordinates.
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
        """The length by which places are judged: that of the whole, since fragments are few."""
        return 1.0

    @property
    def areas(self) -> Float64[Tensor, "n"]:
        """How much surface each fragment has; of clouds, what their spread suggests."""
        spread = self.points.var(1).sum(-1).tolist()
        found = [surface_area(mesh.vertices, mesh.faces) for mesh in self.meshes]
        areas = [area or guess for area, guess in zip(found, spread, strict=True)]
        return torch.tensor(areas, dtype=torch.double).clamp(min=1e-12)


@dataclass(frozen=True)
class OutlinePieces:
    """Flat pieces of any outline: jigsaw pieces with tabs, fresco fragments, torn paper, strips.

    Lengths are pixels of the pictures, which all have one scale; x runs to the right, y down. `textures` are a picture
    of each piece: sRGB levels with alpha. A piece's own frame has its origin at the centre of its area, which lies at
    `origins` in its picture, seen from the top left corner of the top left pixel. `contours` are closed outlines in
    that frame, clockwise as seen, about a pixel from point to point, not repeating the first one. Silhouettes show no
    colours: then `coloured` is false.
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
        """Points along each outline, which tell pieces apart."""
        spread = torch.arange(64) / 64
        return torch.stack([contour[(spread * len(contour)).long()] for contour in self.contours])

    @property
    def typical_length(self) -> float:
        """The length by which places are judged, in pixels: twice that of a typical piece."""
        return 2 * float(torch.stack([*map(polygon_area, self.content)]).median()) ** 0.5

    @property
    def areas(self) -> Float[Tensor, "n"]:
        """In square pixels."""
        return torch.stack([polygon_area(contour) for contour in self.contours])

    @property
    def widths(self) -> Float[Tensor, "n"]:
        """How wide each piece is where it is narrow, as a rectangle of equal second moments: a square has its side."""
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
        """The outlines where the pieces stand."""
        turns, shifts = poses.rotation.cpu().double().numpy(), poses.translation.cpu().double().numpy()
        return [
            contour.double().numpy() @ turn.T + shift
            for contour, turn, shift in zip(self.contours, turns, shifts, strict=True)
        ]

    def corner(self, poses: Poses) -> tuple[int, int]:
        """The whole pixel (x, y) in which the whole begins, as the outlines tell: the top left of what is drawn."""
        low = [
            (contour.double() @ turn.double().T + shift.double()).amin(0)
            for contour, turn, shift in zip(self.contours, poses.rotation.cpu(), poses.translation.cpu(), strict=True)
        ]
        # A little more, so that rounding does not move what begins exactly at a pixel.
        x, y = (torch.stack(low).amin(0) + 1e-3).floor().long().tolist()
        return x, y


def polygon_area(contour: Float[Tensor, "c 2"]) -> Float[Tensor, ""]:
    """Positive for outlines that run clockwise as seen, with y down."""
    x, y = contour.unbind(1)
    return (x * y.roll(-1) - y * x.roll(-1)).sum() / 2


def erode_pixels(pixels: Num[Tensor, "n c h w"], pixels_lost: int) -> Num[Tensor, "n c _ _"]:
    """Pieces that lost a strip of `pixels_lost` pixels at every side."""
    if pixels_lost == 0:
        return pixels
    return pixels[..., pixels_lost:-pixels_lost, pixels_lost:-pixels_lost]


def surviving(count: int, missing: float, generator: torch.Generator) -> Int[Tensor, "kept"]:
    """Indices, in random order, of the pieces left when a share `missing` is lost; at least one stays."""
    kept = max(1, count - round(count * missing))
    return torch.randperm(count, generator=generator)[:kept]
