"""Uploads become puzzles or are refused, answers become downloads, in words and files that are true."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import skimage.data
import torch
from PIL import Image
from viser import UploadedFile

from diffassemble.core import Assembly, Board, InputError, Mesh, Poses, Puzzle
from diffassemble.core.kind import Drawing
from diffassemble.files.archives import pack
from diffassemble.files.assemblies import assembly_bytes
from diffassemble.files.puzzles import open_input, write_puzzle
from diffassemble.fragments.breaking import scatter
from diffassemble.kinds import kind_of
from diffassemble.rendering import report
from diffassemble.web import transfers
from diffassemble.web.panel import MANY, collected_text
from diffassemble.web.server import example_answer
from diffassemble.web.session import summary, time_left
from diffassemble.web.transfers import ANIMATION, DOCUMENT, PHOTO, PIECES, SHUFFLED, WHOLE, ZIP, download, read_upload


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


@pytest.fixture
def solved(cut: Callable[..., Puzzle]) -> Assembly:
    puzzle = cut(2, 2)
    return Assembly(puzzle, puzzle.truth, torch.ones(4), (), "x", 1.0)


@pytest.fixture
def broken() -> Assembly:
    corners = torch.rand(30, 3, generator=torch.Generator().manual_seed(0))
    mesh = Mesh(corners, torch.arange(30).reshape(10, 3))
    puzzle = scatter([mesh, mesh], torch.Generator().manual_seed(0), points=50)
    return Assembly(puzzle, puzzle.truth, torch.ones(2), (), "x", 1.0, objects=(0, -1))


@pytest.mark.parametrize(
    ("wanted", "given", "name", "magic", "rendered"),
    [
        (DOCUMENT, "solved", "assembly.json", b"{", []),
        (DOCUMENT, "broken", "assembly.json", b"{", []),
        (ANIMATION, "solved", "steps.gif", b"GIF8", ["animation", "standing"]),
        (WHOLE, "solved", "assembled.png", b"\x89PNG", ["assembly", "standing"]),
        (WHOLE, "broken", "assembled.glb", b"glTF", []),
        (ZIP, "solved", "assembly.zip", b"PK", sorted(Drawing._fields)),
    ],
)
def test_each_download_renders_only_what_it_gives(
    wanted: str,
    given: str,
    name: str,
    magic: bytes,
    rendered: list[str],
    tmp_path: Path,
    request: Any,
    monkeypatch: Any,
) -> None:
    assembly = request.getfixturevalue(given)
    kind, calls = kind_of(assembly.puzzle), []

    def recorded(field: str) -> Callable[..., Any]:
        return lambda *given: calls.append(field) or getattr(kind.drawing(), field)(*given)

    drawing = Drawing(*map(recorded, Drawing._fields))
    monkeypatch.setattr(report, "kind_of", lambda _: replace(kind, drawing=lambda: drawing))
    told, content = download(assembly, wanted, tmp_path)
    assert told == name
    assert content.startswith(magic)
    assert sorted(calls) == rendered
    if wanted == ZIP:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert archive.namelist() == ["assembled.png", "assembly.json", "report.html", "steps.gif"]
            assert archive.read("assembly.json") == assembly_bytes(assembly)
        assert not list(tmp_path.iterdir())


def test_pictures(cut: Callable[..., Puzzle]) -> None:
    given = cut(3, 3)
    board, (cells, turns) = given.board, given.board.snap(given.truth)
    answer = Assembly(given, given.truth, torch.tensor([0.9] * 5 + [0.1] * 4), (), "x", 1.0)
    assert summary(answer).startswith("**9 of 9 pieces right**; 5 of 9 pieces with a confidence")
    assert summary(replace(answer, upright=0.97)).endswith("; upright: 97 % sure")
    assert summary(replace(answer, upright=0.4)).endswith("; upright: 40 % sure; which way is up is a guess")
    turned = replace(answer, poses=board.poses(*board.turned(cells, turns, 1)[1:]))
    assert "9 orientation free" in summary(turned)
    unknown = replace(answer, puzzle=given.without_truth())
    assert "right" not in summary(unknown)


def test_objects(broken: Assembly) -> None:
    assert summary(broken).startswith("**2 of 2 pieces right**")
    away = Poses(broken.poses.rotation, broken.poses.translation + 5)
    assert "as seen from the largest" in summary(replace(broken, poses=away))


def test_time_left() -> None:
    assert time_left(0.0, 5.0) == "working"
    assert time_left(0.5, 10.0) == "about 10 s left"
    assert time_left(0.1, 60.0) == "about 9 min left"


def test_the_example_comes_out_right_and_has_something_to_show() -> None:
    answer = example_answer()
    assert len(answer.history) > 15
    assert "25 of 25 pieces right" in summary(answer)
