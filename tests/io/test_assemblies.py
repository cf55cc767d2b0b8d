"""Assemblies are written exactly, always the same way, and can be read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, InputError, Locks, Placements, Poses, Puzzle
from diffassemble.io.assemblies import assembly_bytes, read_assembly, read_locks, render, write_assembly
from diffassemble.io.pictures import read_picture


@pytest.fixture
def assembly(puzzle: Puzzle) -> Answer:
    """The right answer, with a history that starts elsewhere."""
    assert puzzle.truth is not None
    start = Poses(puzzle.truth.rotation, -puzzle.truth.translation)
    confidence = torch.linspace(0, 1, len(puzzle))
    return Answer(puzzle.without_truth(), Placements(puzzle.truth, confidence), (start, puzzle.truth), "test", 1.5)


@pytest.fixture
def written(assembly: Answer, tmp_path: Path) -> Path:
    write_assembly(assembly, tmp_path / "out", pictures=False)
    return tmp_path / "out"


def test_right_assembly_is_the_picture_and_the_same_bytes(assembly: Answer, picture: Tensor, tmp_path: Path) -> None:
    render(assembly, tmp_path / "solved.png")
    assert torch.equal(read_picture(tmp_path / "solved.png"), picture)
    for name, seconds in (("a", 1.5), ("b", 99.0)):
        write_assembly(replace(assembly, seconds=seconds), tmp_path / name)
    assert torch.equal(read_picture(tmp_path / "a" / "assembled.png"), picture)
    for path in (path for path in (tmp_path / "a").iterdir() if path.name != "report.html"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    assert b"seconds" not in (tmp_path / "a" / "assembly.json").read_bytes()


def test_poses_groups_and_notes_come_back_for_reordered_pieces(assembly: Answer, tmp_path: Path) -> None:
    count = len(assembly.puzzle)
    plain = json.loads(assembly_bytes(assembly))["pieces"]
    assert not any("note" in record or "group" in record for record in plain)
    notes = ("no break found", *("",) * (count - 2), "fits 2 places about equally well")
    given = assembly.with_placements(objects=torch.tensor((-1, *(0,) * (count - 1))), notes=notes)
    (tmp_path / "assembly.json").write_bytes(assembly_bytes(given))
    records = json.loads(assembly_bytes(given))["pieces"]
    assert [records[0]["group"], records[-1]["group"]] == ["unplaced", "sure"]
    order = torch.arange(count).flip(0)
    again = read_assembly(tmp_path, given.puzzle.reordered(order))
    assert again.notes == notes[::-1]
    assert torch.equal(again.poses.rotation, assembly.poses.rotation[order])
    assert torch.equal(again.poses.translation, assembly.poses.translation[order])
    assert given.status == again.status[::-1]
    assert assembly_bytes(read_assembly(tmp_path, given.puzzle)) == assembly_bytes(given)


def test_the_probability_of_being_upright(assembly: Answer, tmp_path: Path) -> None:
    path = tmp_path / "assembly.json"
    for sure, stated in (
        (0.97, {"probability": 0.97}),
        (0.41, {"probability": 0.41, "note": "which way is up is a guess"}),
        (None, {"probability": None, "note": "which way is up is not known"}),
    ):
        path.write_bytes(assembly_bytes(assembly.with_placements(upright=sure)))
        document = json.loads(path.read_text())
        assert document["upright"] == stated
        assert read_assembly(path, assembly.puzzle).upright == sure
    locks = Locks(torch.ones(len(assembly.puzzle), dtype=torch.bool), assembly.poses)
    assert b"upright" not in assembly_bytes(replace(assembly, puzzle=replace(assembly.puzzle, locks=locks)))
    document["upright"]["probability"] = 7
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="'probability' must be between 0 and 1"):
        read_assembly(path, assembly.puzzle)
    del document["upright"]  # as in files of older versions
    path.write_text(json.dumps(document))
    assert read_assembly(path, assembly.puzzle).upright is None


def test_marks_of_locked_pieces(assembly: Answer, written: Path) -> None:
    document = json.loads((written / "assembly.json").read_text())
    document["pieces"][1]["locked"], document["pieces"][2]["locked"] = True, False
    (written / "assembly.json").write_text(json.dumps(document))
    locks = read_locks(written, assembly.puzzle)
    assert locks.held.nonzero().tolist() == [[1]]
    assert torch.equal(locks.poses.translation, assembly.poses.translation)
    with pytest.raises(InputError, match="pass --grid 3x4"):
        read_locks(written, replace(assembly.puzzle, lattice=Board(2, 6)))
    document["pieces"][0]["locked"] = "yes"
    (written / "assembly.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="must be true or false"):
        read_locks(written, assembly.puzzle)


def test_matrix_moves_the_piece_as_the_record_says(written: Path) -> None:
    document = json.loads((written / "assembly.json").read_text())
    assert (document["schema"], document["solver"], document["rows"], document["cols"]) == (1, "test", 3, 4)
    board = Board(3, 4)
    for record in document["pieces"]:
        matrix = torch.tensor(record["matrix"])
        corner = matrix @ torch.tensor([-1.0, -1.0, 0.0, 1.0])
        centre = board.centres()[record["row"] * 4 + record["col"]]
        # The upper left corner of a piece goes clockwise round its centre, turn by turn.
        expected = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])[record["turn"]]
        assert torch.allclose(corner[:2] - centre, expected, atol=1e-6)
        assert corner[2:].tolist() == [0, 1]
    assert b"-0.0," not in (written / "assembly.json").read_bytes()


def test_turned_board(assembly: Answer, puzzle: Puzzle, picture: Tensor, tmp_path: Path) -> None:
    """A solver may turn the whole; then the board's sides change places."""
    cells, turns = puzzle.board.snap(assembly.poses)
    board, cells, turns = puzzle.board.turned(cells, turns, 1)
    turned = replace(assembly, puzzle=replace(puzzle, lattice=board), history=()).with_placements(
        poses=board.poses(cells, turns)
    )
    write_assembly(turned, tmp_path / "out")
    again = read_assembly(tmp_path / "out", puzzle)
    assert again.puzzle.board == Board(4, 3)
    assert again.puzzle.truth is None
    render(again, tmp_path / "a.png")
    assert torch.equal(read_picture(tmp_path / "a.png"), picture.rot90(-1, (-2, -1)))


CHANGES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"matrix": [[1, 0], [0, 1]]}, "4 rows of 4 numbers"),
    ({"matrix": [[float("nan")] * 4] * 4}, "NaN is no number"),
    ({"matrix": None}, "'matrix' must be a list"),
    ({"confidence": 1.5}, "between 0 and 1"),
    ({"confidence": float("nan")}, "NaN is no number"),
    ({"confidence": "sure"}, "'confidence' must be a number"),
    ({"row": 77}, "do not agree"),
    ({"turn": None}, "do not agree"),
    ({"file": None}, "'file' must be a text"),
    ({"note": 7}, "'note' must be a text"),
)


def test_changed_files_are_refused(assembly: Answer, tmp_path: Path) -> None:
    path = tmp_path / "assembly.json"
    for changes, words in CHANGES:
        document = json.loads(assembly_bytes(assembly))
        document["pieces"][0].update(changes)
        path.write_text(json.dumps(document))
        with pytest.raises(InputError) as caught:
            read_assembly(path, assembly.puzzle)
        assert words in str(caught.value)
        assert str(path) in str(caught.value)
