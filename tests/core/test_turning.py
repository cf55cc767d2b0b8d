"""A whole of flat pieces can be turned by quarters, with all that stands in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, FragmentPieces, InputError, Locks, Mesh, Placements, Poses, Puzzle
from diffassemble.kinds import kind_of
from diffassemble.squares.cut import cut_picture


def solved(puzzle: Puzzle) -> Answer:
    found = Placements(puzzle.truth, torch.ones(len(puzzle)), upright=0.5)
    return Answer(puzzle, found, (puzzle.truth,), "by hand", 0.0)


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_it_is_the_boards_own_turn(cut: Callable[..., Puzzle], degrees: int) -> None:
    given = solved(cut(2, 3))
    held = Locks(torch.arange(6) < 2, given.poses)
    turned = replace(given, puzzle=replace(given.puzzle, locks=held)).turned(degrees)
    board, cells, turns = given.puzzle.board.turned(*given.puzzle.board.snap(given.poses), degrees // 90)
    assert turned.puzzle.lattice == board
    assert all(torch.equal(*both) for both in zip(turned.puzzle.board.snap(turned.poses), (cells, turns), strict=True))
    assert turned.puzzle.locks is not None
    torch.testing.assert_close(turned.puzzle.locks.poses.translation, turned.poses.translation)
    torch.testing.assert_close(turned.history[0].rotation, turned.poses.rotation)
    assert turned.upright is None
    # The truth of another board says nothing.
    assert (turned.puzzle.truth is None) == (degrees != 180)
    back = turned.turned(360 - degrees)
    torch.testing.assert_close(back.poses.translation, given.poses.translation)
    assert back.puzzle.lattice == given.puzzle.lattice


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_turned_whole_is_no_failure(cut: Callable[..., Puzzle], degrees: int) -> None:
    turned = solved(cut(3, 3)).turned(degrees)
    words = kind_of(turned.puzzle).score(turned)
    assert words == f"all 9 pieces fit together, turned by {degrees}° (--turn {360 - degrees} turns them)"
    assert kind_of(turned.puzzle).score(turned.turned(360 - degrees)) == "100.0 % of the pieces right"
    rotation, translation = turned.poses.rotation.clone(), turned.poses.translation.clone()
    rotation[0] = -rotation[0]
    words = kind_of(turned.puzzle).score(turned.with_placements(poses=Poses(rotation, translation)))
    assert words is not None
    assert words.startswith("8 of 9 pieces fit together, turned by")


def test_what_cannot_be_turned(cut: Callable[..., Puzzle]) -> None:
    with pytest.raises(InputError, match="quarters"):
        solved(cut(2, 2)).turned(45)
    points = torch.rand(2, 8, 3)
    clouds = tuple(Mesh(own, torch.zeros(0, 3, dtype=torch.long)) for own in points)
    object_ = Puzzle(FragmentPieces(points, clouds, torch.zeros(2, 3)), None, ("a", "b"), Poses.identity(2, 3))
    with pytest.raises(InputError, match="these are fragments"):
        solved(object_).turned(90)
    oblong = cut_picture(torch.rand(3, 40, 90), Board(2, 3), torch.Generator().manual_seed(0), whole=True)
    with pytest.raises(InputError, match="half turns only"):
        solved(oblong).turned(270)
    assert solved(oblong).turned(180).puzzle.truth is not None
