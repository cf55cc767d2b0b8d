"""Sides learn to find their neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from diffassemble.core import Board
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import TERMS, EdgeCompatibility
from diffassemble.training.config import Config
from diffassemble.training.edge_model import ALONE, EdgeModelTask, choice_loss, partners


@pytest.fixture
def task(tiny_edge_model: Callable[..., Config]) -> EdgeModelTask:
    return EdgeModelTask(tiny_edge_model())


def test_learns(task: EdgeModelTask, learn: Callable[..., tuple[Any, list[float]]]) -> None:
    losses = learn(task, 60, 1e-2)[1]
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])


def test_scores_are_by_folder_and_erosion(task: EdgeModelTask) -> None:
    scores = task.validate(task.build())
    assert len(scores) == 1 + 2 * 3
    assert [name.split()[-2] for name in list(scores)[1:]] == ["0", "1", "2"] * 2
    assert all(0 <= value <= 100 for value in scores.values())
    assert scores["score"] == pytest.approx(sum(list(scores.values())[1:]) / 6)


def test_partners_are_mutual_and_sides_at_the_frame_are_alone() -> None:
    picture = torch.rand(3, 60, 80, generator=torch.Generator().manual_seed(0))
    puzzles = [cut_picture(picture, Board(3, 4), torch.Generator().manual_seed(seed)) for seed in range(2)]
    found = partners(puzzles)
    assert len(found) == 2 * 48
    assert int((found == ALONE).sum()) == 2 * 14
    sides = torch.arange(len(found))
    has = found != ALONE
    assert torch.equal(found[found[has]], sides[has])
    assert torch.equal(found[has] // 48, sides[has] // 48)


def test_the_loss_is_the_chance_of_the_true_choice() -> None:
    """Three pieces whose fits are all zero: eight sides of others and to be alone are equally probable."""
    zero = torch.zeros(12, 1)
    compatibility = EdgeCompatibility(zero, zero, torch.tensor(0.0), torch.zeros(TERMS), 0)
    partner = torch.full((12,), ALONE)
    partner[0], partner[5] = 5, 0
    assert choice_loss(compatibility, partner).item() == pytest.approx(torch.tensor(9.0).log().item())
    surely_alone = replace(compatibility, alone=torch.tensor(50.0))
    assert choice_loss(surely_alone, torch.full((12,), ALONE)).item() == pytest.approx(0)
