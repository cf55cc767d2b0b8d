"""People are told plainly what is sure, what is guessed, and what was left out."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from diffassemble.core import Assembly, FragmentPieces, Mesh, Poses, Puzzle
from diffassemble.core.poses import random_rotations
from diffassemble.rendering.report import account, listed


@pytest.fixture
def answer() -> Assembly:
    points = torch.rand(5, 8, 3, generator=torch.Generator().manual_seed(0))
    clouds = tuple(Mesh(own, torch.zeros(0, 3, dtype=torch.long)) for own in points)
    puzzle = Puzzle(FragmentPieces(points, clouds, torch.zeros(5, 3)), None, tuple("abcde"))
    poses = Poses(random_rotations(5, torch.Generator().manual_seed(0)), torch.zeros(5, 3))
    sure = torch.tensor([1.0, 0.95, 0.7, 0.2, 0.0])
    return Assembly(puzzle, poses, sure, (), "mend", 1.0, objects=(0, 0, 0, 0, -1))


def test_every_piece_is_in_one_row(answer: Assembly) -> None:
    assert account(answer) == [
        ("sure", "a, b"),
        ("likely", "c (0.70)"),
        ("only guessed", "d (0.20)"),
        ("left out, fits nowhere", "e"),
    ]


def test_objects_are_named_where_there_are_several(answer: Assembly) -> None:
    rows = dict(account(replace(answer, objects=(0, 1, 1, 0, -1))))
    assert rows["object 1"] == "a, d"
    assert rows["object 2"] == "b, c"


def test_solvers_that_leave_nothing_out_say_nothing(answer: Assembly) -> None:
    assert account(replace(answer, objects=None)) == []


def test_long_lists_are_cut() -> None:
    assert listed([str(number) for number in range(14)]).endswith("10, 11 and 2 more")
    assert listed(["a"]) == "a"
