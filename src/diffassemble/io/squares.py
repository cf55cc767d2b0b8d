"""Pieces of a picture in files: loose ones, puzzle folders, and records of assemblies: row, column, quarter turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.core import Board, ImagePieces, InputError, Poses, Puzzle
from diffassemble.core.limits import LIMITS, check_memory
from diffassemble.io import documents
from diffassemble.io.documents import Records
from diffassemble.io.pictures import MOST_PIXELS, picture_size, png_bytes, read_picture, to_image
from diffassemble.squares.cut import check_pieces, tiles


def read_pieces(files: Sequence[Path]) -> ImagePieces:
    """Pictures of equal size as pieces; their sizes are checked before any is decoded."""
    width, height = picture_size(files[0])
    for file in files[1:]:
        if (size := picture_size(file)) != (width, height):
            found = "x".join(map(str, size))
            raise InputError(
                f"{file}: is {found} pixels, but {files[0].name} is {width}x{height}; pieces must be of equal size"
            )
    if len(files) * width * height > MOST_PIXELS:
        raise InputError(f"{files[0].parent}: pieces of more than {MOST_PIXELS // 10**6} megapixels; make them smaller")
    first = read_picture(files[0])
    pixels = first.new_empty(len(files), *first.shape)
    for place, file in zip(pixels, files, strict=True):
        picture = read_picture(file)
        if picture.shape != first.shape:
            raise InputError(f"{file}: is turned by its EXIF orientation, others are not; save it as it is shown")
        place.copy_(picture)
    pieces = ImagePieces(pixels)
    check_pieces(pieces, [file.name for file in files], files[0].parent)
    return pieces


def split_picture(path: Path | str, board: Board) -> tuple[ImagePieces, tuple[str, ...]]:
    """The cells of a picture that is a shuffled grid, row by row."""
    path = Path(path)
    picture = read_picture(path)
    height, width = picture.shape[-2:]
    if height % board.rows or width % board.cols:
        raise InputError(
            f"{path}: {width}x{height} pixels do not divide into {board.rows} rows and {board.cols} columns; "
            "pass the --grid it was made with"
        )
    names = tuple(f"{path.name}[{row},{col}]" for row in range(board.rows) for col in range(board.cols))
    pieces = ImagePieces(tiles(picture, board))
    check_pieces(pieces, names, path)
    return pieces, names


def check_room(pieces: ImagePieces, board: Board, source: Path) -> None:
    """Refuse boards with far too many cells, and wholes that exceed the memory, before anything is made of them."""
    grid, pixels = f"{board.rows}x{board.cols}", board.cells * pieces.height * pieces.width
    if board.cells > LIMITS.spare_cells * len(pieces):
        most = f"a grid may have {LIMITS.spare_cells} times as many cells as there are pieces"
        raise InputError(f"{source}: grid {grid} has {board.cells} cells for {len(pieces)} pieces; {most}")
    if pixels > MOST_PIXELS:
        most = f"{MOST_PIXELS // 10**6} megapixels"
        raise InputError(f"{source}: a whole of {grid} pieces has over {most}; make the pieces smaller")
    # 48 bytes a pixel: the pieces, and copies of them in all turns.
    check_memory(48 * pixels, f"{source}: a whole of {grid} pieces", "make the pieces smaller")


def check_count(count: int, board: Board, source: Path) -> None:
    """Refuse more pieces than the board has cells, and propose a board that holds them."""
    if count > board.cells:
        from diffassemble.squares.placement import roomy_board

        room = roomy_board(count)
        raise InputError(
            f"{source}: grid {board.rows}x{board.cols} has {board.cells} cells, got {count} pieces; "
            f"pass --grid {room.rows}x{room.cols}"
        )


def folder_contents(puzzle: Puzzle, folder: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files of a puzzle folder; pieces are PNG."""
    check_pieces(puzzle.pictures, puzzle.names, folder)
    names = [f"piece_{index:03d}.png" for index in range(len(puzzle))]
    for name, pixels in zip(names, puzzle.pixels, strict=True):
        yield f"pieces/{name}", png_bytes(to_image(pixels))
    size = {"piece_size": _size_field(puzzle.pictures)}
    places = None if puzzle.truth is None else placements(puzzle.board, puzzle.truth)
    yield from documents.puzzle_documents(puzzle.kind, names, size, places, board_fields(puzzle.board))


def _size_field(pieces: ImagePieces) -> int | list[int]:
    """The side of square pieces, or width and height, for a document."""
    return pieces.width if pieces.width == pieces.height else [pieces.width, pieces.height]


def read_folder(folder: Path, document: dict[str, Any], wanted: Board | None) -> Puzzle:
    """The puzzle of a puzzle folder; on a board other than its own without the truth."""
    source = folder / "puzzle.json"
    own = documents.board_field(document, source)
    board = wanted or own
    names = documents.piece_names(document, source)
    check_count(len(names), board, source)
    pieces = read_pieces([folder / "pieces" / name for name in names])
    if (size := _size_field(pieces)) != documents.field(document, "piece_size", type(size), source):
        raise InputError(f"{source}: 'piece_size' is not {size}, the size of the files in pieces")
    check_room(pieces, board, source)
    puzzle = Puzzle(pieces, board, names)
    return documents.with_truth(puzzle, folder, document, _read_truth) if board == own else puzzle


def _read_truth(puzzle: Puzzle, records: Records, source: Path) -> Poses:
    board = puzzle.board
    places = [tuple(documents.field(record, key, int, source) for key in ("row", "col", "turn")) for record in records]
    for row, col, turn in places:
        if not (0 <= row < board.rows and 0 <= col < board.cols and turn in board.piece_turns()):
            raise InputError(f"{source}: row {row}, col {col}, turn {turn} is not on the board")
    rows, cols, turns = torch.tensor(places).unbind(-1)
    cells = rows * board.cols + cols
    if len(cells.unique()) != len(cells):
        raise InputError(f"{source}: puts two pieces on one cell")
    return board.poses(cells, turns)


def board_fields(board: Board) -> dict[str, Any]:
    """A board, for a document."""
    return {"rows": board.rows, "cols": board.cols}


def placements(board: Board, poses: Poses) -> list[dict[str, Any]]:
    """Row, column and turn of each piece, for a document."""
    cells, turns = (found.tolist() for found in board.snap(poses))
    return [
        {"row": cell // board.cols, "col": cell % board.cols, "turn": turn}
        for cell, turn in zip(cells, turns, strict=True)
    ]


def matrices(board: Board, poses: Poses) -> Float[Tensor, "n 4 4"]:
    """The matrices of pieces on a board whose longer side spans [−1, 1]; cells have their own shape, z stays."""
    moves = torch.eye(4).repeat(len(poses), 1, 1)
    moves[:, :2, :2] = poses.rotation.cpu()
    moves[:, :2, 3] = poses.translation.cpu() * _stretch(board)
    # Adding zero turns −0 into 0.
    return moves + 0.0


def _stretch(board: Board) -> Float[Tensor, "2"]:
    """The factors from distances in cells to those in which the longer side of the whole spans [−1, 1]."""
    return torch.tensor([1.0, board.aspect]) * (max(board.rows, board.cols) / board.extent)


def fitted(puzzle: Puzzle, document: dict[str, Any], source: Path) -> Puzzle:
    """The puzzle on the board of an assembly's document, which may be its own after a turn; then without the truth."""
    board = documents.board_field(document, source)
    return puzzle if board == puzzle.board else replace(puzzle, lattice=board, truth=None)


def read_poses(puzzle: Puzzle, records: Records, source: Path) -> Poses:
    """The poses in the records of an assembly's document, one a piece in its order."""
    moves = torch.tensor([documents.matrix_field(record, source) for record in records])
    poses = Poses(moves[:, :2, :2].clone(), moves[:, :2, 3] / _stretch(puzzle.board))
    stated = [{key: record.get(key) for key in ("row", "col", "turn")} for record in records]
    if stated != placements(puzzle.board, poses):
        raise InputError(f"{source}: the row, col and turn of a piece do not agree with its matrix")
    return poses


def check_locks(puzzle: Puzzle, poses: Poses, held: Bool[Tensor, "n"], source: Path) -> None:
    """Refuse two pieces that are locked to one cell."""
    cells, _ = puzzle.board.snap(poses)
    if len(cells[held].unique()) != int(held.sum()):
        raise InputError(f"{source}: locks two pieces to one cell; unlock one of them")
