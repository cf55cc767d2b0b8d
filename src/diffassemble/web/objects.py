"""Fragments in space on the page: what the browser's component draws, and the places it tells, against our poses.

A place is told as twelve numbers: the rotation row by row, then where the origin of the fragment lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree

from diffassemble.assembly.answer import Answer
from diffassemble.core import Mesh, Poses, Puzzle
from diffassemble.core.surfaces import sample_surface
from diffassemble.kinds import kind_of
from diffassemble.rendering.picture import fragment_colours
from diffassemble.rendering.triangles import cluster, coarse_cell
from diffassemble.web import CONFIG
from diffassemble.web.board import Stage


class ObjectScene(Stage, component="objects.js"):
    """A scene that fragments are dragged in."""


def description(puzzle: Puzzle) -> dict[str, Any]:
    """What never changes: names, and a colour that tells each fragment from the others."""
    colours = fragment_colours(len(puzzle)).tolist()
    rows = zip(puzzle.names, colours, puzzle.fragments.meshes, strict=True)
    pieces = [{"name": name, "colour": colour, "own": mesh.colours is not None} for name, colour, mesh in rows]
    return {"pieces": pieces, "unit": puzzle.fragments.unit}


def shape_of(puzzle: Puzzle, number: int) -> bytes:
    """One fragment's shape: how many corners and triangles, whether coloured; corners, triangles, colours."""
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


def gaps(puzzle: Puzzle, poses: Poses) -> bytes:
    """How far every corner shown is from the surfaces of the other fragments, one byte each, all fragments in a row.

    0 touches, 254 is as far as is told, which is `gap` of the whole's size; 255 has no other fragment so near.
    """
    generator, told = torch.Generator().manual_seed(0), []
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
            found = np.isfinite(apart)
            way, normal = here[found] - places[other][which[found]], normals[other][which[found]]
            # Points of a sample are further apart than gaps are wide, so the plane of the nearest one counts.
            across = np.where(normal.any(1), np.abs((way * normal).sum(1)), apart[found])
            nearest[found] = np.minimum(nearest[found], across)
        told.append(np.where(nearest <= CONFIG.gap, np.minimum(254, nearest / CONFIG.gap * 254), 255).astype(np.uint8))
    return b"".join(one.tobytes() for one in told)


def coarser(mesh: Mesh, faces: int) -> Mesh:
    """A mesh with at most about so many triangles: corners in one cell of a grid become one, colours their mean."""
    columns = mesh.vertices if mesh.colours is None else torch.cat([mesh.vertices, mesh.colours], 1)
    corners, triangles = columns.float().numpy(), mesh.faces.numpy()
    merged, kept, _ = cluster(corners, triangles, coarse_cell([(corners[:, :3], triangles)], faces))
    found = torch.from_numpy(merged)
    colours = None if mesh.colours is None else found[:, 3:].round().to(mesh.colours)
    return Mesh(found[:, :3].contiguous(), torch.from_numpy(kept), None, colours)


def to_places(poses: Poses) -> list[list[float]]:
    """Where fragments stand, as the component counts; noisy poses get the nearest rotation."""
    import roma

    rotation = roma.special_procrustes(poses.rotation.double())
    return torch.cat([rotation.flatten(1), poses.translation.double()], 1).numpy().round(6).tolist()


def from_places(places: Sequence[Sequence[float]]) -> Poses:
    """The poses of fragments that stand where the component tells."""
    import roma

    told = torch.tensor(places, dtype=torch.double).reshape(-1, 12)
    rotation = roma.special_procrustes(told[:, :9].reshape(-1, 3, 3))
    return Poses(rotation.float(), told[:, 9:].float())


def upright(answer: Answer) -> Poses:
    """The motion that stands an answer up, as its pictures do."""
    stood = kind_of(answer.puzzle).drawing().standing(answer)
    one = [next((number for number, own in enumerate(answer.placements.numbers.tolist()) if own >= 0), 0)]
    return stood.poses[one] @ answer.poses[one].inverse()
