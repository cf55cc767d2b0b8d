"""Corrections are new answers, the board shows pieces where they are, and a session comes back from its folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, FragmentPieces, ImagePieces, Mesh, Placements, Poses, Puzzle
from diffassemble.core.poses import plane_rotations, random_rotations
from diffassemble.kinds import kind_of, make_solver
from diffassemble.outlines.cut import cut_shape
from diffassemble.web import CONFIG, stages, transfers
from diffassemble.web.panels import evidence, summary
from diffassemble.web.session import Arrangement, Sessions, laid_out

BOARD = Board(2, 2)
PUZZLE = Puzzle(ImagePieces(torch.rand(4, 3, 4, 4, generator=torch.Generator().manual_seed(0))), BOARD, tuple("abcd"))
START = Arrangement.given(PUZZLE)


def near(*cells: int, turn: int = 0) -> Poses:
    exact = BOARD.poses(torch.tensor(cells), torch.full((len(cells),), turn))
    return Poses(exact.rotation, exact.translation + 0.2)


def cells(arrangement: Arrangement) -> list[int]:
    return arrangement.puzzle.board.snap(arrangement.poses)[0].tolist()


def test_pieces_snap_swap_and_turn() -> None:
    moved = START.moved([0], near(3, turn=1))
    assert cells(moved) == [3, 1, 2, 0]
    assert BOARD.snap(moved.poses)[1].tolist() == [1, 0, 0, 0]
    # Two at once: pieces in the way take the cells left free; off the board they do not go.
    assert sorted(cells(START.moved([0, 1], near(2, 3)))[2:]) == [0, 1]
    assert START.moved([0, 1], near(3, 3)) is START
    assert BOARD.snap(START.turned([2]).turned([2]).poses)[1].tolist() == [0, 0, 2, 0]
    assert torch.equal(START.turned([2]).turned([2], back=True).poses.rotation, START.poses.rotation)
    whole = START.with_lock([0], True).whole_turned(90)
    assert cells(whole) == [1, 3, 0, 2]
    assert whole.locked.tolist() == [True, False, False, False]
    assert torch.equal(whole.whole_turned(270).poses.translation, START.poses.translation)


def test_locked_pieces_stay() -> None:
    locked = START.with_lock([3], True)
    assert locked.moved([0], near(3)) is locked.moved([3], near(0)) is locked.turned([3]) is locked
    assert locked.locks is not None
    assert locked.locks.held.tolist() == [False, False, False, True]
    assert START.locks is locked.with_lock([3], False).locks is None


def test_corrections_are_a_new_answer(cut: Callable[..., Puzzle], tmp_path: Path) -> None:
    puzzle = cut(2, 2)
    answer = Answer(puzzle, Placements(puzzle.truth, torch.full((4,), 0.97), upright=0.9), (), "x", 1.0)
    session = Sessions(tmp_path, make_solver).new()
    session.begin(answer, "a photo")
    assert (session.now.moved_by_hand, session.assembly.upright) == ([], 0.9)
    session.correct(lambda now: now.turned([1]).with_lock([1], True))
    assert (session.now.moved_by_hand, session.assembly.upright) == ([1], None)
    assert session.assembly.status == ("sure", "placed by a person", "sure", "sure")
    assert session.now.answer is answer
    assert "3 sure, 1 placed by a person" in summary(replace(session.assembly, puzzle=puzzle.without_truth()))
    session.undo()
    assert session.assembly.status == ("sure",) * 4


def test_what_a_person_places_is_exported_with_its_evidence(photo: Path, tmp_path: Path) -> None:
    """An unplaced piece dragged home and locked, and a placed one dragged 400 pixels away."""
    puzzle = cut_shape(str(photo), "tabs", 9, 1)
    home, away, count = 4, 0, len(puzzle)
    poses, lost = puzzle.truth, (torch.arange(count) == home).long()
    aside = Poses(poses.rotation, poses.translation + 3000 * lost[:, None])
    found = Placements(aside, 0.97 * (1 - lost), -lost)
    session = Sessions(tmp_path / "home", make_solver).new()
    session.begin(Answer(puzzle.without_truth(), found, solver="grow"), "jigsaw")
    session.matches = kind_of(puzzle).matches(puzzle)
    places = stages.to_places(puzzle, poses)
    places[away][0] -= 400
    for piece in (home, away):
        session.correct(lambda now, piece=piece: now.moved([piece], stages.from_places(puzzle, [places[piece]])))
    session.correct(lambda now: now.with_lock([home], True))
    records = json.loads(transfers.content(session.assembly, transfers.DOCUMENT, tmp_path))["pieces"]
    by_person = (None, "placed by a person")
    assert all((records[one]["confidence"], records[one]["group"]) == by_person for one in (home, away))
    assert (records[home]["object"], records[home]["locked"]) == (0, True)
    assert all(entry["log_odds"] > 0 for entry in records[home]["evidence"])
    assert "fits piece" in evidence(session.assembly, home)
    assert (records[away]["object"], "evidence" in records[away]) == (None, False)
    assert all(one["group"] == "sure" for one in records if one not in (records[home], records[away]))


def sheet(side: int) -> Mesh:
    """A square of triangles with so many corners along each side."""
    steps = torch.linspace(0, 1, side)
    corners = torch.stack([*torch.meshgrid(steps, steps, indexing="xy"), torch.zeros(side, side)], -1).reshape(-1, 3)
    first = (torch.arange(side - 1)[:, None] * side + torch.arange(side - 1)).reshape(-1, 1)
    return Mesh(corners, (first + torch.tensor([0, 1, side + 1, 0, side + 1, side])).reshape(-1, 3))


def test_fragments_go_where_they_are_put_whole_or_coarser() -> None:
    generator = torch.Generator().manual_seed(0)
    fragments = Puzzle(FragmentPieces(torch.rand(3, 4, 3), (sheet(2),) * 3, torch.zeros(3, 3)), None, tuple("abc"))
    poses = Poses(random_rotations(3, generator), torch.randn(3, 3, generator=generator))
    back = stages.from_places(fragments, stages.to_places(fragments, poses))
    assert torch.allclose(back.rotation, poses.rotation, atol=1e-5)
    assert torch.allclose(back.translation, poses.translation, atol=1e-5)
    start = Arrangement.given(fragments)
    moved = start.moved([1], poses[[1]])
    assert torch.equal(moved.poses.translation[1], poses.translation[1])
    assert torch.equal(moved.poses.translation[[0, 2]], start.poses.translation[[0, 2]])
    assert len(stages.shape_of(fragments, 0)) == 12 + 4 * 12 + 2 * 12
    coarse = stages.coarser(sheet(100), 2000)
    assert 200 < len(coarse.faces) < 4000
    assert torch.allclose(coarse.vertices.amax(0)[:2], torch.ones(2), atol=0.1)


def test_gaps_are_measured_across() -> None:
    mesh = sheet(30)
    pieces = FragmentPieces(torch.zeros(2, 4, 3), (mesh, mesh), torch.zeros(2, 3))
    for apart, level in ((0.0, 0), (0.01, 127), (0.5, 255)):
        poses = Poses(torch.eye(3).repeat(2, 1, 1), torch.tensor([[0.0, 0, 0], [0, 0, apart]]))
        levels = stages.gaps(Puzzle(pieces, None, ("a", "b")), poses)
        assert len(levels) == 2 * 900
        assert abs(sorted(levels)[900] - level) <= 2


@pytest.mark.parametrize("shape", ["squares", "outlines"])
def test_places_there_and_back(shape: str, cut: Callable[..., Puzzle], photo: Path) -> None:
    puzzle = cut(3, 4) if shape == "squares" else cut_shape(str(photo), "tabs", 9, 0)
    count, generator = len(puzzle), torch.Generator().manual_seed(0)
    angles = torch.rand(count, generator=generator) * 6
    poses = Poses(plane_rotations(angles), torch.rand(count, 2, generator=generator))
    back = stages.from_places(puzzle, stages.to_places(puzzle, poses))
    assert torch.allclose(back.rotation, poses.rotation, atol=1e-4)
    assert torch.allclose(back.translation, poses.translation, atol=1e-3)
    described = stages.description(puzzle)
    assert [piece["name"] for piece in described["pieces"]] == list(puzzle.names)
    assert (described["grid"] is None) is (shape == "outlines")
    assert stages.picture_of(puzzle, 0).startswith(b"\x89PNG")
    assert torch.isfinite(laid_out(puzzle).translation).all()


def test_a_session_comes_back_and_goes_after_a_day(tmp_path: Path, cut: Callable[..., Puzzle]) -> None:
    sessions = Sessions(tmp_path / "home", make_solver)
    session = sessions.new()
    assert not session.folder.exists()
    puzzle = cut(2, 2)
    session.begin(Answer(puzzle, Placements(puzzle.truth, torch.ones(4)), (puzzle.truth,), "x", 1.0), "a photo")
    session.correct(lambda now: now.with_lock([2], True))
    session.correct(lambda now: now.turned([0]))
    (tmp_path / "home" / "broken").mkdir()
    (tmp_path / "home" / "broken" / "state.pickle").write_bytes(b"junk")
    again = Sessions(tmp_path / "home", make_solver)
    assert again.find("broken").now is None
    found = again.find(session.name)
    assert (found.title, len(found.past), len(found.answers)) == ("a photo", 3, 1)
    assert torch.equal(found.now.poses.rotation, session.now.poses.rotation)
    assert found.now.locked.tolist() == [False, False, True, False]
    assert found.now.answer is found.answers[0]
    found.undo()
    assert found.now.moved_by_hand == []
    found.redo()
    assert found.now.moved_by_hand == [0]
    assert session.folder.stat().st_mode & 0o77 == 0
    assert [again.find(name) for name in ("../home", "", "unknown", "/etc")] == [None] * 4
    for file in session.folder.rglob("*"):
        os.utime(file, (time.time() - CONFIG.keep - 10,) * 2)
    Sessions(tmp_path / "home", make_solver)
    assert not session.folder.exists()
