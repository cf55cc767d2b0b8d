"""Whatever is uploaded becomes a puzzle or a clear message, and stays within the folder it was given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import skimage.data
from PIL import Image
from viser import UploadedFile

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.files.archives import pack
from diffassemble.files.puzzles import open_input, write_puzzle
from diffassemble.web import transfers
from diffassemble.web.panel import MANY, collected_text
from diffassemble.web.transfers import PHOTO, PIECES, SHUFFLED, read_upload


@pytest.fixture
def collected(tmp_path: Path) -> Path:
    (tmp_path / "home" / "collected").mkdir(parents=True)
    return tmp_path / "home" / "collected"


@pytest.fixture
def picture(tmp_path: Path) -> bytes:
    Image.fromarray(skimage.data.coffee()).resize((120, 80)).save(tmp_path / "coffee.png")
    return (tmp_path / "coffee.png").read_bytes()


def test_a_picture_is_cut(picture: bytes, collected: Path) -> None:
    puzzle = read_upload(UploadedFile("coffee.png", picture), PHOTO, Board(2, 3), 0, collected)
    assert puzzle is not None
    assert (len(puzzle), puzzle.pictures.size) == (6, 40)
    assert puzzle.truth is not None
    assert not list(collected.parent.glob("*/*"))


def test_a_shuffled_grid(picture: bytes, collected: Path) -> None:
    puzzle = read_upload(UploadedFile("coffee.png", picture), SHUFFLED, Board(2, 3), 0, collected)
    assert puzzle is not None
    assert puzzle.truth is None
    with pytest.raises(InputError, match="write rows x columns into the field 'grid'"):
        read_upload(UploadedFile("coffee.png", picture), SHUFFLED, None, 0, collected)


def pieces_zip(puzzle: Puzzle, folder: Path) -> UploadedFile:
    write_puzzle(puzzle, folder)
    return UploadedFile(
        "a.zip", pack([(path.name, path.read_bytes()) for path in sorted((folder / "pieces").iterdir())])
    )


def test_a_zip_of_pieces_finds_its_grid(cut: Callable[..., Puzzle], tmp_path: Path, collected: Path) -> None:
    puzzle = read_upload(pieces_zip(cut(3, 3), tmp_path / "puzzle"), PHOTO, None, 0, collected)
    assert puzzle is not None
    assert puzzle.board == Board(3, 3)
    assert open_input(tmp_path / "puzzle").truth is not None


def test_no_more_pieces_than_can_be_solved(picture: bytes, collected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "MOST_FILES", 2)
    for name in "ab":
        read_upload(UploadedFile(f"{name}.png", picture), PIECES, None, 0, collected)
    with pytest.raises(InputError, match=r"a\.png: was sent already"):
        read_upload(UploadedFile("elsewhere/a.png", picture), PIECES, None, 0, collected)
    with pytest.raises(InputError, match="no more than 2 pieces"):
        read_upload(UploadedFile("c.png", picture), PIECES, None, 0, collected)
    assert len(list(collected.iterdir())) == 2


def test_a_zip_has_not_the_grid_of_a_picture(cut: Callable[..., Puzzle], tmp_path: Path, collected: Path) -> None:
    upload = pieces_zip(cut(2, 3), tmp_path / "puzzle")
    boards = [read_upload(upload, kind, Board(4, 4), 0, collected).board for kind in (PHOTO, PIECES)]
    assert boards[0].cells == 6
    assert boards[1] == Board(4, 4)


@pytest.mark.parametrize("name", ["../../evil.png", "/etc/evil.png", "..\\evil.png", ".hidden.png"])
def test_names_stay_inside(picture: bytes, collected: Path, tmp_path: Path, name: str) -> None:
    read_upload(UploadedFile(name, picture), PIECES, None, 0, collected)
    [file] = collected.iterdir()
    assert file.name.endswith(".png")
    assert not file.name.startswith(".")
    assert {path.name for path in tmp_path.iterdir()} == {"home", "coffee.png"}


def test_a_picture_renamed_to_ply_is_not_kept(picture: bytes, collected: Path) -> None:
    with pytest.raises(InputError, match="is no PLY file"):
        read_upload(UploadedFile("coffee.ply", picture), PIECES, None, 0, collected)
    assert not list(collected.iterdir())


def test_what_was_sent_is_listed() -> None:
    assert collected_text([]) == MANY
    assert collected_text(["a.png"]) == "1 piece so far: `a.png`"
    many = collected_text([f"{number:03d}.png" for number in range(30)])
    assert many.startswith("30 pieces so far: … ")
    assert "`029.png`" in many
    assert "`000.png`" not in many
