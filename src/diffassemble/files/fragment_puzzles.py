"""Puzzle folders of fragments: their meshes, how large the whole is, and the truth as matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diffassemble.files.documents import (
    FRAGMENTS,
    document_bytes,
    field,
    file_name_field,
    matrix_field,
    named_records,
    read_document,
)
from diffassemble.files.fragments import load_fragments
from diffassemble.files.meshes import mesh_bytes
from diffassemble.files.placing import file_matrices, file_poses
from diffassemble.geometry import Poses
from diffassemble.puzzle import FragmentPieces, InputError, Mesh, Puzzle


def fragment_contents(puzzle: Puzzle, ending: str) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files that make the folder; the order of the files is the order of the pieces."""
    pieces = puzzle.fragments
    width = max(2, len(str(len(puzzle) - 1)))
    names = [f"fragment_{index:0{width}d}{ending}" for index in range(len(puzzle))]
    for index, name in enumerate(names):
        yield f"pieces/{name}", mesh_bytes(in_file_coordinates(pieces, index), ending)
    yield "puzzle.json", document_bytes({"unit": pieces.unit, "pieces": names}, FRAGMENTS)
    if puzzle.truth is not None:
        matrices = file_matrices(pieces, puzzle.truth).tolist()
        records = [{"file": name, "matrix": matrix} for name, matrix in zip(names, matrices, strict=True)]
        yield "truth.json", document_bytes({"pieces": records}, FRAGMENTS)


def in_file_coordinates(pieces: FragmentPieces, index: int) -> Mesh:
    """A fragment as its file has it."""
    mesh = pieces.meshes[index]
    return Mesh((pieces.origins[index].double() + pieces.unit * mesh.vertices.double()).float(), mesh.faces)


def read_fragment_folder(folder: Path, document: dict[str, Any]) -> Puzzle:
    """The puzzle that a folder's puzzle.json, already read, tells of; without a 'unit' it is estimated."""
    source = folder / "puzzle.json"
    names = tuple(file_name_field(name, source) for name in field(document, "pieces", list, source))
    if len(set(names)) != len(names) or not names:
        raise InputError(f"{source}: must name each of its pieces once")
    pieces = load_fragments([folder / "pieces" / name for name in names], _unit(document, source))
    truth = folder / "truth.json"
    return Puzzle(pieces, None, names, _read_truth(truth, names, pieces) if truth.exists() else None)


def _unit(document: dict[str, Any], source: Path) -> float | None:
    if "unit" not in document:
        return None
    unit = field(document, "unit", float, source)
    if not (math.isfinite(unit) and unit > 0):
        raise InputError(f"{source}: 'unit' must be a length above 0")
    return unit


def _read_truth(source: Path, names: tuple[str, ...], pieces: FragmentPieces) -> Poses:
    records = named_records(read_document(source, (FRAGMENTS,)), names, source)
    if records is None:
        raise InputError(f"{source}: does not tell the place of each piece of puzzle.json once")
    return file_poses(pieces, [matrix_field(record, source) for record in records], source)
