"""Pieces that an assembly.json marks as locked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from diffassemble.files.assemblies import read_assembly
from diffassemble.files.documents import FRAGMENTS, IMAGE, named_records, read_document
from diffassemble.puzzle import InputError, Locks, Puzzle


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
