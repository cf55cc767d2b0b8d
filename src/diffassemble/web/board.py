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
from torch import Tensor

from diffassemble.core import Matches, Poses, Puzzle
from diffassemble.core.poses import angles, plane_rotations
from diffassemble.io.pictures import png_bytes
from diffassemble.kinds import find_matches
from diffassemble.rendering.flat import Sheet, textures_at
from diffassemble.web import CONFIG, WorkbenchConfig
from diffassemble.web.jobs import Send


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
        step = max(1, round(float(pieces.widths.mean()) / CONFIG.contour))
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


def picture_of(puzzle: Puzzle, number: int, config: WorkbenchConfig = CONFIG) -> bytes:
    """One piece's picture as it is shown (PNG)."""
    pieces = Sheet(puzzle).pieces
    pixels = sum(texture.shape[1] * texture.shape[2] for texture in pieces.textures)
    texture = pieces.textures[number]
    scale = min(1.0, math.sqrt(config.pixels / pixels), config.longest / max(texture.shape[1:]))
    return png_bytes(textures_at(pieces[torch.tensor([number])], scale)[0])


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


Row = tuple[int, int, float, float, float, float]
"""If the second piece is at the origin, the first is at x, y, turned by degrees; and how probable that is."""


def send_matches(send: Send, puzzle: Puzzle) -> None:
    """Find the matches of flat pieces that lie on no board, and send them."""
    send("matches", find_matches(puzzle))


def match_rows(matches: Matches, config: WorkbenchConfig = CONFIG) -> list[Row]:
    """Likely matches both ways round, the most probable first; they draw a dragged piece to its neighbour."""
    order = matches.probability.argsort(descending=True)[: config.matches // 2]
    kept = matches[order[matches.probability[order] >= config.probable]]
    rows: list[Row] = []
    for first, second, pose in ((kept.first, kept.second, kept.pose), (kept.second, kept.first, kept.pose.inverse())):
        numbers = np.column_stack([pose.translation, np.degrees(angles(pose))]).round(2).tolist()
        weights = kept.probability.double().numpy().round(3).tolist()
        rows += [
            (one, other, x, y, turn, weight)
            for one, other, (x, y, turn), weight in zip(first.tolist(), second.tolist(), numbers, weights, strict=True)
        ]
    return rows
