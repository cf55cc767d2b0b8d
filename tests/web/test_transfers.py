"""Uploads become puzzles or are refused, answers become downloads, in words and files that are true."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import skimage.data
import torch
from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.kind import Drawing
from diffassemble.core import Board, InputError, Mesh, Placements, Poses, Puzzle
from diffassemble.fragments.breaking import scatter
from diffassemble.io.archives import pack
from diffassemble.io.assemblies import assembly_bytes
from diffassemble.io.pictures import png_bytes
from diffassemble.io.puzzles import write_puzzle
from diffassemble.kinds import kind_of
from diffassemble.rendering import report
from diffassemble.web import transfers
from diffassemble.web.panels import summary, time_left
from diffassemble.web.transfers import ANIMATION, CUT, DOCUMENT, JIGSAW, MODEL, PIECES, SHUFFLED, WHOLE, ZIP, Order


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "uploads").mkdir()
    return tmp_path / "uploads"


@pytest.fixture
def picture() -> bytes:
    return png_bytes(Image.fromarray(skimage.data.coffee()).resize((120, 80)))


def arrive(name: str, folder: Path, *chunks: bytes) -> Path:
    async def sent() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return asyncio.run(transfers.receive(name, sent(), folder))


def opened(folder: Path, order: Order) -> Puzzle:
    messages: list[tuple[str, Any]] = []
    transfers.read(lambda *message: messages.append(message), folder, order)
    return dict(messages)["puzzle"]


def test_pictures_are_cut_or_are_shuffled_grids(picture: bytes, folder: Path) -> None:
    arrive("coffee.png", folder, picture[:1000], picture[1000:])
    puzzle = opened(folder, Order(CUT, Board(2, 3)))
    assert (len(puzzle), puzzle.pictures.size) == (6, 40)
    assert puzzle.truth is not None
    assert opened(folder, Order(SHUFFLED, Board(2, 3))).truth is None
    assert opened(folder, Order(JIGSAW, pieces=6)).kind == "outlines"
    with pytest.raises(InputError, match="write rows and columns"):
        opened(folder, Order(SHUFFLED))


def test_pieces_and_zip_files(cut: Callable[..., Puzzle], folder: Path, tmp_path: Path) -> None:
    assert transfers.usual(["a.jpg"]) == CUT
    assert {transfers.usual(names) for names in (["a.zip"], ["a.ply"], ["a.png", "b.png"])} == {PIECES}
    write_puzzle(cut(2, 3), tmp_path / "puzzle")
    pieces = sorted((tmp_path / "puzzle" / "pieces").iterdir())
    arrive("a.zip", folder, pack([(path.name, path.read_bytes()) for path in pieces]))
    # The grid to cut a picture by is none of theirs.
    boards = [opened(folder, Order(what, Board(4, 4))).board for what in (CUT, PIECES)]
    assert (boards[0].cells, boards[1]) == (6, Board(4, 4))
    (folder / "a.zip").unlink()
    for path in pieces:
        arrive(path.name, folder, path.read_bytes())
    assert len(opened(folder, Order(PIECES))) == 6
    with pytest.raises(InputError, match="6 files are there, but this is one"):
        opened(folder, Order(CUT, Board(2, 2)))


def test_bytes_and_files_count_as_they_arrive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "MOST_BYTES", 1_000_000)
    monkeypatch.setattr(transfers, "MOST_FILES", 2)
    taken = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            taken.append(1)
            yield b"\0" * 100_000

    with pytest.raises(InputError, match="no more than 1 MB are taken"):
        asyncio.run(transfers.receive("huge.png", endless(), folder))
    assert len(taken) == 11
    assert not list(folder.iterdir())
    arrive("a.png", folder, b"\0" * 900_000)
    with pytest.raises(InputError, match="no more than 1 MB"):
        arrive("b.png", folder, b"\0" * 200_000)
    arrive("b.png", folder, b"")
    with pytest.raises(InputError, match=r"a\.png: was sent already"):
        arrive("elsewhere/a.png", folder, b"")
    with pytest.raises(InputError, match="no more than 2 files"):
        arrive("c.png", folder, b"")


@pytest.mark.parametrize("name", ["../../evil.png", "/etc/evil.png", "..\\evil.png", ".hidden.png"])
def test_names_stay_inside(picture: bytes, folder: Path, tmp_path: Path, name: str) -> None:
    file = arrive(name, folder, picture)
    assert file.parent == folder
    assert not file.name.startswith(".")
    assert {path.name for path in tmp_path.iterdir()} == {"uploads"}
    with pytest.raises(InputError, match="has no name"):
        arrive("...", folder, picture)


@pytest.fixture
def solved(cut: Callable[..., Puzzle]) -> Answer:
    puzzle = cut(2, 2)
    return Answer(puzzle, Placements(puzzle.truth, torch.ones(4)), (), "x", 1.0)


@pytest.fixture
def broken() -> Answer:
    corners = torch.rand(30, 3, generator=torch.Generator().manual_seed(0))
    mesh = Mesh(corners, torch.arange(30).reshape(10, 3))
    puzzle = scatter([mesh, mesh], torch.Generator().manual_seed(0), points=50)
    return Answer(puzzle, Placements(puzzle.truth, torch.ones(2), objects=torch.tensor((0, -1))), (), "x", 1.0)


@pytest.mark.parametrize(
    ("wanted", "given", "magic", "rendered"),
    [
        (DOCUMENT, "solved", b"{", []),
        (DOCUMENT, "broken", b"{", []),
        (ANIMATION, "solved", b"GIF8", ["animation", "standing"]),
        (WHOLE, "solved", b"\x89PNG", ["assembly", "standing"]),
        (MODEL, "broken", b"glTF", []),
        (ZIP, "solved", b"PK", sorted({*Drawing._fields} - {"pieces"})),
    ],
)
def test_each_download_renders_only_what_it_gives(
    wanted: str, given: str, magic: bytes, rendered: list[str], tmp_path: Path, request: Any, monkeypatch: Any
) -> None:
    assembly = request.getfixturevalue(given)
    kind, calls = kind_of(assembly.puzzle), []

    def recorded(field: str) -> Callable[..., Any]:
        return lambda *given: calls.append(field) or getattr(kind.drawing(), field)(*given)

    drawing = Drawing(*map(recorded, Drawing._fields))
    monkeypatch.setattr(report, "kind_of", lambda _: replace(kind, drawing=lambda: drawing))
    assert wanted in transfers.offered(assembly.puzzle.kind)
    content = transfers.content(assembly, wanted, tmp_path)
    assert content.startswith(magic)
    assert sorted(calls) == rendered
    if wanted == ZIP:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert archive.namelist() == ["assembled.png", "assembly.json", "report.html", "steps.gif"]
            assert archive.read("assembly.json") == assembly_bytes(assembly)
        assert not list(tmp_path.iterdir())


def test_words(cut: Callable[..., Puzzle], broken: Answer) -> None:
    given = cut(3, 3)
    board, (cells, turns) = given.board, given.board.snap(given.truth)
    answer = Answer(given, Placements(given.truth, torch.tensor([0.95] * 5 + [0.1] * 4)), (), "x", 1.0)
    assert summary(answer) == "All 9 pieces are right"
    turned = answer.with_placements(poses=board.poses(*board.turned(cells, turns, 1)[1:]))
    assert summary(turned) == "All 9 pieces fit together, turned by 90°"
    unknown = replace(answer, puzzle=given.without_truth())
    assert summary(unknown) == "5 sure, 4 guessed"
    assert summary(unknown.with_placements(confidence=torch.ones(9))) == "All 9 pieces are sure"
    assert summary(broken) == "All 2 fragments are right"
    away = Poses(broken.poses.rotation, broken.poses.translation + 5)
    assert summary(broken.with_placements(poses=away)) == "All 2 fragments fit together relative to the largest"
    assert (time_left(0.0, 5.0), time_left(0.5, 10.0)) == ("", "50 %, about 10 s left, ")
    assert time_left(0.1, 60.0) == "10 %, about 9 min left, "


def test_all_samples_are_there() -> None:
    for name, (kind, count) in {"photo": ("squares", 36), "jigsaw": ("outlines", 30), "bowl": ("fragments", 6)}.items():
        sample = transfers.SAMPLES[name]
        puzzle = sample.make()
        assert (puzzle.kind, len(puzzle), str(count) in sample.words) == (kind, count, True)
