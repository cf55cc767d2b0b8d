"""Whatever people bring becomes a puzzle or a clear line, and stays within the folder it was given."""

from __future__ import annotations

from pathlib import Path

import pytest
import skimage.data
import torch
from PIL import Image

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.files.archives import pack
from diffassemble.files.puzzles import write_puzzle
from diffassemble.squares.cut import cut_picture
from diffassemble.web import uploads as bringing
from diffassemble.web.uploads import KINDS, PHOTO, PIECES, SHUFFLED, Upload, bring, open_folder, usual_grid


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    (tmp_path / "home" / "sent").mkdir(parents=True)
    return tmp_path / "home" / "sent"


@pytest.fixture
def picture(tmp_path: Path) -> bytes:
    Image.fromarray(skimage.data.coffee()).resize((120, 80)).save(tmp_path / "coffee.png")
    return (tmp_path / "coffee.png").read_bytes()


def cut(board: Board) -> Puzzle:
    whole = torch.from_numpy(skimage.data.coffee()).movedim(-1, 0).float() / 255
    return cut_picture(whole, board, torch.Generator().manual_seed(0), size=16)


def test_a_picture_is_cut(picture: bytes, sent: Path) -> None:
    puzzle = bring(Upload("coffee.png", picture), PHOTO, Board(2, 3), 0, sent)
    assert puzzle is not None
    assert (len(puzzle), puzzle.pictures.size) == (6, 40)
    assert puzzle.truth is not None
    assert not list(sent.parent.glob("*/*"))


def test_a_shuffled_grid(picture: bytes, sent: Path) -> None:
    puzzle = bring(Upload("coffee.png", picture), SHUFFLED, Board(2, 3), 0, sent)
    assert puzzle is not None
    assert puzzle.truth is None
    with pytest.raises(InputError, match="write rows x columns into the field 'grid'"):
        bring(Upload("coffee.png", picture), SHUFFLED, None, 0, sent)


def test_a_zip_of_pieces_finds_its_grid(tmp_path: Path, sent: Path) -> None:
    write_puzzle(cut(Board(3, 3)), tmp_path / "puzzle")
    files = [(path.name, path.read_bytes()) for path in sorted((tmp_path / "puzzle" / "pieces").iterdir())]
    puzzle = bring(Upload("pieces.zip", pack(files)), PHOTO, None, 0, sent)
    assert puzzle is not None
    assert puzzle.board == Board(3, 3)
    assert open_folder(tmp_path / "puzzle", None, 0).truth is not None


def test_pieces_one_by_one(tmp_path: Path, sent: Path) -> None:
    write_puzzle(cut(Board(2, 2)), tmp_path / "puzzle")
    for path in sorted((tmp_path / "puzzle" / "pieces").iterdir()):
        assert bring(Upload(path.name, path.read_bytes()), PIECES, None, 0, sent) is None
    assert len(open_folder(sent, Board(2, 2), 0)) == 4


def test_a_piece_is_not_sent_twice(picture: bytes, sent: Path) -> None:
    bring(Upload("a.png", picture), PIECES, None, 0, sent)
    with pytest.raises(InputError, match=r"a\.png: was sent already"):
        bring(Upload("elsewhere/a.png", picture), PIECES, None, 0, sent)


def test_no_more_pieces_than_can_be_solved(picture: bytes, sent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringing, "MOST_FILES", 2)
    for name in "ab":
        bring(Upload(f"{name}.png", picture), PIECES, None, 0, sent)
    with pytest.raises(InputError, match="no more than 2 pieces"):
        bring(Upload("c.png", picture), PIECES, None, 0, sent)
    assert len(list(sent.iterdir())) == 2


def test_a_zip_does_not_have_the_grid_of_a_picture_to_cut(tmp_path: Path, sent: Path) -> None:
    write_puzzle(cut(Board(2, 3)), tmp_path / "puzzle")
    files = [(path.name, path.read_bytes()) for path in sorted((tmp_path / "puzzle" / "pieces").iterdir())]
    photo_grid, own_grid = (bring(Upload("a.zip", pack(files)), kind, Board(4, 4), 0, sent) for kind in (PHOTO, PIECES))
    assert photo_grid is not None
    assert own_grid is not None
    assert photo_grid.board.cells == 6
    assert own_grid.board == Board(4, 4)


def test_grids_are_suggested_where_they_must_be_known() -> None:
    assert [usual_grid(kind) for kind in KINDS] == ["4x4", "", "4x4", ""]


@pytest.mark.parametrize("name", ["../../evil.png", "/etc/evil.png", "..\\evil.png", ".hidden.png"])
def test_names_stay_inside(picture: bytes, sent: Path, tmp_path: Path, name: str) -> None:
    bring(Upload(name, picture), PIECES, None, 0, sent)
    [file] = sent.iterdir()
    assert file.name.endswith(".png")
    assert not file.name.startswith(".")
    assert {path.name for path in tmp_path.iterdir()} == {"home", "coffee.png"}


def test_a_picture_renamed_to_ply_is_not_kept(picture: bytes, sent: Path) -> None:
    with pytest.raises(InputError, match="is no PLY file"):
        bring(Upload("coffee.ply", picture), PIECES, None, 0, sent)
    assert not list(sent.iterdir())


def test_too_much_at_once(sent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringing, "MOST_BYTES", 1_000_000)
    with pytest.raises(InputError, match="has 2 MB, at most 1 MB are taken"):
        bring(Upload("x.png", b"\0" * 2_000_000), PHOTO, Board(2, 2), 0, sent)
