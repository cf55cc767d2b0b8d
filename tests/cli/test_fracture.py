"""`diffassemble fracture` writes what it says, or says in one line why not and leaves everything as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trimesh

from diffassemble.io.puzzles import read_puzzle

Command = Callable[..., Any]


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]


@pytest.fixture
def box(tmp_path: Path) -> Path:
    path = tmp_path / "Kiste ä.ply"
    trimesh.creation.box((40, 30, 20)).export(path)
    return path


@pytest.mark.parametrize("ending", ["ply", "obj", "stl", "glb"])
def test_fracture_and_read_back(command: Command, box: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / "out"
    done = command("fracture", box, "--pieces", "5", "--missing", "0.2", "--format", ending, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert f"wrote 4 fragments (1 of 5 missing) to {out}" in done.out
    assert f"diffassemble solve {out}" in done.out
    assert len(list((out / "pieces").glob(f"*.{ending}"))) == 4
    puzzle = read_puzzle(out)
    assert len(puzzle.fragments) == 4
    assert puzzle.truth is not None
    assert puzzle.fragments.unit == pytest.approx(40, rel=1e-4)


def test_made_up_solids_and_seeds(command: Command, tmp_path: Path) -> None:
    for folder, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        words = ["--pieces", "3", "--chips", "0.34", "--seed", seed, "--out", tmp_path / folder]
        assert command("fracture", "pill-bottle", *words).code == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b") != contents(tmp_path / "c")


def test_overwrite(command: Command, refused: Callable[..., None], box: Path, tmp_path: Path) -> None:
    words = ("fracture", box, "--out", tmp_path / "out")
    assert command(*words, "--pieces", "2").code == 0
    refused(*words, "--pieces", "3", says="out already exists; choose another --out or pass --overwrite\n")
    assert command(*words, "--pieces", "3", "--overwrite").code == 0
    assert len(read_puzzle(tmp_path / "out")) == 3


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("none.ply", "", "none.ply: cannot be read"),
        ("anvil", "", "is neither a mesh file nor the name of a solid"),
        ("open.ply", "", "open.ply: not watertight; close its holes"),
        ("text.ply", "", "text.ply: is no PLY file"),
        ("Kiste ä.ply", "--pieces 1", "--pieces 1: must be 2 or more and at most 200"),
        ("Kiste ä.ply", "--missing 1", "--missing 1: must be"),
        ("Kiste ä.ply", "--chips 2", "--chips 2: must be"),
        ("Kiste ä.ply", "--seed -1", "--seed -1: must be"),
    ],
)
def test_bad_input(
    refused: Callable[..., None], box: Path, tmp_path: Path, name: str, options: str, words: str
) -> None:
    (tmp_path / "text.ply").write_text("no mesh at all")
    whole = trimesh.load(box)
    whole.update_faces([False] + [True] * 11)
    whole.export(tmp_path / "open.ply")
    refused("fracture", tmp_path / name, *options.split(), "--out", tmp_path / "out", says=words)
