"""Huroyan's solver puts photos together, betters its turns, and answers whatever it is given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from diffassemble.core import Poses, Puzzle, Step
from diffassemble.evaluation.metrics import direct_comparison_free, neighbour_accuracy
from diffassemble.squares.baselines.candidates import Candidates
from diffassemble.squares.baselines.filling import Placement, touching_sides
from diffassemble.squares.baselines.huroyan import (
    HuroyanSolver,
    agreeing,
    first_connections,
    next_connections,
    pair_scores,
    recovered_turns,
)
from diffassemble.squares.edges import Borders, border_scores


def drained(puzzle: Puzzle, solver: HuroyanSolver = HuroyanSolver()) -> list[Step]:  # noqa: B008
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
    assert right > 88
    assert neighbours > 93


def test_what_is_there_hangs_together_when_pieces_are_missing(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(6, 8, missing=0.15, name="astronaut")
    last = drained(puzzle)[-1]
    assert scores(puzzle, last.poses)[1] > 85
    assert_placement(puzzle, last)


def noise(count: int, size: int = 8) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def test_the_whole_is_turned_as_the_uprighter_says(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 4)
    plain = drained(puzzle)[-1].poses
    steps = drained(puzzle, HuroyanSolver(upright=lambda given, placed, wholes: 1))
    expected = puzzle.board.poses(*puzzle.board.turned(*puzzle.board.snap(plain), 1)[1:])
    assert torch.equal(steps[-2].poses.translation, plain.translation)
    assert torch.equal(steps[-1].poses.translation, expected.translation)
    assert torch.equal(steps[-1].poses.rotation, expected.rotation)


def test_true_neighbours_agree_with_the_true_turns(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 5)
    assert puzzle.truth is not None
    cells, turns = puzzle.board.snap(puzzle.truth)
    pairs = torch.stack(touching_sides(puzzle.board, cells, turns), 1).numpy()
    assert agreeing(pairs, turns.numpy()).all()
    assert agreeing(pairs, (turns.numpy() + 3) % 4).all()
    assert not agreeing(pairs + np.where(pairs % 4 == 3, -3, 1) * np.array([1, 0]), turns.numpy()).any()


def test_scores_of_pairs_are_those_of_the_matrix() -> None:
    pixels = noise(5)
    first, second = torch.tensor([0, 3, 17, 8]), torch.tensor([5, 18, 2, 13])
    expected = border_scores(pixels)[first, second].numpy()
    assert pair_scores(Borders.of(pixels), first, second) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["coffee", "cat"])
def test_a_good_placement_betters_the_turns(cut: Callable[..., Puzzle], name: str) -> None:
    puzzle = cut(7, 7, name=name)
    assert puzzle.truth is not None
    cells, turns = puzzle.board.snap(puzzle.truth)
    borders = Borders.of(puzzle.pieces.pixels)
    candidates = Candidates.of(borders.best(20))
    placement = Placement.of(puzzle.board, cells, turns, candidates)
    graph = first_connections(candidates, len(puzzle))
    right = []
    for _ in range(4):
        right.append(int(np.bincount((recovered_turns(graph) - turns.numpy()) % 4).max()))
        graph = next_connections(graph, placement, puzzle, candidates, borders)
    assert right == sorted(right)
    assert right[-1] == 49
