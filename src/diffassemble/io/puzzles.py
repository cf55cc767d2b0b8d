"""Puzzle folders (pieces/* under neutral names, puzzle.json, the truth in a file of its own) and any other input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diffassemble.assembly.kind import OpenOptions
from diffassemble.core import Board, InputError, Puzzle
from diffassemble.io.archives import is_zip, unpacked
from diffassemble.io.atomic import fresh_folder
from diffassemble.io.documents import read_document
from diffassemble.io.reading import check_name, reason
from diffassemble.kinds import DOCUMENTS, KINDS, kind_of, recognise

PUZZLE_FILES = ("puzzle.json", "truth.json", "pieces")


def open_input(path: Path | str, board: Board | None = None, **options: Any) -> Puzzle:
    """The puzzle in whatever a user may pass.

    A puzzle folder; a folder or zip file of meshes, of pictures of equal size, whose grid is found out, of cut-outs,
    pictures with masks or photographs of pieces; one photograph, or several by `more`; or, with a board, one picture
    that is a shuffled grid. A board given for a puzzle folder replaces the one it tells, and then
    the truth, which belongs to that one, is left out. `options` are those of `OpenOptions`.
    """
    return _opened(Path(path), OpenOptions(board, **options))


def _opened(path: Path, options: OpenOptions) -> Puzzle:
    if is_zip(path):
        with unpacked(path) as folder:
            return _opened(folder, options)
    for one in (path, *options.more, *filter(None, (options.colours,))):
        _check_there(one)
    known = (path / "puzzle.json").exists() and not options.more
    return read_puzzle(path, options.board) if known else recognise(path, options).read_loose(path, options)


def _check_there(path: Path) -> None:
    """Refuse what is not there, or nobody may look at; and names that no document could tell."""
    try:
        path.stat()
        path.is_dir() and (path / "puzzle.json").exists()
    except FileNotFoundError as error:
        raise InputError(f"{check_name(path)!s}: there is no such file or folder") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!a}: cannot be read ({reason(error)})") from error
    check_name(path)


def read_puzzle(folder: Path | str, board: Board | None = None) -> Puzzle:
    """The puzzle of a puzzle folder; without the truth on a board that is not the folder's own."""
    document = read_document(Path(folder) / "puzzle.json", DOCUMENTS)
    return KINDS[DOCUMENTS[document["kind"]]]().read_folder(Path(folder), document, board)


def write_puzzle(puzzle: Puzzle, folder: Path | str, overwrite: bool = False, ending: str = ".ply") -> None:
    """Write a puzzle folder, whole or not at all; the order of the files is the order of the pieces.

    Pictures are written as PNG, fragments by their `ending` as .ply, .obj, .stl or .glb, in their own unit.
    """
    contents = kind_of(puzzle).folder_contents(puzzle, Path(folder), ending)
    with fresh_folder(Path(folder), PUZZLE_FILES, overwrite) as part:
        (part / "pieces").mkdir()
        for name, content in contents:
            (part / name).write_bytes(content)
