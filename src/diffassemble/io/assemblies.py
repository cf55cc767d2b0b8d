"""Answer folders: assembly.json for machines, assembled.png and steps.gif for people, and what is locked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.corrections import JoinEvidence
from diffassemble.core import InputError, Locks, Placements, Puzzle
from diffassemble.core.limits import LIMITS
from diffassemble.core.placements import BY_PERSON
from diffassemble.io import squares
from diffassemble.io.atomic import add_files, check_free, fresh_folder, write_file
from diffassemble.io.documents import (
    ASSEMBLY_FILES,
    DOCUMENTS,
    document_bytes,
    field,
    named_records,
    read_document,
)
from diffassemble.kinds import kind_of
from diffassemble.rendering.report import Pictures, report_html, upright_note

_DRAWN = {"assembled": "assembled.png", "steps": "steps.gif", "plan": "plan.png"}


def write_assembly(
    assembly: Answer,
    folder: Path | str,
    overwrite: bool = False,
    *,
    pictures: bool = True,
    settings: Sequence[tuple[str, str]] = (),
    wrote: Callable[[str], None] = lambda name: None,
) -> Pictures:
    """Write an assembly folder: the answer first, which takes the place of an older folder in one go, then the rest.

    Fragments add matrices.txt for CloudCompare, assembled.glb, and the meshes as they stand in posed/NAME.ply. With
    `pictures` there are also assembled.png, steps.gif, of real pieces plan.png, and report.html, which tells the
    `settings`. `wrote` hears of each file as soon as it is there. What is there is whole: whoever stops this in between
    has the answer. Gives what was drawn, so that nobody has to draw it again.
    """
    target = Path(folder)
    with fresh_folder(target, ASSEMBLY_FILES, overwrite) as part:
        (part / "assembly.json").write_bytes(assembly_bytes(assembly))
    wrote("assembly.json")
    further = list(kind_of(assembly.puzzle).files.further(assembly))
    add_files(target, further)
    for name in dict.fromkeys(name.split("/")[0] for name, _ in further):
        wrote(name)
    drawn = Pictures(assembly)
    if pictures:
        for name in drawn.drawn():
            if name in _DRAWN and (content := getattr(drawn, name)) is not None:
                add_files(target, [(_DRAWN[name], content)])
                wrote(_DRAWN[name])
        add_files(target, [("report.html", report_html(drawn, settings).encode())])
        wrote("report.html")
    return drawn


def check_assembly_folder(folder: Path | str, overwrite: bool = False) -> None:
    """Refuse, before the work is done, a folder that `write_assembly` would refuse after it."""
    check_free(Path(folder), ASSEMBLY_FILES, overwrite)


def assembly_bytes(assembly: Answer) -> bytes:
    """The content of assembly.json: the same for the same answer, so neither time nor timings are in it."""
    puzzle = assembly.puzzle
    files = kind_of(puzzle).files
    moves, places = files.matrices(puzzle, assembly.poses).tolist(), files.places(puzzle, assembly.poses)
    held = [False] * len(puzzle) if puzzle.locks is None else puzzle.locks.held.tolist()
    found = assembly.placements
    status, by_person = found.status, found.by_person.tolist()
    joins = [[join for join in assembly.joins if own and index in join[:2]] for index, own in enumerate(by_person)]
    records: list[dict[str, Any]] = []
    for index, name in enumerate(puzzle.names):
        records.append({"file": name, "matrix": moves[index], "confidence": found.placement(index).confidence})
        records[-1].update(places[index])
        if found.objects is not None:
            number = int(found.objects[index])
            records[-1]["object"] = None if number < 0 else number
        if found.cells is not None:
            records[-1].update(_cell(found.cells, index))
        if found.objects is not None or status[index] == BY_PERSON:
            records[-1]["group"] = status[index]
        if beside := [(join, {join.first, join.second} - {index}) for join in joins[index]]:
            records[-1]["evidence"] = [
                {"file": puzzle.names[other], "log_odds": round(join.log_odds, 3)} for join, (other,) in beside
            ]
        if found.notes is not None:
            records[-1]["note"] = found.notes[index]
        if held[index]:
            records[-1]["locked"] = True
    extra = {"extra": list(assembly.extra)} if assembly.extra else {}
    grid = dict(zip(("rows", "cols"), assembly.grids.get(0, ()), strict=False))
    fields = {"solver": assembly.solver, **files.fields(puzzle), **grid, **_upright(assembly), **extra}
    fields |= {"pieces": records}
    return document_bytes(fields, files.document)


def read_assembly(path: Path | str, puzzle: Puzzle) -> Answer:
    """The assembly of `puzzle` that was written to a folder or an assembly.json.

    History and time are not kept. The board is the document's, which may be the puzzle's after a turn;
    then the truth is left out.
    """
    source = Path(path) / "assembly.json" if Path(path).is_dir() else Path(path)
    files = kind_of(puzzle).files
    document = read_document(source, (files.document,))
    puzzle = puzzle if puzzle.lattice is None else squares.fitted(puzzle, document, source)
    extra = tuple(field(document, "extra", list, source)) if "extra" in document else ()
    if not all(isinstance(name, str) for name in extra):
        raise InputError(f"{source}: 'extra' must be names of pieces")
    kept = [index for index, name in enumerate(puzzle.names) if name not in extra]
    if len(kept) < len(puzzle):
        puzzle = puzzle.reordered(torch.tensor(kept))
    records = named_records(document, puzzle.names, source)
    if records is None:
        raise InputError(f"{source}: is not an assembly of these {len(puzzle)} pieces; their names differ")
    poses = files.read_poses(puzzle, records, source)
    confidence = [_read_confidence(record, source) for record in records]
    # The object of each piece, −1 for unplaced ones, if the file has it.
    told = [record.get("object") for record in records]
    if not all(number is None or (type(number) is int and number >= 0) for number in told):
        raise InputError(f"{source}: an 'object' must be 0, 1, … or null")
    objects = tuple(-1 if number is None else number for number in told)
    known = torch.tensor(objects) if any("object" in record for record in records) else None
    solver = field(document, "solver", str, source)
    upright = _read_upright(document, source)
    notes = _read_notes(records, source)
    cells = _read_cells(records, source) if puzzle.lattice is None else None
    found = Placements(poses, torch.tensor(confidence), known, cells, notes, upright=upright)
    return Answer(puzzle, found, solver=solver, extra=extra, joins=_read_joins(records, puzzle.names, source))


def render(assembly: Answer, path: Path | str) -> None:
    """Write the assembled picture or a view of the object as a PNG; an older file is replaced in one go."""
    write_file(Path(path), Pictures(assembly).assembled)


def _upright(assembly: Answer) -> dict[str, Any]:
    """How probable it is that a picture stands upright; null where nobody looked, nothing where locks tell it."""
    if (assembly.puzzle.lattice is None and not assembly.puzzle.pieces.flat) or assembly.puzzle.locks is not None:
        return {}
    note = upright_note(assembly)
    return {"upright": {"probability": assembly.placements.upright, **({"note": note} if note else {})}}


def _read_confidence(record: dict[str, Any], source: Path) -> float:
    """The confidence of a piece; NaN for what a person placed, which has none."""
    if record.get("group") == BY_PERSON and record.get("confidence") is None:
        return math.nan
    sure = field(record, "confidence", float, source)
    if not 0 <= sure <= 1:
        raise InputError(f"{source}: a 'confidence' must lie between 0 and 1")
    return sure


def _read_joins(records: Sequence[dict[str, Any]], names: Sequence[str], source: Path) -> tuple[JoinEvidence, ...]:
    """The evidence for what a person placed, each join once."""
    number, joins = {name: index for index, name in enumerate(names)}, set()
    for index, record in enumerate(records):
        for entry in field(record, "evidence", list, source) if "evidence" in record else ():
            other = number.get(field(entry, "file", str, source))
            if other is None or other == index:
                raise InputError(f"{source}: 'evidence' must name another piece of the assembly")
            log_odds = field(entry, "log_odds", float, source)
            joins.add(JoinEvidence(min(index, other), max(index, other), log_odds))
    return tuple(sorted(joins))


def _read_upright(document: dict[str, Any], source: Path) -> float | None:
    told = field(document, "upright", dict, source) if "upright" in document else {}
    if told.get("probability") is None:
        return None
    sure = field(told, "probability", float, source)
    if not 0 <= sure <= 1:
        raise InputError(f"{source}: a 'probability' must lie between 0 and 1")
    return sure


def _cell(cells: Int[Tensor, "n 2"], index: int) -> dict[str, int | None]:
    """Row and column of a piece in the lattice that was found; null if it is in none."""
    row, col = cells[index].tolist()
    return {"row": None, "col": None} if row < 0 else {"row": row, "col": col}


def _read_cells(records: Sequence[dict[str, Any]], source: Path) -> Int[Tensor, "n 2"] | None:
    """Row and column of each piece, −1 for those in no cell, if any is told."""
    if not any("row" in record or "col" in record for record in records):
        return None
    told = [(record.get("row"), record.get("col")) for record in records]
    for pair in told:
        if pair != (None, None) and not all(type(at) is int and 0 <= at < LIMITS.cells for at in pair):
            raise InputError(f"{source}: 'row' and 'col' must both be 0, 1, … or null, but are {pair[0]} and {pair[1]}")
    return torch.tensor([(-1, -1) if pair == (None, None) else pair for pair in told])


def _read_notes(records: Sequence[dict[str, Any]], source: Path) -> tuple[str, ...] | None:
    """The line that stands with each piece, if any has one."""
    if not any("note" in record for record in records):
        return None
    return tuple(field(record, "note", str, source) if "note" in record else "" for record in records)


def read_locks(path: Path | str, puzzle: Puzzle) -> Locks:
    """Where the pieces stand that have `"locked": true` in an assembly.json, or in the one of a folder."""
    source = Path(path) / "assembly.json" if Path(path).is_dir() else Path(path)
    assembly = read_assembly(source, puzzle)
    if assembly.puzzle.lattice != puzzle.lattice:
        board = assembly.puzzle.board
        raise InputError(f"{source}: is for a grid of {board.rows}x{board.cols}; pass --grid {board.rows}x{board.cols}")
    records = named_records(read_document(source, DOCUMENTS), assembly.puzzle.names, source) or []
    marks = [record.get("locked", False) for record in records]
    for mark in marks:
        if not isinstance(mark, bool):
            raise InputError(f"{source}: 'locked' must be true or false, but is {mark!r}")
    if not any(marks):
        raise InputError(f'{source}: marks no piece as locked; write "locked": true into the lines of those you know')
    # Extra pieces are loose, wherever they are put.
    place = {name: index for index, name in enumerate(assembly.puzzle.names)}
    order = torch.tensor([place.get(name, 0) for name in puzzle.names])
    held = torch.tensor([name in place and marks[place[name]] for name in puzzle.names])
    poses = assembly.poses[order]
    if puzzle.lattice is not None:
        squares.check_locks(puzzle, poses, held, source)
    return Locks(held, poses)
