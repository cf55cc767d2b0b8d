"""Answer folders: assembly.json for machines, assembled.png and steps.gif for people, and the locks in them."""

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
from diffassemble.io import documents, squares
from diffassemble.io.atomic import add_files, check_free, fresh_folder, write_file
from diffassemble.io.documents import ASSEMBLY_FILES, Records
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
    """Write an assembly folder: the answer first, which replaces an older folder in one go, then the rest.

    With `pictures` there are also those and report.html with the `settings`. `wrote` is called with the name of each
    file that is complete. Returns what was drawn.
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
    puzzle, found = assembly.puzzle, assembly.placements
    files = kind_of(puzzle).files
    matrices, places = files.matrices(puzzle, found.poses).tolist(), files.places(puzzle, found.poses)
    records: Records = []
    for index, name in enumerate(puzzle.names):
        piece = found.placement(index)
        record = {"file": name, "matrix": matrices[index], "confidence": piece.confidence, **places[index]}
        if found.objects is not None:
            record["object"] = piece.object
        if found.cells is not None:
            record |= dict(zip(("row", "col"), piece.cell or (None, None), strict=True))
        if found.objects is not None or piece.status == BY_PERSON:
            record["group"] = piece.status
        if joins := [join for join in assembly.joins if found.by_person[index] and index in join[:2]]:
            others = [(puzzle.names[join.first + join.second - index], round(join.log_odds, 3)) for join in joins]
            record["evidence"] = [{"file": other, "log_odds": odds} for other, odds in others]
        if found.notes is not None:
            record["note"] = piece.reason
        if puzzle.locks is not None and bool(puzzle.locks.held[index]):
            record["locked"] = True
        records.append(record)
    fields = {"solver": assembly.solver, **files.fields(puzzle)}
    fields |= dict(zip(("rows", "cols"), assembly.grids.get(0, ()), strict=False))
    # Probability that a picture is the right way up: null where it was not estimated, nothing where it is locked.
    if (puzzle.lattice is not None or puzzle.pieces.flat) and puzzle.locks is None:
        note = upright_note(assembly)
        fields["upright"] = {"probability": found.upright, **({"note": note} if note else {})}
    fields |= {"extra": list(assembly.extra)} if assembly.extra else {}
    return documents.document_bytes({**fields, "pieces": records}, puzzle.kind)


def _document_path(path: Path | str) -> Path:
    """The assembly.json of a folder, or the file itself."""
    return Path(path) / "assembly.json" if Path(path).is_dir() else Path(path)


def read_assembly(path: Path | str, puzzle: Puzzle) -> Answer:
    """The assembly of `puzzle` in a folder or an assembly.json, on the board there; history and time are not kept."""
    source = _document_path(path)
    document = documents.read_document(source, (puzzle.kind,))
    puzzle = puzzle if puzzle.lattice is None else squares.fitted(puzzle, document, source)
    extra = tuple(documents.field(document, "extra", list, source)) if "extra" in document else ()
    if not all(isinstance(name, str) for name in extra):
        raise InputError(f"{source}: 'extra' must be names of pieces")
    kept = [index for index, name in enumerate(puzzle.names) if name not in extra]
    if len(kept) < len(puzzle):
        puzzle = puzzle.reordered(torch.tensor(kept))
    records = documents.named_records(document, puzzle.names, source)
    if records is None:
        raise InputError(f"{source}: is not an assembly of these {len(puzzle)} pieces; their names differ")
    poses = kind_of(puzzle).files.read_poses(puzzle, records, source)
    confidence = [
        math.nan
        if record.get("group") == BY_PERSON and record.get("confidence") is None
        else _probability(record, "confidence", source)
        for record in records
    ]
    numbers = [record.get("object") for record in records]
    if not all(number is None or (type(number) is int and number >= 0) for number in numbers):
        raise InputError(f"{source}: an 'object' must be 0, 1, … or null")
    objects = torch.tensor([-1 if number is None else number for number in numbers])
    notes = [documents.field(record, "note", str, source) if "note" in record else "" for record in records]
    upright = documents.field(document, "upright", dict, source) if "upright" in document else {}
    sure = None if upright.get("probability") is None else _probability(upright, "probability", source)
    found = Placements(
        poses,
        torch.tensor(confidence),
        objects if any("object" in record for record in records) else None,
        _read_cells(records, source) if puzzle.lattice is None else None,
        tuple(notes) if any("note" in record for record in records) else None,
        upright=sure,
    )
    solver, joins = documents.field(document, "solver", str, source), _read_joins(records, puzzle.names, source)
    return Answer(puzzle, found, solver=solver, extra=extra, joins=joins)


def _probability(record: dict[str, Any], key: str, source: Path) -> float:
    value = documents.field(record, key, float, source)
    if not 0 <= value <= 1:
        raise InputError(f"{source}: a {key!r} must be between 0 and 1")
    return value


def _read_joins(records: Records, names: Sequence[str], source: Path) -> tuple[JoinEvidence, ...]:
    """The evidence for what a person placed, each join once."""
    number, joins = {name: index for index, name in enumerate(names)}, set()
    for index, record in enumerate(records):
        for entry in documents.field(record, "evidence", list, source) if "evidence" in record else ():
            other = number.get(documents.field(entry, "file", str, source))
            if other is None or other == index:
                raise InputError(f"{source}: 'evidence' must name another piece of the assembly")
            log_odds = documents.field(entry, "log_odds", float, source)
            joins.add(JoinEvidence(min(index, other), max(index, other), log_odds))
    return tuple(sorted(joins))


def _read_cells(records: Records, source: Path) -> Int[Tensor, "n 2"] | None:
    """Row and column of each piece, −1 for those in no cell, if any record has them."""
    if not any("row" in record or "col" in record for record in records):
        return None
    cells = [(record.get("row"), record.get("col")) for record in records]
    for pair in cells:
        if pair != (None, None) and not all(type(at) is int and 0 <= at < LIMITS.cells for at in pair):
            raise InputError(f"{source}: 'row' and 'col' must both be 0, 1, … or null, but are {pair[0]} and {pair[1]}")
    return torch.tensor([(-1, -1) if pair == (None, None) else pair for pair in cells])


def read_locks(path: Path | str, puzzle: Puzzle) -> Locks:
    """The poses of the pieces that have `"locked": true` in an assembly.json, or in that of a folder."""
    source = _document_path(path)
    assembly = read_assembly(source, puzzle)
    if assembly.puzzle.lattice != puzzle.lattice:
        grid = f"{assembly.puzzle.board.rows}x{assembly.puzzle.board.cols}"
        raise InputError(f"{source}: is for a grid of {grid}; pass --grid {grid}")
    records = documents.named_records(documents.read_document(source), assembly.puzzle.names, source) or []
    marks = ["locked" in record and documents.field(record, "locked", bool, source) for record in records]
    if not any(marks):
        raise InputError(f'{source}: marks no piece as locked; write "locked": true into the lines of those you know')
    # Extra pieces are not locked.
    place = {name: index for index, name in enumerate(assembly.puzzle.names)}
    poses = assembly.poses[torch.tensor([place.get(name, 0) for name in puzzle.names])]
    held = torch.tensor([name in place and marks[place[name]] for name in puzzle.names])
    if puzzle.lattice is not None:
        squares.check_locks(puzzle, poses, held, source)
    return Locks(held, poses)


def render(assembly: Answer, path: Path | str) -> None:
    """Write the assembled picture or a view of the object as a PNG; an older file is replaced in one go."""
    write_file(Path(path), Pictures(assembly).assembled)
