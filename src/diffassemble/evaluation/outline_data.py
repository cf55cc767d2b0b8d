"""Flat pieces whose places are known: puzzle folders, and pictures of pieces with a table of where they belong.

A table `truth.csv` names the pieces by `id`, the names of their files without ending, and tells one of these:

- `x,y,degrees`: turn the picture clockwise by `degrees` about its middle, and put that to (x, y), in pixels.
- `row,column,upright`: jigsaw pieces on a lattice; a picture turned back, anticlockwise, by `upright` is upright.
- `position,turned`: strips from left to right; `turned` is 180 where the picture is upside down.

A table that bears the name of a photograph beside it, such as `sheet.csv` of `sheet.jpg`, tells of the pieces that lie
in that: `x,y`, the centre of a piece's area there, and `row,column,upright`.

Where only rows, columns or positions are told, how far apart pieces lie is not known; see `evaluation.outlines`.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import InputError, Poses, Puzzle
from diffassemble.core.poses import plane_rotations
from diffassemble.io.documents import DOCUMENTS, read_document
from diffassemble.io.photo.segmentation import find_pieces
from diffassemble.io.pictures import is_picture, read_picture
from diffassemble.io.puzzles import open_input, read_puzzle

Layout = Literal["free", "lattice", "strips"]
"""whether places are told in pixels, or by rows and columns, or by their order"""
TABLE = "truth.csv"
_COLUMNS: dict[Layout, tuple[str, ...]] = {
    "lattice": ("row", "column", "upright"),
    "strips": ("position", "turned"),
    "free": ("x", "y", "degrees"),
}


def find_recorded(folder: Path) -> list[Path]:
    """The puzzles with known places in a folder: itself, tables of its photographs, or folders that are some."""
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error
    if _is_recorded(folder):
        return [folder]
    tables = sorted(folder.glob("*.csv")) if folder.is_dir() else []
    return [path for path in inner if _is_recorded(path)] or [table for table in tables if _photo_of(table)]


def _photo_of(table: Path) -> Path | None:
    """The photograph whose pieces a table tells of."""
    return next((file for file in sorted(table.parent.glob(f"{table.stem}.*")) if is_picture(file)), None)


def _is_recorded(folder: Path) -> bool:
    if (folder / TABLE).is_file():
        return True
    source = folder / "puzzle.json"
    return source.is_file() and DOCUMENTS[read_document(source, DOCUMENTS)["kind"]] == "outlines"


def read_recorded(folder: Path) -> tuple[Puzzle, Layout]:
    """A puzzle with its truth, and how that tells places."""
    if folder.suffix == ".csv" and (photo := _photo_of(folder)) is not None:
        return _read_photographed(folder, photo)
    if not (folder / TABLE).is_file():
        puzzle = read_puzzle(folder)
        if puzzle.truth is None:
            raise InputError(f"{folder}: has no truth.json, so answers can't be scored; cut a puzzle, or leave it out")
        return puzzle, "free"
    rows = _rows(folder / TABLE)
    layout = next((name for name, columns in _COLUMNS.items() if set(columns) <= set(rows[0])), None)
    if layout is None:
        told = "; ".join(",".join(("id", *columns)) for columns in _COLUMNS.values())
        raise InputError(f"{folder / TABLE}: has columns {','.join(rows[0])}; it must have {told}")
    puzzle = open_input(folder, kind="outlines")
    wanted = {row["id"]: row for row in rows}
    stems = [Path(name).stem for name in puzzle.names]
    absent = [stem for stem in stems if stem not in wanted]
    if absent:
        raise InputError(f"{folder / TABLE}: tells no place of {absent[0]} and {len(absent) - 1} more; add them")
    numbers = _numbers([wanted[stem] for stem in stems], _COLUMNS[layout], folder / TABLE)
    return replace(puzzle, truth=_truth(puzzle, layout, numbers)), layout


def _read_photographed(table: Path, photo: Path) -> tuple[Puzzle, Layout]:
    """The pieces that were found in a photograph, each with what the table tells of the one that lies there.

    Pieces that were not found are missing.
    """
    rows = _rows(table)
    told = _numbers(rows, ("x", "y", *_COLUMNS["lattice"]), table)
    puzzle = open_input(photo, kind="outlines", sheet="none")
    found = [piece.centre for piece, _ in find_pieces(photo, read_picture(photo)).outlined]
    centres = torch.tensor(found).double()
    apart, nearest = torch.cdist(centres, told[:, :2]).min(1)
    strange = bool((apart > puzzle.outlines.widths / 2).any()) or len(set(nearest.tolist())) < len(found)
    if len(found) != len(puzzle) or strange:
        raise InputError(f"{photo}: things were found at places where {table} tells of no piece")
    numbers = told[nearest][:, 2:]
    return replace(puzzle, truth=_truth(puzzle, "lattice", numbers)), "lattice"


def _rows(source: Path) -> list[dict[str, str]]:
    try:
        with source.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{source}: cannot be read ({error})") from error
    if not rows or "id" not in rows[0]:
        raise InputError(f"{source}: is no table of pieces; its first column must be id")
    return rows


def _numbers(rows: Sequence[dict[str, str]], columns: Sequence[str], source: Path) -> Float[Tensor, "n columns"]:
    try:
        return torch.tensor([[float(row[column]) for column in columns] for row in rows], dtype=torch.double)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: {', '.join(columns)} must be numbers in every line") from error


def _truth(puzzle: Puzzle, layout: Layout, numbers: Float[Tensor, "n columns"]) -> Poses:
    """Where the table puts the pieces; steps of a lattice and from strip to strip are the mean width of a piece."""
    pieces = puzzle.outlines
    if layout == "free":
        places, degrees = numbers[:, :2], numbers[:, 2]
        rotation = plane_rotations(degrees.deg2rad())
        sizes = torch.tensor([[texture.shape[2], texture.shape[1]] for texture in pieces.textures]).double()
        places = places + (rotation @ (pieces.origins.double() - sizes / 2)[..., None])[..., 0]
    elif layout == "lattice":
        rotation = plane_rotations(-numbers[:, 2].deg2rad())
        places = numbers[:, [1, 0]] * float(pieces.areas.sqrt().mean())
    else:
        rotation = plane_rotations(-numbers[:, 1].deg2rad())
        places = torch.stack([numbers[:, 0], torch.zeros(len(numbers))], 1) * float(pieces.widths.mean())
    return Poses(rotation.float(), places.float())
