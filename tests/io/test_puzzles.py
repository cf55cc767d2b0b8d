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
from diffassemble.io.squares import check_count, read_pieces, split_picture
from diffassemble.squares.cut import check_pieces, cut_picture


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


@pytest.mark.parametrize(("rows", "cols"), [(1, 4), (3, 2), (5, 5)])
@pytest.mark.parametrize(("missing", "erode", "turn"), [(0.0, 0, True), (0.3, 2, True), (0.3, 0, False)])
def test_round_trip(tmp_path: Path, rows: int, cols: int, missing: float, erode: int, turn: bool) -> None:
    generator = torch.Generator().manual_seed(rows)
    picture = torch.rand(3, 9 * rows, 9 * cols, generator=generator)
    puzzle = cut_picture(picture, Board(rows, cols), generator, turn=turn, missing=missing, erode=erode)
    write_puzzle(puzzle, tmp_path / "out")
    again = read_puzzle(tmp_path / "out")
    assert again.board == puzzle.board
    assert again.names == puzzle.names
    assert torch.equal(to_levels(again.pieces.pixels), to_levels(puzzle.pieces.pixels))
    assert again.truth is not None
    assert puzzle.truth is not None
    assert torch.equal(again.truth.rotation, puzzle.truth.rotation)
    assert torch.equal(again.truth.translation, puzzle.truth.translation)


def test_pixels_are_exact_and_the_same_bytes_come_again(puzzle: Puzzle, written: Path, tmp_path: Path) -> None:
    assert torch.equal(read_puzzle(written).pieces.pixels, puzzle.pieces.pixels)
    write_puzzle(read_puzzle(written), tmp_path / "b")
    for file in (path for path in written.rglob("*") if path.is_file()):
        assert file.read_bytes() == (tmp_path / "b" / file.relative_to(written)).read_bytes()


def test_puzzle_file_says_what_it_must(written: Path) -> None:
    document = json.loads((written / "puzzle.json").read_text())
    names = [f"piece_{index:03d}.png" for index in range(12)]
    assert document == {"schema": 1, "kind": "image", "rows": 3, "cols": 4, "piece_size": 8, "pieces": names}


def test_what_could_not_be_read_is_not_written(puzzle: Puzzle, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="identical"):
        write_puzzle(puzzle.reordered(torch.tensor([0, 1, 2, 2])), tmp_path / "a")
    assert not (tmp_path / "a").exists()


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


def test_a_given_grid_replaces_the_told_one(written: Path) -> None:
    assert read_puzzle(written, Board(3, 4)).truth is not None
    other = read_puzzle(written, Board(4, 3))
    assert other.board == Board(4, 3)
    assert other.truth is None
    refused(written, "grid 2x2 has 4 cells, got 12 pieces", Board(2, 2))


@pytest.mark.parametrize(
    "name", ["../secret.png", "/etc/passwd", "a/b.png", "..", "", "c:\\x.png", "a\0b.png", 7, None, ["x"]]
)
def test_piece_names_stay_in_their_folder(puzzle: Puzzle, written: Path, name: object) -> None:
    write_picture(puzzle.pieces.pixels[0], written / "secret.png")
    names = [f"piece_{index:03d}.png" for index in range(11)]
    edit(written / "puzzle.json", pieces=[*names, name])
    refused(written, "is not the name of a file in pieces")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": 9}, "this version reads schema 1"),
        ({"rows": "3"}, "'rows' must be a whole number"),
        ({"rows": 10**9, "cols": 10**9}, "make no board"),
        ({"rows": 2}, "grid 2x4 has 8 cells, got 12 pieces"),
        ({"pieces": "piece_000.png"}, "'pieces' must be a list"),
        ({"pieces": []}, "must name each of its pieces once"),
        ({"pieces": ["piece_000.png"] * 2}, "must name each of its pieces once"),
        ({"pieces": ["piece_000.png", "piece_777.png"]}, "piece_777.png: cannot be read (No such file"),
        ({"piece_size": 9}, "'piece_size' is not 8"),
    ],
)
def test_spoilt_puzzle_file(written: Path, changes: dict[str, Any], words: str) -> None:
    edit(written / "puzzle.json", **changes)
    refused(written, words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda records: records[:-1], "each piece of puzzle.json once"),
        (lambda records: [*records, records[0]], "each piece of puzzle.json once"),
        (lambda records: [{**records[0], "file": "other.png"}, *records[1:]], "each piece of puzzle.json once"),
        (lambda records: [{**records[0], "row": 3}, *records[1:]], "is not on the board"),
        (lambda records: [{**records[0], "turn": -1}, *records[1:]], "is not on the board"),
        (lambda records: [{**records[0], "turn": 0.5}, *records[1:]], "'turn' must be a whole number"),
        (lambda records: [{**records[1], "file": records[0]["file"]}, *records[1:]], "two pieces on one cell"),
        (lambda records: [7, *records[1:]], "'file' must be a text"),
    ],
)
def test_spoilt_truth_file(written: Path, change: Any, words: str) -> None:
    path = written / "truth.json"
    edit(path, pieces=change(json.loads(path.read_text())["pieces"]))
    refused(written, words)
    edit(path, rows=4)
    refused(written, "is for another grid")


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
    write(tmp_path, tiles)
    (tmp_path / "notes.txt").write_text("passed over")
    (tmp_path / ".hidden.png").write_text("passed over")
    (tmp_path / "folder.png").mkdir()
    pieces, names = read_pieces(tmp_path)
    assert torch.equal(pieces.pixels, tiles)
    assert names == tuple(f"tile{index}.png" for index in range(6))


def test_nothing_to_read(tmp_path: Path, tiles: Tensor) -> None:
    refused(tmp_path, "has no pictures", read=read_pieces)
    refused(tmp_path / "none", "No such file", read=read_pieces)
    write_picture(tiles[0], tmp_path / "file.png")
    refused(tmp_path / "file.png", "Not a directory", read=read_pieces)
    refused(tmp_path, "needs at least 2", read=read_pieces)


@pytest.mark.parametrize("turns", range(4))
def test_identical_pieces_however_turned(tmp_path: Path, tiles: Tensor, turns: int) -> None:
    tiles[5] = tiles[2].rot90(turns, (-2, -1))
    write(tmp_path, tiles)
    refused(tmp_path, "tile2.png and tile5.png are identical", read=read_pieces)


def test_mirrored_or_nearly_equal_pieces_are_different(tmp_path: Path, tiles: Tensor) -> None:
    tiles[5] = tiles[2].flip(-1)
    tiles[4] = tiles[2]
    tiles[4, 0, 0, 0] = (tiles[4, 0, 0, 0] + 1 / 255) % 1
    assert len(read_pieces(write(tmp_path, tiles))[0]) == 6


def test_flat_pieces(tiles: Tensor) -> None:
    """Some flat pieces are a clear sky; nothing but flat pieces is no puzzle."""
    tiles[1:5] = 0.5
    names = [str(index) for index in range(6)]
    check_pieces(ImagePieces(tiles), names, Path("x"))
    tiles[:] = torch.rand(6, 3, 1, 1)
    with pytest.raises(InputError, match="x: every piece is one flat colour"):
        check_pieces(ImagePieces(tiles), names, Path("x"))


def test_too_many_pieces_for_the_grid() -> None:
    with pytest.raises(InputError, match=r"grid 6x6 has 36 cells, got 40 pieces; pass --grid 8x5"):
        check_count(40, Board(6, 6), Path("x"))
    check_count(36, Board(6, 6), Path("x"))
    check_count(7, Board(6, 6), Path("x"))


@given(st.integers(2, 2000))
def test_the_proposed_grid_has_room_and_is_near_the_square(count: int) -> None:
    with pytest.raises(InputError) as caught:
        check_count(count, Board(1, 1), Path("x"))
    rows, cols = map(int, str(caught.value).split("--grid ")[1].split("x"))
    assert count <= rows * cols <= 1.5 * count + 1
    assert cols <= rows <= 2.5 * cols or count < 4


@settings(max_examples=25, deadline=None)
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


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (Board(5, 4), "32x24 pixels do not divide into 5 rows and 4 columns; pass the --grid"),
        (Board(3, 5), "do not divide"),
        (Board(12, 16), "pieces are 2 pixels wide"),
    ],
)
def test_grids_that_do_not_fit_the_picture(tmp_path: Path, picture: Tensor, grid: Board, words: str) -> None:
    write_picture(picture, tmp_path / "a.png")
    with pytest.raises(InputError) as caught:
        split_picture(tmp_path / "a.png", grid)
    assert str(caught.value).startswith(str(tmp_path / "a.png"))
    assert words in str(caught.value)
