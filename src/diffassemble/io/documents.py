"""JSON documents of puzzles and assemblies, where a 4×4 'matrix' moves coordinates of a piece's file to the whole's."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from diffassemble.core import Board, InputError, Poses, Puzzle
from diffassemble.core.limits import LIMITS
from diffassemble.io.reading import read_json

SCHEMA = 1
DOCUMENTS = {"squares": "image", "outlines": "outlines", "fragments": "fragments"}
"""what documents call the kinds of pieces"""
ASSEMBLY_FILES = (
    "assembly.json",
    *("assembled.png", "steps.gif", "plan.png", "report.html", "assembled.glb", "matrices.txt", "posed"),
)
"""what an assembly folder consists of, its document first"""
_GRID = re.compile(r"([0-9]{1,3})(?:[xX×]([0-9]{1,3}))?")
_Value = TypeVar("_Value")
Records = list[dict[str, Any]]
"""one record a piece, in the order of the pieces"""
_WORDS: dict[type, str] = {
    int: "a whole number",
    str: "a text",
    list: "a list",
    float: "a number",
    dict: "a record",
    bool: "true or false",
}


def document_bytes(fields: Mapping[str, Any], kind: str) -> bytes:
    """The content of a document on pieces of that kind, items of lists on lines of their own; NaN is not JSON."""
    lines = []
    for key, value in {"schema": SCHEMA, "kind": DOCUMENTS[kind], **fields}.items():
        items = [json.dumps(item, allow_nan=False) for item in (value if isinstance(value, list) else [value])]
        text = "[\n    " + ",\n    ".join(items) + "\n  ]" if isinstance(value, list) else items[0]
        lines.append(f"  {json.dumps(key)}: {text}")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def puzzle_documents(
    kind: str,
    names: Sequence[str],
    fields: Mapping[str, Any],
    places: Sequence[Mapping[str, Any]] | None,
    shared: Mapping[str, Any] | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Names and contents of puzzle.json and, if places are known, truth.json; `shared` are fields of both."""
    yield "puzzle.json", document_bytes({**(shared or {}), **fields, "pieces": list(names)}, kind)
    if places is not None:
        records = [{"file": name, **place} for name, place in zip(names, places, strict=True)]
        yield "truth.json", document_bytes({**(shared or {}), "pieces": records}, kind)


def read_document(path: Path, kinds: Collection[str] = tuple(DOCUMENTS)) -> dict[str, Any]:
    """The fields of a document of this program on pieces of these kinds; its 'kind' is then one of these."""
    document = read_json(path, "document of this program")
    if not isinstance(document, dict) or "schema" not in document:
        raise InputError(f"{path}: was not written by diffassemble (it has no 'schema')")
    schema, word = document["schema"], document.get("kind")
    known = [kind for kind in kinds if DOCUMENTS[kind] == word]
    if type(schema) is not int or schema != SCHEMA or not known:
        words = " or ".join(repr(DOCUMENTS[kind]) for kind in kinds)
        found = f"schema {_shortened(schema)}, kind {_shortened(word)}"
        raise InputError(f"{path}: has {found}; this version reads schema {SCHEMA}, kind {words}")
    return {**document, "kind": known[0]}


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
    """The board of a document's rows and cols."""
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


def motion_fields(records: Sequence[object], path: Path, crooked: float = 1e-3) -> Float64[Tensor, "n 4 4"]:
    """The 'matrix' of each record; those that stretch, skew or mirror by more than `crooked` are refused."""
    moves = torch.tensor([matrix_field(record, path) for record in records], dtype=torch.double)
    rotation = moves[:, :3, :3]
    off = (rotation @ rotation.mT - torch.eye(3, dtype=torch.double)).abs().max() > crooked
    mirrored = (torch.linalg.det(rotation) < 0).any()
    if off or mirrored or not (moves[:, 3] == torch.tensor([0.0, 0, 0, 1])).all():
        raise InputError(f"{path}: a 'matrix' is not a turn and a shift")
    return moves


def matrices_of(
    poses: Poses, origins: Float[Tensor, "n d"], unit: float = 1.0, corner: Sequence[float | int] = ()
) -> Float64[Tensor, "n 4 4"]:
    """The matrix of each piece: x ↦ R (x − origin) + unit · t − corner, in 2 (z stays) or 3 dimensions."""
    rotation, translation, size = poses.rotation.cpu().double(), poses.translation.cpu().double(), origins.shape[1]
    moves = torch.eye(4, dtype=torch.double).repeat(len(poses), 1, 1)
    moves[:, :size, :size] = rotation
    shifted = unit * translation - torch.tensor(corner or (0,) * size, dtype=torch.double)
    moves[:, :size, 3] = shifted - _turned(rotation, origins)
    # Adding zero turns −0 into 0.
    return moves + 0.0


def poses_of(moves: Float64[Tensor, "n 4 4"], origins: Float[Tensor, "n d"], unit: float = 1.0) -> Poses:
    """The poses that matrices stand for: the inverse of `matrices_of` with corner 0."""
    size = origins.shape[1]
    rotation = moves[:, :size, :size]
    return Poses(rotation.float(), ((moves[:, :size, 3] + _turned(rotation, origins)) / unit).float())


def _turned(rotation: Float64[Tensor, "n d d"], vectors: Float[Tensor, "n d"]) -> Float64[Tensor, "n d"]:
    return (rotation @ vectors.cpu().double()[..., None])[..., 0]


def named_records(document: dict[str, Any], names: tuple[str, ...], path: Path) -> Records | None:
    """The records of a document's 'pieces' for these names, or none if they are of other pieces."""
    records = field(document, "pieces", list, path)
    named = {field(record, "file", str, path): record for record in records}
    if set(named) != set(names) or len(records) != len(names):
        return None
    return [named[name] for name in names]


def piece_names(document: dict[str, Any], path: Path) -> tuple[str, ...]:
    """The files that a puzzle.json names as its pieces: plain names, so that nothing outside its folder is read."""
    names = tuple(field(document, "pieces", list, path))
    for name in names:
        plain = isinstance(name, str) and name.isprintable() and name not in ("", ".", "..")
        if not plain or set(name) & set("/\\:") or len(name.encode()) > LIMITS.name_length:
            raise InputError(f"{path}: {_shortened(name)} is not the name of a file in pieces")
    if len(set(names)) != len(names) or not names:
        raise InputError(f"{path}: must name each of its pieces once")
    return names


def with_truth(
    puzzle: Puzzle, folder: Path, document: dict[str, Any], read: Callable[[Puzzle, Records, Path], Poses]
) -> Puzzle:
    """The puzzle with the truth of its folder's truth.json, if there is one, which must agree with puzzle.json."""
    source = folder / "truth.json"
    if not source.exists():
        return puzzle
    truth = read_document(source, (document["kind"],))
    for key in truth.keys() & document.keys() - {"pieces"}:
        if truth[key] != document[key]:
            raise InputError(f"{source}: {key!r} is {_shortened(truth[key])}, but {document[key]} in puzzle.json")
    records = named_records(truth, puzzle.names, source)
    if records is None:
        raise InputError(f"{source}: does not give the place of each piece of puzzle.json once")
    return replace(puzzle, truth=read(puzzle, records, source))
