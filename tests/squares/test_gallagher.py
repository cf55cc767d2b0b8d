"""Gallagher's solver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from diffassemble.core import Board, Poses, Puzzle, Step
from diffassemble.evaluation.metrics import direct_comparison_free, neighbour_accuracy
from diffassemble.squares.baselines.gallagher import GallagherSolver, ranked_matches, trim
from diffassemble.squares.edges import Borders
from diffassemble.squares.forest import Forest


def border_scores(pixels: Tensor) -> Tensor:
    """The scores of all pairs of sides."""
    borders = Borders.of(pixels)
    every = torch.arange(len(borders))
    return borders.scores(every, every)


def drained(puzzle: Puzzle, solver: GallagherSolver = GallagherSolver()) -> list[Step]:  # noqa: B008
    return list(solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(0)))


def scores(puzzle: Puzzle, poses: Poses) -> tuple[float, float]:
    assert puzzle.truth is not None
    placement = (puzzle.board, *puzzle.board.snap(poses), *puzzle.board.snap(puzzle.truth))
    return direct_comparison_free(*placement), neighbour_accuracy(*placement)


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


def assert_placement(puzzle: Puzzle, step: Step) -> None:
    """One piece a cell, exactly on the board, and a confidence for each."""
    cells, turns = puzzle.board.snap(step.poses)
    placed = puzzle.board.poses(cells, turns)
    assert len(cells.unique()) == len(puzzle)
    assert torch.equal(step.poses.translation, placed.translation)
    assert torch.equal(step.poses.rotation, placed.rotation)
    assert step.confidence is not None
    assert ((step.confidence >= 0) & (step.confidence <= 1)).all()


def noise(count: int, size: int = 8) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def test_steps_show_trees_that_grow(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(6, 6)
    steps = drained(puzzle)
    done = [step.done for step in steps]
    assert 5 < len(steps) < 20
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == 1
    assert [step.confidence is None for step in steps] == [True] * (len(steps) - 1) + [False]
    neighbours = [together(puzzle, step.poses) for step in steps]
    assert neighbours == sorted(neighbours)
    assert neighbours[0] < 5
    assert neighbours[-1] > 55


def together(puzzle: Puzzle, poses: Poses) -> int:
    """How many true neighbours lie to each other as they should, wherever that is."""
    truth, pitch = puzzle.truth, puzzle.board.pitch
    assert truth is not None
    first, second = ((truth.translation[:, None] - truth.translation).norm(dim=-1) < 1.1 * pitch).nonzero().unbind(1)
    found = poses[first].inverse() @ poses[second]
    wanted = truth[first].inverse() @ truth[second]
    apart = (found.translation - wanted.translation).norm(dim=-1) + (found.rotation - wanted.rotation).norm(dim=(1, 2))
    return int(((apart < 0.1 * pitch) & (first < second)).sum())


def test_the_whole_is_turned_as_the_uprighter_says(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 4)
    plain = drained(puzzle)[-1].poses
    steps = drained(puzzle, GallagherSolver(upright=lambda given, placed, wholes: 1))
    cells, turns = puzzle.board.snap(plain)
    expected = puzzle.board.poses(*puzzle.board.turned(cells, turns, 1)[1:])
    assert torch.equal(steps[-2].poses.translation, plain.translation)
    assert torch.equal(steps[-1].poses.translation, expected.translation)
    assert torch.equal(steps[-1].poses.rotation, expected.rotation)


def test_the_clearest_matches_come_first() -> None:
    scores = border_scores(noise(4))
    partners = Borders.of(noise(4)).best(12)
    second = scores.topk(2, largest=False).values[:, 1] + 0.02
    matches = ranked_matches(partners)
    ratios = [(scores[a, b] + 0.02) ** 2 / (second[a] * second[b]) for a, b in matches.tolist()]
    assert len(matches) == 16 * 12
    assert len({tuple(match) for match in matches.tolist()}) == len(matches)
    assert torch.stack(ratios).diff().min() > -1e-4
    assert ranked_matches(Borders.of(noise(1)).best(8)).shape == (0, 2)


def forest_of(places: list[tuple[int, int]], loose: int = 0) -> Forest:
    """One tree at these places (x, y), and some pieces for themselves."""
    forest = Forest.of(len(places) + loose)
    forest.label[: len(places)] = 0
    forest.size[0] = len(places)
    forest.place[: len(places)] = places
    return forest


def test_the_frame_that_holds_most_is_kept() -> None:
    square = [(x, y) for x in range(3) for y in range(2)]
    forest = forest_of([*square, (-2, 0), (3, 1), (4, 1)], loose=1)
    cells, turns = trim(forest, Board(2, 4))
    assert cells.tolist()[:6] == [0, 4, 1, 5, 2, 6]
    assert cells.tolist()[6:] == [-1, 7, -1, -1]
    assert turns.tolist() == [0] * 10


def test_the_frame_may_lie_across_the_tree() -> None:
    forest = forest_of([(x, y) for x in range(2) for y in range(5)])
    cells, turns = trim(forest, Board(2, 5))
    assert sorted(cells.tolist()) == list(range(10))
    assert turns.tolist() == [1] * 10
    # Turned clockwise, the upper left piece comes to the upper right.
    assert cells[0] == 4


def test_a_small_tree_lies_in_the_middle_of_the_frame() -> None:
    cells, _ = trim(forest_of([(7, -3)]), Board(5, 3))
    assert cells.tolist() == [7]
    cells, _ = trim(forest_of([(0, 0), (1, 0)]), Board(4, 4))
    assert cells.tolist() in ([5, 6], [9, 10])


def test_all_loose_pieces_of_a_broken_tree_are_filled_in(cut: Callable[..., Puzzle]) -> None:
    """A board of another shape than the picture's forces trimming, and then filling."""
    puzzle = cut(6, 6)
    other = Puzzle(puzzle.pieces, Board(4, 9), puzzle.names)
    last = drained(other)[-1]
    assert_placement(other, last)
    cells, turns = other.board.snap(last.poses)
    assert np.array_equal(np.sort(cells.numpy()), np.arange(36))
    assert turns.min() >= 0
