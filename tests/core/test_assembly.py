"""Who counts as a solver, and that answers cannot be changed afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError

import pytest
import torch

from diffassemble.core import Assembly, Board, ImagePieces, Poses, Puzzle, Solver, Step


class Idle:
    name = "idle"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        yield Step(Poses.identity(len(puzzle), 2), done=1.0)


def test_a_solver_is_whoever_has_a_name_and_steps() -> None:
    assert isinstance(Idle(), Solver)
    assert not isinstance(object(), Solver)


def test_answers_stay_as_they_are() -> None:
    puzzle = Puzzle(ImagePieces(torch.zeros(2, 3, 4, 4)), Board(1, 2), ("a", "b"))
    (step,) = Idle().steps(puzzle, torch.Generator())
    assert step.confidence is None
    assembly = Assembly(puzzle, step.poses, torch.ones(2), (step.poses,), "idle", 0.0)
    with pytest.raises(FrozenInstanceError):
        assembly.solver = "another"  # type: ignore[misc]
