"""Yu's solver puts photos together, and answers whatever it is given."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from diffassemble.core import Poses, Puzzle, Step
from diffassemble.evaluation.metrics import direct_comparison_free, neighbour_accuracy
from diffassemble.squares.baselines.yu import YuSolver


def drained(puzzle: Puzzle, solver: YuSolver = YuSolver()) -> list[Step]:  # noqa: B008
    return list(solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(0)))


def scores(puzzle: Puzzle, poses: Poses) -> tuple[float, float]:
    assert puzzle.truth is not None
    placement = (puzzle.board, *puzzle.board.snap(poses), *puzzle.board.snap(puzzle.truth))
    return direct_comparison_free(*placement), neighbour_accuracy(*placement)


def assert_placement(puzzle: Puzzle, step: Step) -> None:
    """One piece a cell, exactly on the board, and a confidence for each."""
    cells, turns = puzzle.board.snap(step.poses)
    placed = puzzle.board.poses(cells, turns)
    assert len(cells.unique()) == len(puzzle)
    assert torch.equal(step.poses.translation, placed.translation)
    assert torch.equal(step.poses.rotation, placed.rotation)
    assert step.confidence is not None
    assert ((step.confidence >= 0) & (step.confidence <= 1)).all()


@pytest.mark.parametrize("name", ["astronaut", "coffee", "cat"])
@pytest.mark.parametrize("shape", [(6, 6), (8, 5), (4, 9)])
def test_photos_are_put_together(cut: Callable[..., Puzzle], name: str, shape: tuple[int, int]) -> None:
    puzzle = cut(*shape, name=name)
    right, neighbours = scores(puzzle, drained(puzzle)[-1].poses)
    assert right > 95
    assert neighbours > 95


def test_what_is_there_hangs_together_when_pieces_are_missing(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(6, 8, missing=0.15, name="astronaut")
    last = drained(puzzle)[-1]
    assert scores(puzzle, last.poses)[1] > 85
    assert_placement(puzzle, last)


def test_the_whole_is_turned_as_the_uprighter_says(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 4)
    plain = drained(puzzle)[-1].poses
    steps = drained(puzzle, YuSolver(upright=lambda given, placed, wholes: 1))
    expected = puzzle.board.poses(*puzzle.board.turned(*puzzle.board.snap(plain), 1)[1:])
    assert torch.equal(steps[-2].poses.translation, plain.translation)
    assert torch.equal(steps[-1].poses.translation, expected.translation)
    assert torch.equal(steps[-1].poses.rotation, expected.rotation)
