"""JSON documents: one record a line when written, distrusted when read; and grids as people write them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import Float64
from torch import Tensor

from diffassemble.core import Board, InputError
from diffassemble.core.limits import LIMITS
from diffassemble.io.reading import read_json

SCHEMA = 1
DOCUMENTS = {"image": "squares", "outlines": "outlines", "fragments": "fragments"}
"""the kinds of pieces by what documents call them"""
ASSEMBLY_FILES = (
    "assembly.json",
    *("assembled.png", "steps.gif", "plan.png", "report.html", "assembled.glb", "matrices.txt", "posed"),
)
"""what an assembly folder is made of, its document first"""
_CROOKED = 1e-3
_GRID = re.compile(r"([0-9]{1,3})(?:[xX×]([0-9]{1,3}))?")
_Value = TypeVar("_Value")
_WORDS: dict[type, str] = {
    int: "a whole number",
    str: "a text",
    list: "a list",
    float: "a number",
    dict: "a record",
    bool: "true or false",
}


def document_bytes(fields: Mapping[str, Any], kind: str) -> bytes:
    """The content of a document file on pieces of that kind: the same fields give the same bytes."""
    head = {"schema": SCHEMA, "kind": kind, **fields}
    lines = ",\n".join(f"  {json.dumps(key)}: {_spread(value)}" for key, value in head.items())
    return f"{{\n{lines}\n}}\n".encode()


def read_document(path: Path, kinds: Collection[str]) -> dict[str, Any]:
    """The fields of a document that this program wrote on pieces of one of these kinds; anything else is refused."""
    document = read_json(path, "document of this program")
    if not isinstance(document, dict) or "schema" not in document:
        raise InputError(f"{path}: was not written by diffassemble (it has no 'schema')")
    told = document["schema"], document.get("kind")
    if type(told[0]) is not int or told[0] != SCHEMA or not isinstance(told[1], str) or told[1] not in kinds:
        found = f"schema {_shortened(told[0])}, kind {_shortened(told[1])}"
        wanted = " or ".join(map(repr, kinds))
        raise InputError(f"{path}: has {found}; this version reads schema {SCHEMA}, kind {wanted}")
    return document


def field(record: object, key: str, kind: type[_Value], path: Path) -> _Value:
    """One field of a record, of the kind that it must have; a whole number also passes for a number."""
    value = record.get(key) if isinstance(record, dict) else None
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise InputError(f"{path}: {key!r} must be {_WORDS[kind]}, but is {_shortened(value)}")
    return value


def _shortened(value: object) -> str:
    text = repr(value)
    return text[:37] + "…" if text[40:] else text


def board_field(document: dict[str, Any], path: Path) -> Board:
    """The board that a document tells by its rows and cols."""
    rows, cols = field(document, "rows", int, path), field(document, "cols", int, path)
    if min(rows, cols) < 1 or rows * cols > LIMITS.cells:
        raise InputError(f"{path}: {rows} rows and {cols} cols make no board")
    return Board(rows, cols)


def parse_grid(text: str) -> Board:
    """`4x7` is 4 rows of 7 columns; `6` is 6x6; up to 999x999."""
    match = _GRID.fullmatch(text.strip())
    rows, cols = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if rows < 1 or cols < 1:
        raise InputError(f"grid {text!r} is not understood; write rows x columns, such as 6x6 or 4x7")
    return Board(rows, cols)


def matrix_field(record: object, path: Path) -> list[list[float]]:
    """The 4×4 numbers of one record's 'matrix'."""
    rows = field(record, "matrix", list, path)
    sound = len(rows) == 4 and all(isinstance(row, list) and len(row) == 4 for row in rows)
    if not sound or not all(type(value) in (int, float) and math.isfinite(value) for row in rows for value in row):
        raise InputError(f"{path}: a 'matrix' must be 4 rows of 4 numbers")
    return [[float(value) for value in row] for row in rows]


def motion_fields(records: Sequence[object], path: Path) -> Float64[Tensor, "n 4 4"]:
    """The 'matrix' of each record; those that stretch, skew or mirror are refused."""
    moves = torch.tensor([matrix_field(record, path) for record in records], dtype=torch.double)
    rotation = moves[:, :3, :3]
    crooked = (rotation @ rotation.mT - torch.eye(3, dtype=torch.double)).abs().max() > _CROOKED
    mirrored = (torch.linalg.det(rotation) < 0).any()
    if crooked or mirrored or not (moves[:, 3] == torch.tensor([0.0, 0, 0, 1])).all():
        raise InputError(f"{path}: a 'matrix' is not a turn and a shift")
    return moves


def named_records(document: dict[str, Any], names: tuple[str, ...], path: Path) -> list[dict[str, Any]] | None:
    """The records of a document's 'pieces' in the order of these names, or none if they are of other pieces."""
    records = field(document, "pieces", list, path)
    named = {field(record, "file", str, path): record for record in records}
    if set(named) != set(names) or len(records) != len(names):
        return None
    return [named[name] for name in names]


def piece_names(document: dict[str, Any], path: Path) -> tuple[str, ...]:
    """The files that a puzzle.json names as its pieces."""
    names = tuple(_file_name(name, path) for name in field(document, "pieces", list, path))
    if len(set(names)) != len(names) or not names:
        raise InputError(f"{path}: must name each of its pieces once")
    return names


def truth_records(document: dict[str, Any], names: tuple[str, ...], path: Path) -> list[dict[str, Any]]:
    """The records of a truth.json in the order of these names."""
    records = named_records(document, names, path)
    if records is None:
        raise InputError(f"{path}: does not tell the place of each piece of puzzle.json once")
    return records


def _file_name(name: object, path: Path) -> str:
    """A plain file name, so that a foreign document reaches nothing outside its folder."""
    if (
        not isinstance(name, str)
        or not name.isprintable()
        or name in ("", ".", "..")
        or set(name) & set("/\\:")
        or len(name.encode()) > LIMITS.name_length
    ):
        raise InputError(f"{path}: {_shortened(name)} is not the name of a file in pieces")
    return name


def _spread(value: object) -> str:
    """JSON with the items of a list on lines of their own; NaN is not JSON."""
    if not isinstance(value, list):
        return json.dumps(value, allow_nan=False)
    return "[\n" + ",\n".join(f"    {json.dumps(item, allow_nan=False)}" for item in value) + "\n  ]"
