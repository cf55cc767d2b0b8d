"""Pieces on the page: what the browser's components draw, and the places they report, against our poses.

board.js shows flat pieces: a place is x to the right and y down in pixels of the pieces' pictures, and clockwise
degrees. objects.js shows fragments: a place is twelve numbers, the rotation row by row, then the fragment's origin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from nicegui import ui
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.core import Matches, Mesh, Poses, Puzzle
from diffassemble.core.poses import angles, plane_rotations
from diffassemble.core.surfaces import sample_surface
from diffassemble.io.pictures import png_bytes
from diffassemble.kinds import kind_of
from diffassemble.rendering.flat import Sheet, textures_at
from diffassemble.rendering.picture import fragment_colours
from diffassemble.rendering.studio import cluster, coarse_cell
from diffassemble.web import CONFIG, WorkbenchConfig
from diffassemble.web.jobs import Send


class Stage(ui.element):
    """A component of the browser that shows pieces; `address` is where it gets them from."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._props["address"] = address

    def show(self, state: dict[str, Any]) -> None:
        """Draw the pieces in this state; what is not in it stays."""
        self.run_method("show", state)


class FlatBoard(Stage, component="board.js"):
    """A board that flat pieces are dragged on."""


class ObjectScene(Stage, component="objects.js"):
    """A scene that fragments are dragged in."""


def description(puzzle: Puzzle) -> dict[str, Any]:
    """What never changes: of flat pieces sizes, names, outlines and the grid; of fragments names and colours."""
    if not puzzle.pieces.flat:
        rows = zip(puzzle.names, fragment_colours(len(puzzle)).tolist(), puzzle.fragments.meshes, strict=True)
        pieces = [{"name": name, "colour": colour, "own": mesh.colours is not None} for name, colour, mesh in rows]
        return {"pieces": pieces, "unit": puzzle.fragments.unit}
    if puzzle.lattice is not None:
        width, height = puzzle.pictures.width, puzzle.pictures.height
        shape: dict[str, Any] = {"width": width, "height": height, "x": width / 2, "y": height / 2, "path": None}
        grid = {"rows": puzzle.board.rows, "cols": puzzle.board.cols, "width": width, "height": height}
        return {"pieces": [{**shape, "name": name} for name in puzzle.names], "grid": grid}
    given = puzzle.outlines
    step = max(1, round(float(given.widths.mean()) / CONFIG.contour))

    def path(contour: Float[Tensor, "c 2"]) -> str:
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in contour[::step].tolist()) + "Z"

    pieces = []
    for number, (width, height) in enumerate((texture.shape[2], texture.shape[1]) for texture in given.textures):
        x, y = given.origins[number].tolist()
        shape = {"width": width, "height": height, "x": x, "y": y, "path": path(given.contours[number])}
        pieces.append({**shape, "name": puzzle.names[number]})
    return {"pieces": pieces, "grid": None}


def to_places(puzzle: Puzzle, poses: Poses) -> list[list[float]]:
    """Poses as the component of the pieces counts; noisy poses get the nearest rotation."""
    if not puzzle.pieces.flat:
        import roma

        rotation = roma.special_procrustes(poses.rotation.double())
        return torch.cat([rotation.flatten(1), poses.translation.double()], 1).numpy().round(6).tolist()
    places = poses.translation.detach().double().numpy()
    if puzzle.lattice is not None:
        places = places / puzzle.board.pitch * [puzzle.pictures.width, puzzle.pictures.height]
    return np.round(np.column_stack([places, np.degrees(angles(poses))]), 3).tolist()


def from_places(puzzle: Puzzle, places: Sequence[Sequence[float]]) -> Poses:
    """The poses of pieces at the places that a component reports."""
    numbers = torch.tensor(places, dtype=torch.double)
    if not puzzle.pieces.flat:
        import roma

        rotation = roma.special_procrustes(numbers[:, :9].reshape(-1, 3, 3))
        return Poses(rotation.float(), numbers[:, 9:].float())
    where = numbers[:, :2]
    if puzzle.lattice is not None:
        where = where / torch.tensor([puzzle.pictures.width, puzzle.pictures.height]) * puzzle.board.pitch
    return Poses(plane_rotations(numbers[:, 2].deg2rad()).float(), where.float())


# Flat pieces.


def picture_of(puzzle: Puzzle, number: int, config: WorkbenchConfig = CONFIG) -> bytes:
    """One flat piece's picture as it is shown (PNG)."""
    pieces = Sheet(puzzle).pieces
    pixels = sum(texture.shape[1] * texture.shape[2] for texture in pieces.textures)
    scale = min(1.0, math.sqrt(config.pixels / pixels), config.longest / max(pieces.textures[number].shape[1:]))
    return png_bytes(textures_at(pieces[torch.tensor([number])], scale)[0])


Row = tuple[int, int, float, float, float, float]
"""If the second piece is at the origin, the first is at x, y, turned by degrees; and the probability of that match."""


def send_matches(send: Send, puzzle: Puzzle) -> None:
    """Find the matches of flat pieces without a board, and send them."""
    send("matches", kind_of(puzzle).matches(puzzle))


def match_rows(matches: Matches, config: WorkbenchConfig = CONFIG) -> list[Row]:
    """Likely matches both ways round, the most probable first; a dragged piece snaps to them."""
    order = matches.probability.argsort(descending=True)[: config.matches // 2]
    kept = matches[order[matches.probability[order] >= config.probable]]
    weights, rows = kept.probability.double().numpy().round(3).tolist(), list[Row]()
    for first, second, pose in ((kept.first, kept.second, kept.pose), (kept.second, kept.first, kept.pose.inverse())):
        numbers = np.column_stack([pose.translation, np.degrees(angles(pose))]).round(2).tolist()
        columns = zip(first.tolist(), second.tolist(), numbers, weights, strict=True)
        rows += [(one, other, x, y, turn, weight) for one, other, (x, y, turn), weight in columns]
    return rows


# Fragments.


def shape_of(puzzle: Puzzle, number: int) -> bytes:
    """One fragment's shape: numbers of corners, triangles and colours; corners, triangles, colours."""
    mesh = shown_mesh(puzzle, number)
    colours = np.zeros((0, 3), np.uint8) if mesh.colours is None else mesh.colours.numpy()
    head = np.array([len(mesh.vertices), len(mesh.faces), len(colours)], "<u4")
    parts = (head, mesh.vertices.numpy().astype("<f4"), mesh.faces.numpy().astype("<u4"), colours)
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def shown_mesh(puzzle: Puzzle, number: int) -> Mesh:
    """One fragment as it is shown: as it is, or coarser if all together are too fine."""
    meshes = puzzle.fragments.meshes
    mesh, count = meshes[number], sum(len(mesh.faces) for mesh in meshes)
    if not len(mesh.faces):
        every = max(1, sum(len(mesh.vertices) for mesh in meshes) // CONFIG.points)
        return Mesh(mesh.vertices[::every], mesh.faces, None, None if mesh.colours is None else mesh.colours[::every])
    if count > CONFIG.faces:
        return coarser(mesh, max(200, len(mesh.faces) * CONFIG.faces // count))
    return mesh


def coarser(mesh: Mesh, faces: int) -> Mesh:
    """A mesh with at most about so many triangles: corners in one cell of a grid become one, colours their mean."""
    columns = mesh.vertices if mesh.colours is None else torch.cat([mesh.vertices, mesh.colours], 1)
    corners, triangles = columns.float().numpy(), mesh.faces.numpy()
    merged, kept, _ = cluster(corners, triangles, coarse_cell([(corners[:, :3], triangles)], faces))
    found = torch.from_numpy(merged)
    colours = None if mesh.colours is None else found[:, 3:].round().to(mesh.colours)
    return Mesh(found[:, :3].contiguous(), torch.from_numpy(kept), None, colours)


def gaps(puzzle: Puzzle, poses: Poses) -> bytes:
    """A byte per shown corner: its distance from the other fragments, 254 for `gap` of the whole's size, 255 beyond."""
    generator, found = torch.Generator().manual_seed(0), []
    drawn = [sample_surface(mesh.vertices, mesh.faces, CONFIG.sampled, generator) for mesh in puzzle.fragments.meshes]
    turns, shifts = poses.rotation, poses.translation
    places = [(points @ turns[n].T + shifts[n]).double().numpy() for n, (points, _) in enumerate(drawn)]
    normals = [(normal @ turns[n].T).double().numpy() for n, (_, normal) in enumerate(drawn)]
    trees = [cKDTree(points) for points in places]
    for number in range(len(puzzle)):
        corners = shown_mesh(puzzle, number).vertices @ turns[number].T + shifts[number]
        here, nearest = corners.double().numpy(), np.full(len(corners), np.inf)
        for other in (other for other in range(len(puzzle)) if other != number):
            apart, which = trees[other].query(here, distance_upper_bound=2 * CONFIG.gap)
            near = np.isfinite(apart)
            way, normal = here[near] - places[other][which[near]], normals[other][which[near]]
            # Points of a sample are further apart than gaps are wide, so the plane of the nearest one counts.
            across = np.where(normal.any(1), np.abs((way * normal).sum(1)), apart[near])
            nearest[near] = np.minimum(nearest[near], across)
        found.append(np.where(nearest <= CONFIG.gap, np.minimum(254, nearest / CONFIG.gap * 254), 255).astype(np.uint8))
    return b"".join(one.tobytes() for one in found)


def upright(answer: Answer) -> Poses:
    """The motion that turns an answer upright, as its pictures show it."""
    standing = kind_of(answer.puzzle).drawing().standing(answer)
    one = [next((number for number, own in enumerate(answer.placements.numbers.tolist()) if own >= 0), 0)]
    return standing.poses[one] @ answer.poses[one].inverse()
