"""Puzzle folders: pieces/* under neutral names, puzzle.json, and the truth in a file of its own."""

from __future__ import annotations

from pathlib import Path

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.files.atomic import fresh_folder
from diffassemble.files.documents import read_document
from diffassemble.kinds import DOCUMENTS, KINDS, kind_of, recognise

PUZZLE_FILES = ("puzzle.json", "truth.json", "pieces")


def write_puzzle(puzzle: Puzzle, folder: Path | str, overwrite: bool = False, ending: str = ".ply") -> None:
    """Write a puzzle folder, whole or not at all; the order of the files is the order of the pieces.

    Pictures are written as PNG, fragments by their `ending` as .ply, .obj, .stl or .glb, in their own unit.
    """
    contents = kind_of(puzzle).folder_contents(puzzle, Path(folder), ending)
    with fresh_folder(Path(folder), PUZZLE_FILES, overwrite) as part:
        (part / "pieces").mkdir()
        for name, content in contents:
            (part / name).write_bytes(content)


def read_puzzle(path: Path | str, board: Board | None = None) -> Puzzle:
    """A puzzle from a puzzle folder, a folder of meshes or of equal square pictures, or a shuffled grid as a picture.

    Pieces of a picture need a board, which only a puzzle folder knows. A board given for a puzzle folder replaces
    the one it tells, and then the truth, which belongs to that one, is left out.
    """
    path = Path(path)
    if _is_puzzle_folder(path):
        document = read_document(path / "puzzle.json", DOCUMENTS)
        return KINDS[DOCUMENTS[document["kind"]]]().read_folder(path, document, board)
    return recognise(path, board).read_loose(path, board)


def knows_board(path: Path | str) -> bool:
    """Whether this can be read without a board: a puzzle folder, which tells its own, or a folder of meshes."""
    path = Path(path)
    return _is_puzzle_folder(path) or recognise(path).name != "squares"


def _is_puzzle_folder(path: Path) -> bool:
    try:
        return (path / "puzzle.json").exists()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
