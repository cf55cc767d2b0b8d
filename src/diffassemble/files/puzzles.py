"""Puzzle folders: pieces/* under neutral names, puzzle.json, and the truth in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from diffassemble.core import Board, FragmentPieces, InputError, Poses, Puzzle
from diffassemble.files.atomic import fresh_folder
from diffassemble.files.documents import (
    FRAGMENTS,
    IMAGE,
    board_field,
    document_bytes,
    field,
    file_name_field,
    named_records,
    read_document,
)
from diffassemble.files.pictures import png_bytes, to_image
from diffassemble.fragments.files import (
    check_fragment_count,
    fragment_contents,
    fragment_files,
    read_fragment_folder,
    read_fragments,
)
from diffassemble.squares.files import check_count, check_pieces, load_pieces, read_pieces, split_picture

PUZZLE_FILES = ("puzzle.json", "truth.json", "pieces")


def write_puzzle(puzzle: Puzzle, folder: Path | str, overwrite: bool = False, ending: str = ".ply") -> None:
    """Write a puzzle folder, whole or not at all; the order of the files is the order of the pieces.

    Pictures are written as PNG, fragments by their `ending` as .ply, .obj, .stl or .glb, in their own unit.
    """
    folder = Path(folder)
    if isinstance(puzzle.pieces, FragmentPieces):
        check_fragment_count(len(puzzle), folder)
        contents = fragment_contents(puzzle, ending)
    else:
        check_pieces(puzzle.pictures, puzzle.names, folder)
        contents = _picture_contents(puzzle)
    with fresh_folder(folder, PUZZLE_FILES, overwrite) as part:
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
        document = read_document(path / "puzzle.json", (IMAGE, FRAGMENTS))
        if document["kind"] == FRAGMENTS:
            return read_fragment_folder(path, document)
        return _read_folder(path, document, board)
    if board is None and knows_board(path):
        return read_fragments(path)
    if board is None:
        raise InputError(f"{path}: does not tell its grid; pass --grid, such as --grid 6x6")
    pieces, names = read_pieces(path) if path.is_dir() else split_picture(path, board)
    check_count(len(pieces), board, path)
    return Puzzle(pieces, board, names)


def knows_board(path: Path | str) -> bool:
    """Whether this can be read without a board: a puzzle folder, which tells its own, or a folder of meshes."""
    path = Path(path)
    return _is_puzzle_folder(path) or (path.is_dir() and bool(fragment_files(path)))


def _is_puzzle_folder(path: Path) -> bool:
    try:
        return (path / "puzzle.json").exists()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def _picture_contents(puzzle: Puzzle) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files that make a folder of pictures."""
    names = [f"piece_{index:03d}.png" for index in range(len(puzzle))]
    for name, pixels in zip(names, puzzle.pixels, strict=True):
        yield f"pieces/{name}", png_bytes(to_image(pixels))
    board = {"rows": puzzle.board.rows, "cols": puzzle.board.cols}
    yield "puzzle.json", document_bytes({**board, "piece_size": puzzle.pictures.size, "pieces": names})
    if puzzle.truth is not None:
        places = placements(puzzle.board, puzzle.truth)
        records = [{"file": name, **place} for name, place in zip(names, places, strict=True)]
        yield "truth.json", document_bytes({**board, "pieces": records})


def placements(board: Board, poses: Poses) -> list[dict[str, int]]:
    """Row, column and turn of each piece, for a document."""
    cells, turns = board.snap(poses)
    return [
        {"row": cell // board.cols, "col": cell % board.cols, "turn": turn}
        for cell, turn in zip(cells.tolist(), turns.tolist(), strict=True)
    ]


def _read_folder(folder: Path, document: dict[str, Any], wanted: Board | None) -> Puzzle:
    source = folder / "puzzle.json"
    told = board_field(document, source)
    board = wanted or told
    names = tuple(file_name_field(name, source) for name in field(document, "pieces", list, source))
    if len(set(names)) != len(names) or not names:
        raise InputError(f"{source}: must name each of its pieces once")
    check_count(len(names), board, source)
    pieces = load_pieces([folder / "pieces" / name for name in names])
    if pieces.size != field(document, "piece_size", int, source):
        raise InputError(f"{source}: 'piece_size' is not {pieces.size}, the size of the files in pieces")
    check_pieces(pieces, names, folder)
    known = board == told and (folder / "truth.json").exists()
    return Puzzle(pieces, board, names, _read_truth(folder / "truth.json", names, board) if known else None)


def _read_truth(source: Path, names: tuple[str, ...], board: Board) -> Poses:
    document = read_document(source)
    if board_field(document, source) != board:
        raise InputError(f"{source}: is for another grid than puzzle.json")
    records = named_records(document, names, source)
    if records is None:
        raise InputError(f"{source}: does not tell the place of each piece of puzzle.json once")
    cells, turns = torch.tensor([_place(record, board, source) for record in records]).unbind(-1)
    if len(cells.unique()) != len(cells):
        raise InputError(f"{source}: puts two pieces on one cell")
    return board.poses(cells, turns)


def _place(record: dict[str, Any], board: Board, source: Path) -> tuple[int, int]:
    """Cell and turn of one record."""
    row, col, turn = (field(record, key, int, source) for key in ("row", "col", "turn"))
    if not (0 <= row < board.rows and 0 <= col < board.cols and 0 <= turn < 4):
        raise InputError(f"{source}: row {row}, col {col}, turn {turn} is not on the board")
    return row * board.cols + col, turn
