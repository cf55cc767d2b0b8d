"""What holds for the files of every kind: what is written can be read back, whole, and nothing of others is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, InputError, Locks, Placements, Poses, Puzzle
from diffassemble.core.contours import outline_pieces
from diffassemble.fragments.shapes import fracture_file
from diffassemble.io import assemblies
from diffassemble.io.assemblies import assembly_bytes, check_assembly_folder, read_assembly, read_locks, write_assembly
from diffassemble.io.puzzles import open_input, read_puzzle, write_puzzle
from diffassemble.kinds import kinds
from diffassemble.rendering.report import Pictures
from diffassemble.squares.cut import cut_picture


def _picture() -> Puzzle:
    pixels = torch.rand(3, 24, 32, generator=torch.Generator().manual_seed(0)).mul(255).round() / 255
    return cut_picture(pixels, Board(3, 4), torch.Generator().manual_seed(1))


def _quarters() -> Puzzle:
    """A disc of noise in four quarters, each in a picture of its own."""
    levels = torch.randint(256, (4, 60, 60), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    at = torch.arange(60) + 0.5 - 30
    levels[3] = ((25.5 - torch.hypot(at[None, :], at[:, None])).clamp(0, 1) * 255).round().to(torch.uint8)
    corners = [(x, y) for y in (0, 30) for x in (0, 30)]
    pieces = outline_pieces([levels[:, y : y + 30, x : x + 30].clone() for x, y in corners])
    truth = Poses(torch.eye(2).repeat(4, 1, 1), pieces.origins + torch.tensor(corners) - 100)
    return Puzzle(pieces, None, ("a", "b", "c", "d"), truth)


MAKE: dict[str, Callable[[], Puzzle]] = {
    "squares": _picture,
    "outlines": _quarters,
    "fragments": lambda: fracture_file("cookie", 3, 0),
}


@pytest.fixture(params=kinds(), scope="module")
def puzzle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Puzzle:
    """A puzzle of each kind, as it is read from its folder."""
    folder = tmp_path_factory.mktemp("made") / "puzzle"
    write_puzzle(MAKE[request.param](), folder)
    return read_puzzle(folder)


@pytest.fixture
def assembly(puzzle: Puzzle) -> Answer:
    """The right answer, of which each piece is sure in its own way."""
    assert puzzle.truth is not None
    sure = torch.linspace(0, 1, len(puzzle))
    return Answer(puzzle, Placements(puzzle.truth, sure), (puzzle.truth,), "told", 1.5)


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_puzzle_folder_comes_back_the_same(puzzle: Puzzle, tmp_path: Path) -> None:
    write_puzzle(puzzle, tmp_path / "a")
    again = read_puzzle(tmp_path / "a")
    assert (again.kind, again.names, again.lattice) == (puzzle.kind, puzzle.names, puzzle.lattice)
    torch.testing.assert_close(again.pieces.content, puzzle.pieces.content, atol=1e-5, rtol=0)
    assert again.truth is not None
    assert puzzle.truth is not None
    torch.testing.assert_close(again.truth.translation, puzzle.truth.translation, atol=1e-5, rtol=0)
    write_puzzle(puzzle.without_truth(), tmp_path / "b")
    assert tree(tmp_path / "b") == {name: file for name, file in tree(tmp_path / "a").items() if name != "truth.json"}
    assert read_puzzle(tmp_path / "b").truth is None


def test_any_input_is_opened(puzzle: Puzzle, tmp_path: Path) -> None:
    write_puzzle(puzzle, tmp_path / "a")
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "a")
    found: list[str] = []
    for path in (tmp_path / "a", packed, tmp_path / "a" / "pieces"):
        opened = open_input(path, say=found.append)
        assert (opened.kind, len(opened), opened.names) == (puzzle.kind, len(puzzle), puzzle.names)
    assert all("fits the 12 pieces best" in words or "taken for outlines" in words for words in found)
    with pytest.raises(InputError, match="nowhere"):
        open_input(tmp_path / "nowhere")


def test_an_assembly_comes_back_the_same(assembly: Answer, tmp_path: Path) -> None:
    write_assembly(assembly, tmp_path / "out", pictures=False)
    again = read_assembly(tmp_path / "out", assembly.puzzle)
    assert (again.solver, again.objects, again.extra) == ("told", None, ())
    for name in ("rotation", "translation"):
        torch.testing.assert_close(getattr(again.poses, name), getattr(assembly.poses, name), atol=1e-5, rtol=0)
    assert torch.equal(again.confidence, assembly.confidence)
    assert assembly_bytes(replace(assembly, seconds=99.0, history=())) == assembly_bytes(assembly)
    with pytest.raises(InputError, match=r"assembly\.json: is not an assembly of these"):
        read_assembly(tmp_path / "out", assembly.puzzle.reordered(torch.arange(len(assembly.puzzle) - 1)))
    with pytest.raises(InputError, match="this version reads schema 1, kind"):
        read_assembly(tmp_path / "out", next(MAKE[kind]() for kind in kinds() if kind != assembly.puzzle.kind))


def test_locks_objects_and_unplaced_pieces_are_kept(assembly: Answer, tmp_path: Path) -> None:
    puzzle, path = assembly.puzzle, tmp_path / "assembly.json"
    path.write_bytes(assembly_bytes(assembly))
    with pytest.raises(InputError, match="marks no piece as locked"):
        read_locks(path, puzzle)
    held = torch.arange(len(puzzle)) < 2
    path.write_bytes(assembly_bytes(replace(assembly, puzzle=replace(puzzle, locks=Locks(held, assembly.poses)))))
    locks = read_locks(path, puzzle)
    assert torch.equal(locks.held, held)
    torch.testing.assert_close(locks.poses.translation, assembly.poses.translation, atol=1e-5, rtol=0)
    objects = torch.tensor((*range(len(puzzle) - 1), -1))
    path.write_bytes(assembly_bytes(assembly.with_placements(objects=objects)))
    assert torch.equal(read_assembly(path, puzzle).placements.numbers, objects)
    document = json.loads(path.read_text())
    document["pieces"][0]["object"] = "first"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="an 'object' must be"):
        read_assembly(path, puzzle)


def test_the_answer_is_there_first_and_pictures_are_drawn_once(
    assembly: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = dict.fromkeys(("assembled", "before_after", "confidence", "steps"), 0)

    class Counted(Pictures):
        def __getattribute__(self, name: str) -> object:
            if name in drawn and name not in object.__getattribute__(self, "__dict__"):
                drawn[name] += 1
                self.__dict__[name] = name.encode()
            return object.__getattribute__(self, name)

    monkeypatch.setattr(assemblies, "Pictures", Counted)
    written: list[str] = []
    write_assembly(assembly, tmp_path / "out", settings=[("seed", "7")], wrote=written.append)
    assert written[0] == "assembly.json"
    assert [name for name in written if name != "plan.png"][-3:] == ["assembled.png", "steps.gif", "report.html"]
    assert set(written) == {path.name for path in (tmp_path / "out").iterdir()} <= set(assemblies.ASSEMBLY_FILES)
    assert drawn == dict.fromkeys(drawn, 1)


def test_what_was_written_before_a_fault_is_whole(
    assembly: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Pictures):
        @property
        def assembled(self) -> bytes:  # type: ignore[override]
            raise MemoryError

    monkeypatch.setattr(assemblies, "Pictures", Failing)
    with pytest.raises(MemoryError):
        write_assembly(assembly, tmp_path / "out")
    assert (tmp_path / "out" / "assembly.json").read_bytes() == assembly_bytes(assembly)
    assert not (tmp_path / "out" / "assembled.png").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    monkeypatch.undo()
    write_assembly(assembly, tmp_path / "out", overwrite=True, pictures=False)


def test_nothing_is_overwritten_unasked(assembly: Answer, tmp_path: Path) -> None:
    check_assembly_folder(tmp_path / "answer")
    write_puzzle(assembly.puzzle, tmp_path / "puzzle")
    write_assembly(assembly, tmp_path / "answer", pictures=False)
    before = tree(tmp_path)
    for refused in (
        lambda: write_puzzle(assembly.puzzle, tmp_path / "puzzle"),
        lambda: write_assembly(assembly, tmp_path / "answer"),
        lambda: check_assembly_folder(tmp_path / "answer"),
    ):
        with pytest.raises(InputError, match="already exists"):
            refused()
    for foreign in (
        lambda: write_puzzle(assembly.puzzle, tmp_path / "answer", overwrite=True),
        lambda: write_assembly(assembly, tmp_path / "puzzle", overwrite=True),
    ):
        with pytest.raises(InputError, match="holds other files"):
            foreign()
    assert tree(tmp_path) == before
    write_puzzle(assembly.puzzle.without_truth(), tmp_path / "puzzle", overwrite=True)
    assert not (tmp_path / "puzzle" / "truth.json").exists()
    write_assembly(replace(assembly, solver="other"), tmp_path / "answer", overwrite=True, pictures=False)
    assert read_assembly(tmp_path / "answer", assembly.puzzle).solver == "other"
