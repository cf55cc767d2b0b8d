"""Puzzle folders (pieces/* under neutral names, puzzle.json, the truth in a file of its own) and any other input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diffassemble.assembly.kind import OpenOptions
from diffassemble.core import Board, InputError, Puzzle
from diffassemble.io.archives import unpacked
from diffassemble.io.atomic import fresh_folder
from diffassemble.io.detect import detect
from diffassemble.io.documents import read_document
from diffassemble.kinds import KINDS, kind_of, named_kind
from diffassemble.kinds.compiling import compile_in_background

PUZZLE_FILES = ("puzzle.json", "truth.json", "pieces")


def open_input(path: Path | str, board: Board | None = None, **options: Any) -> Puzzle:
    """The puzzle in whatever `detect` recognises; `options` are those of `OpenOptions`.

    With a board one picture is a shuffled grid; that of a puzzle folder is replaced by it, and its truth left out.
    """
    path, known = Path(path), OpenOptions(board, **options)
    if known.kind is not None:
        named_kind(known.kind)
    found = detect(path, known)
    if found.form == "archive":
        with unpacked(path) as folder:
            return open_input(folder, board, **options)
    if found.form == "assembly":
        raise InputError(f"{path}: is an assembly, not pieces; give the folder that it was made of")
    if found.form == "puzzle folder":
        return read_puzzle(path, board)
    compile_in_background(found.kind)
    return named_kind(found.kind).files.read(found, known)


def read_puzzle(folder: Path | str, board: Board | None = None) -> Puzzle:
    """The puzzle of a puzzle folder; without the truth on a board that is not the folder's own."""
    document = read_document(Path(folder) / "puzzle.json")
    return KINDS[document["kind"]]().files.read_folder(Path(folder), document, board)


def write_puzzle(puzzle: Puzzle, folder: Path | str, overwrite: bool = False, ending: str = ".ply") -> None:
    """Write a puzzle folder, whole or not at all; the order of the files is the order of the pieces.

    Pictures are written as PNG, fragments by their `ending` as .ply, .obj, .stl or .glb, in their own unit.
    """
    contents = kind_of(puzzle).files.folder_contents(puzzle, Path(folder), ending)
    with fresh_folder(Path(folder), PUZZLE_FILES, overwrite) as part:
        (part / "pieces").mkdir()
        for name, content in contents:
            (part / name).write_bytes(content)
