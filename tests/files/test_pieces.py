"""Loose pieces are read as they are, or refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, ImagePieces, InputError
from diffassemble.files.pictures import write_picture
from diffassemble.squares.files import check_count, check_pieces, read_pieces, split_picture


@pytest.fixture
def tiles() -> Tensor:
    """Six different 8-pixel pieces."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (6, 3, 8, 8), generator=generator).float() / 255


def write(folder: Path, tiles: Tensor) -> Path:
    for index, tile in enumerate(tiles):
        write_picture(tile, folder / f"tile{index}.png")
    return folder


def refused(folder: Path, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read_pieces(folder)
    assert words in str(caught.value)
    assert str(folder) in str(caught.value)


def test_folder_of_pictures(tiles: Tensor, tmp_path: Path) -> None:
    write(tmp_path, tiles)
    (tmp_path / "notes.txt").write_text("passed over")
    (tmp_path / ".hidden.png").write_text("passed over")
    (tmp_path / "folder.png").mkdir()
    pieces, names = read_pieces(tmp_path)
    assert torch.equal(pieces.pixels, tiles)
    assert names == tuple(f"tile{index}.png" for index in range(6))


def test_nothing_to_read(tmp_path: Path, tiles: Tensor) -> None:
    refused(tmp_path, "has no pictures")
    refused(tmp_path / "none", "No such file")
    write_picture(tiles[0], tmp_path / "file.png")
    refused(tmp_path / "file.png", "Not a directory")
    refused(tmp_path, "needs at least 2")


def test_pieces_that_are_no_puzzle(tmp_path: Path, tiles: Tensor) -> None:
    folder = write(tmp_path / "bad", tiles)
    (folder / "tile3.png").write_text("not a picture")
    refused(folder, "tile3.png: is not a picture")
    folder = write(tmp_path / "unequal", tiles)
    write_picture(tiles[0][:, :7, :7], folder / "tile4.png")
    refused(folder, "tile4.png: is 7x7 pixels, but tile0.png is 8x8; pieces must be of equal size")
    refused(write(tmp_path / "long", tiles[..., :5]), "tile0.png: is 5x8 pixels; pieces must be square")
    refused(write(tmp_path / "tiny", tiles[..., :3, :3]), "pieces are 3 pixels wide")


@pytest.mark.parametrize("turns", range(4))
def test_identical_pieces_however_turned(tmp_path: Path, tiles: Tensor, turns: int) -> None:
    tiles[5] = tiles[2].rot90(turns, (-2, -1))
    write(tmp_path, tiles)
    refused(tmp_path, "tile2.png and tile5.png are identical")


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
        (Board(3, 2), "grid 3x2 gives pieces of 16x8 pixels; pieces must be square"),
        (Board(12, 16), "pieces are 2 pixels wide"),
    ],
)
def test_grids_that_do_not_fit_the_picture(tmp_path: Path, picture: Tensor, grid: Board, words: str) -> None:
    write_picture(picture, tmp_path / "a.png")
    with pytest.raises(InputError) as caught:
        split_picture(tmp_path / "a.png", grid)
    assert str(caught.value).startswith(str(tmp_path / "a.png"))
    assert words in str(caught.value)
