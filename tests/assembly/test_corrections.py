"""What a person corrects is a new answer: it is marked, drawn and written as placed by that person."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from diffassemble.assembly.answer import Answer
from diffassemble.core import Locks, Matches, Placements, Poses, Puzzle
from diffassemble.core.board import Board
from diffassemble.io.assemblies import assembly_bytes, read_assembly, read_locks
from diffassemble.outlines.cut import cut_shapes
from diffassemble.rendering.flat import draw_assembly
from diffassemble.rendering.picture import TABLE
from diffassemble.squares.cut import cut_picture

ROWS, COLS, SIDE = 3, 4, 40
BY_PERSON = "placed by a person"


@pytest.fixture(scope="module")
def puzzle() -> Puzzle:
    picture = torch.rand(3, ROWS * SIDE, COLS * SIDE, generator=torch.Generator().manual_seed(1))
    return cut_shapes(picture, "tabs", ROWS * COLS, torch.Generator().manual_seed(0), size=SIDE)


@pytest.fixture(scope="module")
def solved(puzzle: Puzzle) -> Answer:
    """All pieces at home but the one of the last cell, which is unplaced and lies far away."""
    truth = puzzle.truth
    assert truth is not None
    steps = (truth.translation - truth.translation.amin(0)) / SIDE
    cells = steps.flip(1).round().long()
    away = int((cells[:, 0] * COLS + cells[:, 1]).argmax())
    poses = Poses(truth.rotation.clone(), truth.translation.clone())
    poses.translation[away] += torch.tensor([500.0, 700.0])
    confidence, objects = torch.full((len(puzzle),), 0.97), torch.zeros(len(puzzle), dtype=torch.long)
    confidence[away], objects[away], cells[away] = 0.0, -1, -1
    notes = tuple("unplaced: nothing fits" if piece == away else "" for piece in range(len(puzzle)))
    return Answer(puzzle.without_truth(), Placements(poses, confidence, objects, cells, notes, upright=0.95))


def at(answer: Answer, row: int, col: int) -> int:
    assert answer.cells is not None
    return int((answer.cells == torch.tensor([row, col])).all(1).nonzero()[0])


def moved(answer: Answer, piece: int, to: torch.Tensor) -> Poses:
    poses = Poses(answer.poses.rotation.clone(), answer.poses.translation.clone())
    poses.translation[piece] = to
    return poses


def painted(answer: Answer) -> int:
    """Pixels of the drawing that show a piece."""
    return int((np.asarray(draw_assembly(answer).convert("RGB")) != TABLE).any(-1).sum())


def record(answer: Answer, piece: int) -> dict[str, object]:
    return json.loads(assembly_bytes(answer))["pieces"][piece]


def test_an_unplaced_piece_dragged_home_is_drawn_and_written_at_its_new_place(
    puzzle: Puzzle, solved: Answer, tmp_path: Path
) -> None:
    piece, truth = solved.status.index("unplaced"), puzzle.truth
    assert truth is not None
    poses = moved(solved, piece, truth.translation[piece] + 1.5)
    answer = solved.corrected(poses, Locks(torch.arange(len(puzzle)) == piece, poses))
    assert answer.status[piece] == BY_PERSON
    assert [answer.status[other] for other in range(len(puzzle)) if other != piece] == ["sure"] * 11
    placement = answer.placements.placement(piece)
    assert (placement.confidence, placement.object, placement.cell) == (None, 0, (ROWS - 1, COLS - 1))
    assert (answer.upright, answer.grids) == (None, {0: (ROWS, COLS)})
    assert painted(answer) > painted(solved) + 0.7 * SIDE**2
    written = record(answer, piece)
    found = {key: written[key] for key in ("confidence", "object", "row", "col", "group", "locked")}
    wanted = {"confidence": None, "object": 0, "row": ROWS - 1, "col": COLS - 1, "group": BY_PERSON, "locked": True}
    assert found == wanted
    # The file is read back as it was written, and its lock is one for the next solver.
    (tmp_path / "assembly.json").write_bytes(assembly_bytes(answer))
    again = read_assembly(tmp_path, solved.puzzle)
    assert again.status == answer.status
    locks = read_locks(tmp_path, solved.puzzle)
    assert locks.held.tolist() == [other == piece for other in range(len(puzzle))]
    assert assembly_bytes(replace(again, puzzle=replace(again.puzzle, locks=locks))) == assembly_bytes(answer)


def test_a_placed_piece_dragged_away_is_no_longer_sure_and_in_no_cell(puzzle: Puzzle, solved: Answer) -> None:
    piece = at(solved, 1, 1)
    answer = solved.corrected(moved(solved, piece, solved.poses.translation[piece] + torch.tensor([-400.0, 0.0])))
    written = record(answer, piece)
    assert [written[key] for key in ("confidence", "object", "row", "col", "group")] == [None] * 4 + [BY_PERSON]
    assert "locked" not in written
    assert draw_assembly(answer).width > draw_assembly(solved).width + 300


def test_rows_and_columns_follow_the_pieces(solved: Answer) -> None:
    """A piece put left of the first column makes a new first one; one on top of another is in no cell."""
    piece = at(solved, 0, 3)
    left, here = (solved.poses.translation[at(solved, *cell)] for cell in ((1, 0), (2, 2)))
    answer = solved.corrected(moved(solved, piece, left - torch.tensor([float(SIDE), 0.0])))
    assert answer.placements.placement(piece).cell == (1, 0)
    assert answer.placements.placement(at(solved, 0, 0)).cell == (0, 1)
    assert solved.corrected(moved(solved, piece, here)).placements.placement(piece).cell is None


def test_a_piece_moved_to_another_object_belongs_to_it(solved: Answer) -> None:
    assert solved.objects is not None
    assert solved.cells is not None
    apart = (solved.cells[:, 1] >= 2) & (solved.objects == 0)
    shift = torch.where(apart[:, None], torch.tensor([1000.0, 0.0]), torch.zeros(2))
    poses = Poses(solved.poses.rotation, solved.poses.translation + shift)
    two = solved.with_placements(poses=poses, objects=torch.where(apart, 1, solved.objects))
    piece, beside = at(solved, 0, 1), at(solved, 0, 2)
    answer = two.corrected(moved(two, piece, two.poses.translation[beside] - torch.tensor([float(SIDE), 0.0])))
    assert answer.placements.placement(piece).object == 1


@pytest.mark.parametrize("turn", [0, 1])
def test_matches_that_the_new_place_realises_are_its_evidence(puzzle: Puzzle, solved: Answer, turn: int) -> None:
    piece, truth = solved.status.index("unplaced"), puzzle.truth
    assert truth is not None
    beside, other = at(solved, 2, 2), at(solved, 0, 0)
    relative = truth[[beside, beside]].inverse() @ truth[[piece, piece]]
    first, second = torch.tensor([piece, piece]), torch.tensor([beside, other])
    evidence = torch.tensor([[0.9, 1, 1], [0.99, 1, 1]])
    matches = Matches(first, second, relative, torch.zeros(2, dtype=torch.long), evidence)
    if turn:  # written the other way round
        matches = replace(matches, first=second, second=first, pose=relative.inverse())
    answer = solved.corrected(moved(solved, piece, truth.translation[piece] + 2.0), matches=matches)
    (join,) = answer.joins
    assert (join.first, join.second) == tuple(sorted((piece, beside)))
    assert join.log_odds == pytest.approx(np.log(9), rel=1e-4)
    assert record(answer, piece)["evidence"] == [
        {"file": puzzle.names[beside], "log_odds": pytest.approx(2.197, abs=0.01)}
    ]
    assert "evidence" not in record(answer, other)


def test_locks_alone_move_nothing_and_pieces_of_a_board_have_no_object() -> None:
    picture = torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(1))
    puzzle = cut_picture(picture, Board(2, 2), torch.Generator().manual_seed(0))
    assert puzzle.truth is not None
    answer = Answer(puzzle, Placements(puzzle.truth, torch.full((4,), 0.6), upright=0.7))
    held = answer.corrected(locks=Locks(torch.arange(4) == 2, puzzle.truth))
    assert held.status == ("likely", "likely", BY_PERSON, "likely")
    assert (held.objects, held.upright) == (None, 0.7)
    assert torch.equal(held.poses.translation, puzzle.truth.translation)
    assert [record(held, piece).get("group") for piece in range(4)] == [None, None, BY_PERSON, None]
    assert answer.corrected().placements is answer.placements
