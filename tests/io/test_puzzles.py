"""What is written as a puzzle can be read back, foreign folders do no harm, loose pieces are read or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, ImagePieces, InputError, Puzzle
from diffassemble.io.pictures import to_levels, write_picture
from diffassemble.io.puzzles import open_input as read_puzzle
from diffassemble.io.puzzles import write_puzzle
from diffassemble.io.squares import check_count, split_picture
from diffassemble.squares.cut import check_pieces, cut_picture

LOOSE = Board(2, 3)


def edit(path: Path, **changes: Any) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, **changes}))


def refused(folder: Path, words: str, *board: Board, read: Callable[..., Any] = read_puzzle) -> None:
    with pytest.raises(InputError) as caught:
        read(folder, *board)
    assert words in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.fixture
def written(puzzle: Puzzle, tmp_path: Path) -> Path:
    write_puzzle(puzzle, tmp_path / "a")
    return tmp_path / "a"


@pytest.mark.parametrize(
    ("rows", "cols", "missing", "erode", "turn"), [(1, 4, 0.0, 0, True), (5, 5, 0.3, 2, True), (3, 2, 0.3, 0, False)]
)
def test_round_trip(tmp_path: Path, rows: int, cols: int, missing: float, erode: int, turn: bool) -> None:
    generator = torch.Generator().manual_seed(rows)
    picture = torch.rand(3, 9 * rows, 9 * cols, generator=generator)
    puzzle = cut_picture(picture, Board(rows, cols), generator, turn=turn, missing=missing, erode=erode)
    write_puzzle(puzzle, tmp_path / "out")
    again = read_puzzle(tmp_path / "out")
    assert (again.board, again.names) == (puzzle.board, puzzle.names)
    assert torch.equal(to_levels(again.pieces.pixels), to_levels(puzzle.pieces.pixels))
    assert torch.equal(again.truth.rotation, puzzle.truth.rotation)
    assert torch.equal(again.truth.translation, puzzle.truth.translation)


def test_pixels_are_exact_and_the_same_bytes_come_again(puzzle: Puzzle, written: Path, tmp_path: Path) -> None:
    assert torch.equal(read_puzzle(written).pieces.pixels, puzzle.pieces.pixels)
    write_puzzle(read_puzzle(written), tmp_path / "b")
    for file in (path for path in written.rglob("*") if path.is_file()):
        assert file.read_bytes() == (tmp_path / "b" / file.relative_to(written)).read_bytes()
    document = json.loads((written / "puzzle.json").read_text())
    names = [f"piece_{index:03d}.png" for index in range(12)]
    assert document == {"schema": 1, "kind": "image", "rows": 3, "cols": 4, "piece_size": 8, "pieces": names}
    with pytest.raises(InputError, match="identical"):
        write_puzzle(puzzle.reordered(torch.tensor([0, 1, 2, 2])), tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_folders_and_shuffled_pictures_need_a_grid(
    puzzle: Puzzle, written: Path, picture: Tensor, tmp_path: Path
) -> None:
    write_picture(picture, tmp_path / "a.png")
    refused(tmp_path / "a.png", "pass --grid")
    assert read_puzzle(tmp_path / "a.png", Board(3, 4)).pieces.pixels.shape == (12, 3, 8, 8)
    refused(tmp_path / "none.png", "there is no such file", Board(3, 4))
    loose = written / "pieces"
    read = read_puzzle(loose, Board(3, 4))
    assert torch.equal(read.pieces.pixels, puzzle.pieces.pixels)
    assert read.truth is None
    assert read_puzzle(loose, Board(4, 4)).board.cells == 16
    refused(loose, "grid 2x5 has 10 cells, got 12 pieces; pass --grid 4x3", Board(2, 5))
    # A grid that is given replaces that of the folder, and then the truth is left out.
    assert read_puzzle(written, Board(3, 4)).truth is not None
    other = read_puzzle(written, Board(4, 3))
    assert (other.board, other.truth) == (Board(4, 3), None)
    refused(written, "grid 2x2 has 4 cells, got 12 pieces", Board(2, 2))


def test_piece_names_stay_in_their_folder(puzzle: Puzzle, written: Path) -> None:
    write_picture(puzzle.pieces.pixels[0], written / "secret.png")
    names = [f"piece_{index:03d}.png" for index in range(11)]
    for name in ("../secret.png", "/etc/passwd", "a/b.png", "..", "", "c:\\x.png", "a\0b.png", 7, None, ["x"]):
        edit(written / "puzzle.json", pieces=[*names, name])
        refused(written, "is not the name of a file in pieces")


def test_changed_puzzle_file(written: Path) -> None:
    content = (written / "puzzle.json").read_text()
    changes: tuple[tuple[dict[str, Any], str], ...] = (
        ({"schema": 9}, "this version reads schema 1"),
        ({"rows": "3"}, "'rows' must be a whole number"),
        ({"rows": 10**9, "cols": 10**9}, "make no board"),
        ({"rows": 2}, "grid 2x4 has 8 cells, got 12 pieces"),
        ({"pieces": "piece_000.png"}, "'pieces' must be a list"),
        ({"pieces": []}, "must name each of its pieces once"),
        ({"pieces": ["piece_000.png"] * 2}, "must name each of its pieces once"),
        ({"pieces": ["piece_000.png", "piece_777.png"]}, "piece_777.png: cannot be read (No such file"),
        ({"piece_size": 9}, "'piece_size' is not 8"),
    )
    for change, words in changes:
        (written / "puzzle.json").write_text(json.dumps({**json.loads(content), **change}))
        refused(written, words)


def test_changed_truth_file(written: Path) -> None:
    path = written / "truth.json"
    first, second, *others = json.loads(path.read_text())["pieces"]
    for records, words in (
        ([first, *others], "each piece of puzzle.json once"),
        ([first, second, *others, first], "each piece of puzzle.json once"),
        ([{**first, "file": "other.png"}, second, *others], "each piece of puzzle.json once"),
        ([{**first, "row": 3}, second, *others], "is not on the board"),
        ([{**first, "turn": -1}, second, *others], "is not on the board"),
        ([{**first, "turn": 0.5}, second, *others], "'turn' must be a whole number"),
        ([{**second, "file": first["file"]}, second, *others], "two pieces on one cell"),
        ([7, second, *others], "'file' must be a text"),
    ):
        edit(path, pieces=records)
        refused(written, words)
    edit(path, rows=4)
    refused(written, "truth.json: 'rows' is 4, but 3 in puzzle.json")


@pytest.fixture
def tiles() -> Tensor:
    """Six different 8-pixel pieces."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (6, 3, 8, 8), generator=generator).float() / 255


def write(folder: Path, tiles: Tensor) -> Path:
    for index, tile in enumerate(tiles):
        write_picture(tile, folder / f"tile{index}.png")
    return folder


def test_folder_of_pictures(tiles: Tensor, tmp_path: Path) -> None:
    refused(tmp_path, "has no pictures")
    refused(tmp_path / "none", "there is no such file")
    write(tmp_path, tiles[:1])
    refused(tmp_path, "needs at least 2", LOOSE)
    write(tmp_path, tiles)
    (tmp_path / "notes.txt").write_text("ignored")
    (tmp_path / ".hidden.png").write_text("ignored")
    (tmp_path / "folder.png").mkdir()
    read = read_puzzle(tmp_path, LOOSE)
    assert torch.equal(read.pixels, tiles)
    assert read.names == tuple(f"tile{index}.png" for index in range(6))


def test_identical_pieces_however_turned_are_refused(tmp_path: Path, tiles: Tensor) -> None:
    for turns in range(4):
        tiles[5] = tiles[2].rot90(turns, (-2, -1))
        refused(write(tmp_path, tiles), "tile2.png and tile5.png are identical", LOOSE)
    # Mirrored and nearly equal ones are different.
    tiles[5] = tiles[2].flip(-1)
    tiles[4] = tiles[2]
    tiles[4, 0, 0, 0] = (tiles[4, 0, 0, 0] + 1 / 255) % 1
    assert len(read_puzzle(write(tmp_path, tiles), LOOSE)) == 6


def test_flat_pieces(tiles: Tensor) -> None:
    """Some flat pieces are a clear sky; nothing but flat pieces is no puzzle."""
    tiles[1:5] = 0.5
    names = [str(index) for index in range(6)]
    check_pieces(ImagePieces(tiles), names, Path("x"))
    tiles[:] = torch.rand(6, 3, 1, 1)
    with pytest.raises(InputError, match="x: every piece is one flat colour"):
        check_pieces(ImagePieces(tiles), names, Path("x"))


@settings(max_examples=50)
@given(st.integers(2, 2000))
def test_the_proposed_grid_has_room_and_is_near_the_square(count: int) -> None:
    with pytest.raises(InputError, match=f"grid 1x1 has 1 cells, got {count} pieces; pass --grid") as caught:
        check_count(count, Board(1, 1), Path("x"))
    rows, cols = map(int, str(caught.value).split("--grid ")[1].split("x"))
    assert count <= rows * cols <= 1.5 * count + 1
    assert cols <= rows <= 2.5 * cols or count < 4
    check_count(count, Board(rows, cols), Path("x"))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 6), st.integers(2, 6), st.integers(4, 9))
def test_a_picture_splits_row_by_row(tmp_path_factory: pytest.TempPathFactory, rows: int, cols: int, size: int) -> None:
    path = tmp_path_factory.mktemp("grid") / "grid.png"
    generator = torch.Generator().manual_seed(rows + 10 * cols + 100 * size)
    picture = torch.randint(0, 256, (3, rows * size, cols * size), generator=generator).float() / 255
    write_picture(picture, path)
    pieces, names = split_picture(path, Board(rows, cols))
    for index, (tile, name) in enumerate(zip(pieces.pixels, names, strict=True)):
        row, col = divmod(index, cols)
        assert name == f"grid.png[{row},{col}]"
        assert torch.equal(tile, picture[:, row * size : (row + 1) * size, col * size : (col + 1) * size])


def test_grids_that_do_not_fit_the_picture(tmp_path: Path, picture: Tensor) -> None:
    write_picture(picture, tmp_path / "a.png")
    for grid, words in (
        (Board(5, 4), "32x24 pixels do not divide into 5 rows and 4 columns; pass the --grid"),
        (Board(3, 5), "do not divide"),
        (Board(12, 16), "pieces are 2 pixels wide"),
    ):
        refused(tmp_path / "a.png", words, grid, read=split_picture)
