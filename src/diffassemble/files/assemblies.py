"""Assembly folders: assembly.json for machines, assembled.png and steps.gif for people, and what is locked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import Assembly, FragmentPieces, InputError, Locks, Poses, Puzzle
from diffassemble.files.atomic import check_free, fresh_folder, write_file
from diffassemble.files.documents import (
    FRAGMENTS,
    IMAGE,
    board_field,
    document_bytes,
    field,
    marked,
    matrix_field,
    named_records,
    read_document,
)
from diffassemble.files.pictures import png_bytes
from diffassemble.files.puzzles import placements
from diffassemble.fragments.files import fragment_assembly_bytes, object_contents, read_fragment_poses, read_objects
from diffassemble.rendering.animation import encode_gif
from diffassemble.rendering.drawing import animate, draw_assembly

# ----------------------------------------------------------------------------------------------------------------------
# Assembly folders: assembly.json for machines, assembled.png and steps.gif for people, and meshes of objects.


ASSEMBLY_FILES = (
    "assembly.json",
    "assembled.png",
    "steps.gif",
    "report.html",
    "assembled.glb",
    "matrices.txt",
    "posed",
)


def write_assembly(assembly: Assembly, folder: Path | str, overwrite: bool = False, report: str | None = None) -> None:
    """Write an assembly folder, whole or not at all, with a page about it if there is one.

    Fragments add assembled.glb, matrices.txt for CloudCompare, and the meshes as they stand in posed/NAME.ply.
    """
    with fresh_folder(Path(folder), ASSEMBLY_FILES, overwrite) as part:
        (part / "assembly.json").write_bytes(assembly_bytes(assembly))
        (part / "assembled.png").write_bytes(png_bytes(draw_assembly(assembly)))
        (part / "steps.gif").write_bytes(encode_gif(animate(assembly)))
        if report is not None:
            (part / "report.html").write_text(report)
        if isinstance(assembly.puzzle.pieces, FragmentPieces):
            (part / "posed").mkdir()
            for name, content in object_contents(assembly):
                (part / name).write_bytes(content)


def check_assembly_folder(folder: Path | str, overwrite: bool = False) -> None:
    """Refuse, before the work is done, a folder that `write_assembly` would refuse after it."""
    check_free(Path(folder), ASSEMBLY_FILES, overwrite)


def assembly_bytes(assembly: Assembly) -> bytes:
    """The content of assembly.json: the same for the same answer, so neither time nor timings are in it."""
    puzzle = assembly.puzzle
    if isinstance(puzzle.pieces, FragmentPieces):
        return fragment_assembly_bytes(assembly)
    places = placements(puzzle.board, assembly.poses)
    # Adding zero turns −0 into 0.
    matrices = (_matrices(assembly.poses) + 0.0).tolist()
    rows = zip(puzzle.names, matrices, assembly.confidence.tolist(), places, strict=True)
    records = [{"file": name, "matrix": matrix, "confidence": sure, **place} for name, matrix, sure, place in rows]
    board = {"rows": puzzle.board.rows, "cols": puzzle.board.cols}
    extra = {"extra": list(assembly.extra)} if assembly.extra else {}
    return document_bytes({"solver": assembly.solver, **board, **extra, "pieces": marked(records, puzzle)})


def read_assembly(path: Path | str, puzzle: Puzzle) -> Assembly:
    """The assembly of `puzzle` that was written to a folder or an assembly.json.

    History and time are not kept. The board is the document's, which may be the puzzle's after a turn;
    then the truth is left out.
    """
    source = Path(path) / "assembly.json" if Path(path).is_dir() else Path(path)
    broken = isinstance(puzzle.pieces, FragmentPieces)
    document = read_document(source, (FRAGMENTS if broken else IMAGE,))
    if not broken and (board := board_field(document, source)) != puzzle.board:
        puzzle = replace(puzzle, lattice=board, truth=None)
    extra = tuple(field(document, "extra", list, source)) if "extra" in document else ()
    kept = [index for index, name in enumerate(puzzle.names) if name not in extra]
    if len(kept) < len(puzzle):
        puzzle = puzzle.reordered(torch.tensor(kept))
    records = named_records(document, puzzle.names, source)
    if records is None:
        raise InputError(f"{source}: is not an assembly of these {len(puzzle)} pieces; their names differ")
    poses = (read_fragment_poses if broken else _read_poses)(records, puzzle, source)
    confidence = torch.tensor([_confidence(record, source) for record in records])
    objects = read_objects(records, source) if broken else None
    return Assembly(puzzle, poses, confidence, (), field(document, "solver", str, source), 0.0, extra, objects)


def render(assembly: Assembly, path: Path | str) -> None:
    """Write the assembled picture or a view of the object as a PNG; an older file is replaced in one go."""
    write_file(Path(path), png_bytes(draw_assembly(assembly)))


def _matrices(poses: Poses) -> Float[Tensor, "n 4 4"]:
    """Motions of the plane as motions of space that keep z, as other programs read them."""
    matrices = torch.eye(4).repeat(len(poses), 1, 1)
    matrices[:, :2, :2] = poses.rotation.cpu()
    matrices[:, :2, 3] = poses.translation.cpu()
    return matrices


def _read_poses(records: list[dict[str, Any]], puzzle: Puzzle, source: Path) -> Poses:
    """Where the records, one a piece in its order, put the pieces of a picture."""
    matrices = torch.tensor([matrix_field(record, source) for record in records])
    poses = Poses(matrices[:, :2, :2].clone(), matrices[:, :2, 3].clone())
    told = [{key: record.get(key) for key in ("row", "col", "turn")} for record in records]
    if told != placements(puzzle.board, poses):
        raise InputError(f"{source}: the row, col and turn of a piece do not agree with its matrix")
    return poses


def _confidence(record: dict[str, Any], source: Path) -> float:
    sure = field(record, "confidence", float, source)
    if not 0 <= sure <= 1:
        raise InputError(f"{source}: a 'confidence' must lie between 0 and 1")
    return sure


# ----------------------------------------------------------------------------------------------------------------------
# Pieces that an assembly.json marks as locked.


def read_locks(path: Path | str, puzzle: Puzzle) -> Locks:
    """Where the pieces stand that have `"locked": true` in an assembly.json, or in the one of a folder."""
    source = Path(path) / "assembly.json" if Path(path).is_dir() else Path(path)
    assembly = read_assembly(source, puzzle)
    if assembly.puzzle.lattice != puzzle.lattice:
        board = assembly.puzzle.board
        raise InputError(f"{source}: is for a grid of {board.rows}x{board.cols}; pass --grid {board.rows}x{board.cols}")
    records = named_records(read_document(source, (IMAGE, FRAGMENTS)), assembly.puzzle.names, source) or []
    held = torch.tensor([_is_locked(record, source) for record in records])
    if not bool(held.any()):
        raise InputError(f'{source}: marks no piece as locked; write "locked": true into the lines of those you know')
    if puzzle.lattice is not None:
        cells, _ = puzzle.board.snap(assembly.poses)
        if len(cells[held].unique()) != int(held.sum()):
            raise InputError(f"{source}: locks two pieces to one cell; unlock one of them")
    return Locks(held, assembly.poses)


def _is_locked(record: dict[str, Any], source: Path) -> bool:
    locked = record.get("locked", False)
    if not isinstance(locked, bool):
        raise InputError(f"{source}: 'locked' must be true or false, but is {locked!r}")
    return locked
