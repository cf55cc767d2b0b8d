"""Assembly folders: assembly.json for machines, assembled.png and steps.gif for people."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.files.atomic import check_free, fresh_folder, write_file
from diffassemble.files.documents import board_field, document_bytes, field, read_document
from diffassemble.files.images import png_bytes
from diffassemble.files.puzzles import placements
from diffassemble.geometry import Poses
from diffassemble.puzzle import Assembly, InputError, Puzzle
from diffassemble.rendering import animate, draw_assembly, encode_gif

ASSEMBLY_FILES = ("assembly.json", "assembled.png", "steps.gif")


def write_assembly(assembly: Assembly, folder: Path | str, overwrite: bool = False) -> None:
    """Write an assembly folder, whole or not at all."""
    with fresh_folder(Path(folder), ASSEMBLY_FILES, overwrite) as part:
        (part / "assembly.json").write_bytes(assembly_bytes(assembly))
        (part / "assembled.png").write_bytes(png_bytes(draw_assembly(assembly)))
        (part / "steps.gif").write_bytes(encode_gif(animate(assembly)))


def check_assembly_folder(folder: Path | str, overwrite: bool = False) -> None:
    """Refuse, before the work is done, a folder that `write_assembly` would refuse after it."""
    check_free(Path(folder), ASSEMBLY_FILES, overwrite)


def assembly_bytes(assembly: Assembly) -> bytes:
    """The content of assembly.json: the same for the same answer, so neither time nor timings are in it."""
    puzzle = assembly.puzzle
    places = placements(puzzle.board, assembly.poses)
    # Adding zero turns −0 into 0.
    matrices = (_matrices(assembly.poses) + 0.0).tolist()
    rows = zip(puzzle.names, matrices, assembly.confidence.tolist(), places, strict=True)
    records = [{"file": name, "matrix": matrix, "confidence": sure, **place} for name, matrix, sure, place in rows]
    board = {"rows": puzzle.board.rows, "cols": puzzle.board.cols}
    return document_bytes({"solver": assembly.solver, **board, "pieces": records})


def read_assembly(path: Path | str, puzzle: Puzzle) -> Assembly:
    """The assembly of `puzzle` that was written to a folder or an assembly.json.

    History and time are not kept. The board is the document's, which may be the puzzle's after a turn;
    then the truth is left out.
    """
    source = Path(path) / "assembly.json" if Path(path).is_dir() else Path(path)
    document = read_document(source)
    board = board_field(document, source)
    if board != puzzle.board:
        puzzle = replace(puzzle, lattice=board, truth=None)
    records = field(document, "pieces", list, source)
    named = {field(record, "file", str, source): record for record in records}
    if set(named) != set(puzzle.names) or len(records) != len(puzzle):
        raise InputError(f"{source}: is not an assembly of these {len(puzzle)} pieces; their names differ")
    in_order = [named[name] for name in puzzle.names]
    poses = _poses(torch.tensor([_matrix(record, source) for record in in_order]))
    if [{key: record.get(key) for key in ("row", "col", "turn")} for record in in_order] != placements(board, poses):
        raise InputError(f"{source}: the row, col and turn of a piece do not agree with its matrix")
    confidence = torch.tensor([_confidence(record, source) for record in in_order])
    return Assembly(puzzle, poses, confidence, (), field(document, "solver", str, source), 0.0)


def render(assembly: Assembly, path: Path | str) -> None:
    """Write the assembled picture as a PNG; an older file of that name is replaced in one go."""
    write_file(Path(path), png_bytes(draw_assembly(assembly)))


def _matrices(poses: Poses) -> Float[Tensor, "n 4 4"]:
    """Motions of the plane as motions of space that keep z, as other programs read them."""
    matrices = torch.eye(4).repeat(len(poses), 1, 1)
    matrices[:, :2, :2] = poses.rotation.cpu()
    matrices[:, :2, 3] = poses.translation.cpu()
    return matrices


def _poses(matrices: Float[Tensor, "n 4 4"]) -> Poses:
    return Poses(matrices[:, :2, :2].clone(), matrices[:, :2, 3].clone())


def _matrix(record: dict[str, Any], source: Path) -> list[list[float]]:
    """The 4×4 numbers of one record."""
    rows = field(record, "matrix", list, source)
    sound = len(rows) == 4 and all(isinstance(row, list) and len(row) == 4 for row in rows)
    if not sound or not all(type(value) in (int, float) and math.isfinite(value) for row in rows for value in row):
        raise InputError(f"{source}: a 'matrix' must be 4 rows of 4 numbers")
    return [[float(value) for value in row] for row in rows]


def _confidence(record: dict[str, Any], source: Path) -> float:
    sure = field(record, "confidence", float, source)
    if not 0 <= sure <= 1:
        raise InputError(f"{source}: a 'confidence' must lie between 0 and 1")
    return sure
