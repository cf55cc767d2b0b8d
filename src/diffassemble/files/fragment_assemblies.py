"""Assembled fragments as files: matrices for machines, a coloured scene, and posed copies of the meshes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diffassemble.files.documents import FRAGMENTS, document_bytes, marked, matrix_field
from diffassemble.files.meshes import MESH_ENDINGS, mesh_bytes, scene_bytes
from diffassemble.files.placing import file_matrices, file_poses
from diffassemble.geometry import Poses
from diffassemble.puzzle import Assembly, InputError, Mesh, Puzzle
from diffassemble.rendering.palette import fragment_colours


def fragment_assembly_bytes(assembly: Assembly) -> bytes:
    """The content of assembly.json; its matrices move the files' own points, see `placing`."""
    pieces = assembly.puzzle.fragments
    matrices = file_matrices(pieces, assembly.poses).tolist()
    rows = zip(assembly.puzzle.names, matrices, assembly.confidence.tolist(), strict=True)
    records: list[dict[str, Any]] = [
        {"file": name, "matrix": matrix, "confidence": sure} for name, matrix, sure in rows
    ]
    if assembly.objects is not None:
        for record, number in zip(records, assembly.objects, strict=True):
            record["object"] = None if number < 0 else number
    return document_bytes(
        {"solver": assembly.solver, "unit": pieces.unit, "pieces": marked(records, assembly.puzzle)}, FRAGMENTS
    )


def read_fragment_poses(records: list[dict[str, Any]], puzzle: Puzzle, source: Path) -> Poses:
    """Where the records of an assembly.json, one a fragment in its order, put the fragments."""
    return file_poses(puzzle.fragments, [matrix_field(record, source) for record in records], source)


def read_objects(records: list[dict[str, Any]], source: Path) -> tuple[int, ...] | None:
    """Which object each record's fragment belongs to, −1 for those left out; none if that is not told."""
    if not any("object" in record for record in records):
        return None
    told = [record.get("object") for record in records]
    if not all(number is None or (type(number) is int and number >= 0) for number in told):
        raise InputError(f"{source}: an 'object' must be 0, 1, … or null")
    return tuple(-1 if number is None else number for number in told)


def object_contents(assembly: Assembly) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files that only objects have, all in the unit of the fragments' files."""
    names = plain_names(assembly.puzzle.names)
    levels = (fragment_colours(len(names)) * 255).round().astype(int).tolist()
    colours = [(red, green, blue) for red, green, blue in levels]
    meshes = posed_meshes(assembly)
    yield "assembled.glb", scene_bytes(meshes, names, colours)
    yield "matrices.txt", matrix_text(assembly).encode()
    for mesh, name, colour in zip(meshes, names, colours, strict=True):
        yield f"posed/{name}.ply", mesh_bytes(mesh, ".ply", colour)


def posed_meshes(assembly: Assembly) -> list[Mesh]:
    """The fragments where they stand in the whole, whose middle is the origin."""
    pieces, poses = assembly.puzzle.fragments, assembly.poses
    turns, shifts = poses.rotation.cpu(), poses.translation.cpu()
    return [
        Mesh(pieces.unit * (mesh.vertices @ turn.T + shift), mesh.faces)
        for mesh, turn, shift in zip(pieces.meshes, turns, shifts, strict=True)
    ]


def matrix_text(assembly: Assembly) -> str:
    """For every fragment a line with its file's name and a matrix as CloudCompare reads it: 4 rows of 4 numbers."""
    lines = []
    matrices = file_matrices(assembly.puzzle.fragments, assembly.poses).tolist()
    for name, matrix in zip(assembly.puzzle.names, matrices, strict=True):
        lines += [name, *(" ".join(f"{value:.12g}" for value in row) for row in matrix)]
    return "\n".join(lines) + "\n"


def plain_names(names: tuple[str, ...]) -> list[str]:
    """File names without the endings of meshes, unless they are then no longer told apart."""
    files = [Path(name) for name in names]
    stems = [file.stem if file.suffix.lower() in MESH_ENDINGS else file.name for file in files]
    return stems if len(set(stems)) == len(stems) else [file.name for file in files]
