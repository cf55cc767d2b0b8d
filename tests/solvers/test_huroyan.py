"""Huroyan's solver puts photos together, betters its turns, and answers whatever it is given."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from diffassemble.core import Board, ImagePieces, Poses, Puzzle, Solver, Step
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


@pytest.mark.parametrize(
    ("pixels", "board"),
    [
        (noise(1), Board(1, 1)),
        (noise(1), Board(5, 5)),
        (noise(2), Board(1, 2)),
        (noise(2), Board(2, 1)),
        (noise(2), Board(6, 6)),
        (noise(3), Board(1, 3)),
        (noise(4), Board(2, 2)),
        (noise(9), Board(1, 9)),
        (noise(9), Board(9, 1)),
        (noise(12, size=4), Board(3, 4)),
        (noise(7), Board(3, 4)),
        (torch.full((16, 3, 8, 8), 0.4), Board(4, 4)),
        (torch.zeros(10, 3, 4, 4), Board(4, 4)),
        (noise(1).repeat(16, 1, 1, 1), Board(4, 4)),
        (torch.cat([noise(5), torch.ones(5, 3, 8, 8)]), Board(2, 5)),
    ],
)
@pytest.mark.parametrize("budget", [math.inf, 0.0])
def test_any_pieces_get_an_answer(pixels: Tensor, board: Board, budget: float) -> None:
    puzzle = Puzzle(ImagePieces(pixels), board, tuple(map(str, range(len(pixels)))))
    steps = drained(puzzle, HuroyanSolver(budget))
    assert_placement(puzzle, steps[-1])
    for step in steps:
        assert step.poses.translation.isfinite().all()
        assert step.poses.rotation.isfinite().all()


@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_the_order_of_the_pieces_changes_nothing(cut: Callable[..., Puzzle], missing: float) -> None:
    puzzle = cut(5, 6, missing=missing)
    plain = drained(puzzle)
    for seed in range(3):
        order = torch.randperm(len(puzzle), generator=torch.Generator().manual_seed(seed))
        for step, other in zip(plain, drained(puzzle.reordered(order)), strict=True):
            assert torch.equal(step.poses.translation[order], other.poses.translation)
            assert torch.equal(step.poses.rotation[order], other.poses.rotation)


def test_steps_lead_to_the_answer(cut: Callable[..., Puzzle]) -> None:
    steps = drained(cut(6, 6, missing=0.2))
    done = [step.done for step in steps]
    assert len(steps) > 3
    assert done == sorted(done)
    assert 0 < done[0] < done[-1] == 1
    assert [step.confidence is None for step in steps] == [True] * (len(steps) - 1) + [False]


def test_the_budget_is_kept(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(16, 16)
    drained(cut(2, 2))
    began = time.monotonic()
    assert_placement(puzzle, drained(puzzle, HuroyanSolver(budget=0.0))[-1])
    assert time.monotonic() - began < 3


def test_the_whole_is_turned_as_the_uprighter_says(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 4)
    plain = drained(puzzle)[-1].poses
    steps = drained(puzzle, HuroyanSolver(upright=lambda given, placed, wholes: 1))
    expected = puzzle.board.poses(*puzzle.board.turned(*puzzle.board.snap(plain), 1)[1:])
    assert torch.equal(steps[-2].poses.translation, plain.translation)
    assert torch.equal(steps[-1].poses.translation, expected.translation)
    assert torch.equal(steps[-1].poses.rotation, expected.rotation)


def test_it_is_a_solver() -> None:
    assert isinstance(HuroyanSolver(), Solver)
    assert HuroyanSolver().name == "huroyan"


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
