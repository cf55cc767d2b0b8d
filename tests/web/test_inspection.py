"""The page counts what is right, also when only the whole is turned, and says how long it may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from diffassemble.core import Assembly, Mesh, Poses, Puzzle
from diffassemble.fragments.breaking import scatter
from diffassemble.web.server import example_answer
from diffassemble.web.session import summary, time_left


def test_pictures(cut: Callable[..., Puzzle]) -> None:
    given = cut(3, 3)
    board, (cells, turns) = given.board, given.board.snap(given.truth)
    answer = Assembly(given, given.truth, torch.tensor([0.9] * 5 + [0.1] * 4), (), "x", 1.0)
    assert summary(answer).startswith("**9 of 9 pieces right**; 5 of 9 pieces with a confidence")
    turned = replace(answer, poses=board.poses(*board.turned(cells, turns, 1)[1:]))
    assert "9 orientation free" in summary(turned)
    unknown = replace(answer, puzzle=given.without_truth())
    assert "right" not in summary(unknown)


def test_objects() -> None:
    corners = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
    faces = torch.arange(39).unfold(0, 3, 3)
    given = scatter([Mesh(corners, faces), Mesh(corners + 1, faces)], torch.Generator().manual_seed(0), points=50)
    answer = Assembly(given, given.truth, torch.ones(2), (), "x", 1.0)
    assert summary(answer).startswith("**2 of 2 pieces right**")
    away = Poses(given.truth.rotation, given.truth.translation + 5)
    assert "as seen from the largest" in summary(replace(answer, poses=away))


def test_time_left() -> None:
    assert time_left(0.0, 5.0) == "working"
    assert time_left(0.5, 10.0) == "about 10 s left"
    assert time_left(0.1, 60.0) == "about 9 min left"


def test_the_example_comes_out_right_and_has_something_to_show() -> None:
    answer = example_answer()
    assert len(answer.history) > 15
    assert "25 of 25 pieces right" in summary(answer)
