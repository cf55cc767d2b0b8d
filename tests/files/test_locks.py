"""Locked pieces are read from the document that people edit, and bad marks are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import skimage.data
import torch

from diffassemble.core import Assembly, Board, InputError, Puzzle
from diffassemble.files.assemblies import read_locks, write_assembly
from diffassemble.squares.cut import cut_picture


@pytest.fixture
def puzzle(tmp_path: Path) -> Puzzle:
    picture = torch.from_numpy(skimage.data.coffee()).movedim(-1, 0).float() / 255
    puzzle = cut_picture(picture, Board(2, 2), torch.Generator().manual_seed(0), size=16)
    write_assembly(Assembly(puzzle, puzzle.truth, torch.ones(4), (), "x", 1.0), tmp_path / "solved")
    return puzzle


def marked(path: Path, marks: dict[int, object]) -> Path:
    document = json.loads((path / "assembly.json").read_text())
    for number, mark in marks.items():
        document["pieces"][number]["locked"] = mark
    (path / "assembly.json").write_text(json.dumps(document))
    return path


def test_marks_are_read(puzzle: Puzzle, tmp_path: Path) -> None:
    locks = read_locks(marked(tmp_path / "solved", {1: True, 2: False}), puzzle)
    assert locks.held.tolist() == [False, True, False, False]
    assert torch.equal(locks.poses.translation, puzzle.truth.translation)


def test_what_is_written_is_read_back(puzzle: Puzzle, tmp_path: Path) -> None:
    from dataclasses import replace

    locks = read_locks(marked(tmp_path / "solved", {3: True}), puzzle)
    again = Assembly(replace(puzzle, locks=locks), puzzle.truth, torch.ones(4), (), "x", 1.0)
    write_assembly(again, tmp_path / "again")
    assert read_locks(tmp_path / "again" / "assembly.json", puzzle).held.tolist() == locks.held.tolist()


@pytest.mark.parametrize(
    ("marks", "message"), [({}, "marks no piece as locked"), ({0: "yes"}, "must be true or false")]
)
def test_bad_marks(puzzle: Puzzle, tmp_path: Path, marks: dict[int, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_locks(marked(tmp_path / "solved", marks), puzzle)


def test_another_grid(puzzle: Puzzle, tmp_path: Path) -> None:
    other = Puzzle(puzzle.pieces, Board(1, 4), puzzle.names)
    with pytest.raises(InputError, match="pass --grid 2x2"):
        read_locks(marked(tmp_path / "solved", {0: True}), other)
