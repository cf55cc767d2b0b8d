"""Puzzle folders: pieces/*.png under neutral names, puzzle.json, and the truth in a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from diffassemble.files.atomic import fresh_folder
from diffassemble.files.documents import board_field, document_bytes, field, read_document
from diffassemble.files.images import png_bytes, to_image
from diffassemble.files.pieces import check_count, check_pieces, load_pieces, read_pieces, split_picture
from diffassemble.geometry import Poses
from diffassemble.puzzle import Board, InputError, Puzzle

PUZZLE_FILES = ("puzzle.json", "truth.json", "pieces")


def write_puzzle(puzzle: Puzzle, folder: Path | str, overwrite: bool = False) -> None:
    """Write a puzzle folder, whole or not at all; the order of the files is the order of the pieces."""
    folder = Path(folder)
    check_pieces(puzzle.pictures, puzzle.names, folder)
    names = [f"piece_{index:03d}.png" for index in range(len(puzzle))]
    board = {"rows": puzzle.board.rows, "cols": puzzle.board.cols}
    with fresh_folder(folder, PUZZLE_FILES, overwrite) as part:
        (part / "pieces").mkdir()
        for name, pixels in zip(names, puzzle.pixels, strict=True):
            (part / "pieces" / name).write_bytes(png_bytes(to_image(pixels)))
        content = document_bytes({**board, "piece_size": puzzle.pictures.size, "pieces": names})
        (part / "puzzle.json").write_bytes(content)
        if puzzle.truth is not None:
            places = placements(puzzle.board, puzzle.truth)
            records = [{"file": name, **place} for name, place in zip(names, places, strict=True)]
            (part / "truth.json").write_bytes(document_bytes({**board, "pieces": records}))


def read_puzzle(path: Path | str, board: Board | None = None) -> Puzzle:
    """A puzzle from a puzzle folder, a folder of equal square pictures, or a picture that is a shuffled grid.

    Only a puzzle folder knows its board; the others need one. A board given for a puzzle folder replaces
    the one it tells, and then the truth, which belongs to that one, is left out.
    """
    path = Path(path)
    if knows_board(path):
        return _read_folder(path, board)
    if board is None:
        raise InputError(f"{path}: does not tell its grid; pass --grid, such as --grid 6x6")
    pieces, names = read_pieces(path) if path.is_dir() else split_picture(path, board)
    check_count(len(pieces), board, path)
    return Puzzle(pieces, board, names)


def knows_board(path: Path | str) -> bool:
    """Whether this is a puzzle folder, which tells its rows and columns."""
    try:
        return (Path(path) / "puzzle.json").exists()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def placements(board: Board, poses: Poses) -> list[dict[str, int]]:
    """Row, column and turn of each piece, for a document."""
    cells, turns = board.snap(poses)
    return [
        {"row": cell // board.cols, "col": cell % board.cols, "turn": turn}
        for cell, turn in zip(cells.tolist(), turns.tolist(), strict=True)
    ]


def _read_folder(folder: Path, wanted: Board | None) -> Puzzle:
    source = folder / "puzzle.json"
    document = read_document(source)
    told = board_field(document, source)
    board = wanted or told
    names = tuple(_piece_name(name, source) for name in field(document, "pieces", list, source))
    if len(set(names)) != len(names) or not names:
        raise InputError(f"{source}: must name each of its pieces once")
    check_count(len(names), board, source)
    pieces = load_pieces([folder / "pieces" / name for name in names])
    if pieces.size != field(document, "piece_size", int, source):
        raise InputError(f"{source}: 'piece_size' is not {pieces.size}, the size of the files in pieces")
    check_pieces(pieces, names, folder)
    known = board == told and (folder / "truth.json").exists()
    return Puzzle(pieces, board, names, _read_truth(folder / "truth.json", names, board) if known else None)


def _piece_name(name: object, source: Path) -> str:
    """A plain file name, so that a foreign document reaches nothing outside its folder."""
    if not isinstance(name, str) or not name.isprintable() or name in ("", ".", "..") or set(name) & set("/\\:"):
        raise InputError(f"{source}: {name!r} is not the name of a file in pieces")
    return name


def _read_truth(source: Path, names: tuple[str, ...], board: Board) -> Poses:
    document = read_document(source)
    if board_field(document, source) != board:
        raise InputError(f"{source}: is for another grid than puzzle.json")
    records = field(document, "pieces", list, source)
    places = {field(record, "file", str, source): _place(record, board, source) for record in records}
    if set(places) != set(names) or len(records) != len(names):
        raise InputError(f"{source}: does not tell the place of each piece of puzzle.json once")
    cells, turns = torch.tensor([places[name] for name in names]).unbind(-1)
    if len(cells.unique()) != len(cells):
        raise InputError(f"{source}: puts two pieces on one cell")
    return board.poses(cells, turns)


def _place(record: dict[str, Any], board: Board, source: Path) -> tuple[int, int]:
    """Cell and turn of one record."""
    row, col, turn = (field(record, key, int, source) for key in ("row", "col", "turn"))
    if not (0 <= row < board.rows and 0 <= col < board.cols and 0 <= turn < 4):
        raise InputError(f"{source}: row {row}, col {col}, turn {turn} is not on the board")
    return row * board.cols + col, turn
