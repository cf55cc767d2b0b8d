"""Flat pieces on the page: what the browser's component draws, and the places it tells, against our poses.

The component, board.js, counts in pixels of the pieces' pictures, x to the right and y down, and clockwise degrees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from nicegui import ui
from PIL import Image
from torch import Tensor

from diffassemble.core import Poses, Puzzle
from diffassemble.core.poses import angles, plane_rotations
from diffassemble.io.pictures import png_bytes
from diffassemble.rendering.picture import piece_images

# All pieces' pictures together are no larger than this, in pixels, and none has a longer side.
_MOST_PIXELS, _LONGEST = 24_000_000, 600
# Outlines are told with a point every so many pixels on the screen.
_FINE = 200


class Stage(ui.element):
    """A component of the browser that shows pieces; `address` is where it gets them from."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._props["address"] = address

    def show(self, state: dict[str, Any]) -> None:
        """Draw the pieces as told; what is not told stays."""
        self.run_method("show", state)


class FlatBoard(Stage, component="board.js"):
    """A board that pieces are dragged on."""


def description(puzzle: Puzzle) -> dict[str, Any]:
    """What never changes: sizes, names and outlines of all pieces, and the grid."""
    if puzzle.lattice is None:
        pieces = puzzle.outlines
        step = max(1, round(float(pieces.widths.mean()) / _FINE * 2))
        shapes = [
            {
                "width": texture.shape[2],
                "height": texture.shape[1],
                "x": float(origin[0]),
                "y": float(origin[1]),
                "path": _path(contour[::step]),
            }
            for texture, contour, origin in zip(pieces.textures, pieces.contours, pieces.origins, strict=True)
        ]
        return {"pieces": _named(shapes, puzzle), "grid": None}
    width, height = puzzle.pictures.width, puzzle.pictures.height
    shape = {"width": width, "height": height, "x": width / 2, "y": height / 2, "path": None}
    grid = {"rows": puzzle.board.rows, "cols": puzzle.board.cols, "width": width, "height": height}
    return {"pieces": _named([shape] * len(puzzle), puzzle), "grid": grid}


def _named(shapes: Sequence[dict[str, Any]], puzzle: Puzzle) -> list[dict[str, Any]]:
    return [{**shape, "name": name} for shape, name in zip(shapes, puzzle.names, strict=True)]


def _path(contour: Float[Tensor, "c 2"]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in contour.tolist()) + "Z"


def picture_of(puzzle: Puzzle, number: int) -> bytes:
    """One piece's picture as it is shown (PNG)."""
    if puzzle.lattice is not None:
        width = min(_LONGEST, puzzle.pictures.width)
        return png_bytes(piece_images(puzzle.pixels[number : number + 1], width)[0])
    textures = puzzle.outlines.textures
    pixels = sum(texture.shape[1] * texture.shape[2] for texture in textures)
    texture = textures[number]
    scale = min(1.0, math.sqrt(_MOST_PIXELS / pixels), _LONGEST / max(texture.shape[1:]))
    image = Image.fromarray(texture.permute(1, 2, 0).contiguous().numpy())
    if scale < 1:
        image = image.resize([max(1, round(side * scale)) for side in image.size], Image.Resampling.BOX)
    return png_bytes(image)


def to_places(puzzle: Puzzle, poses: Poses) -> list[list[float]]:
    """Where pieces stand, as the component counts: x, y, degrees."""
    degrees = np.degrees(angles(poses))
    places = poses.translation.detach().double().numpy()
    if puzzle.lattice is not None:
        places = places / puzzle.board.pitch * [puzzle.pictures.width, puzzle.pictures.height]
    return np.round(np.column_stack([places, degrees]), 3).tolist()


def from_places(puzzle: Puzzle, places: Sequence[Sequence[float]]) -> Poses:
    """The poses of pieces that stand where the component tells."""
    told = torch.tensor(places, dtype=torch.double).reshape(-1, 3)
    where = told[:, :2]
    if puzzle.lattice is not None:
        where = where / torch.tensor([puzzle.pictures.width, puzzle.pictures.height]) * puzzle.board.pitch
    return Poses(plane_rotations(told[:, 2].deg2rad()).float(), where.float())
