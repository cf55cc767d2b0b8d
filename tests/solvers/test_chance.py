"""Chance rows: they know nothing, and score what knowing nothing gives."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from diffassemble.core import FragmentPieces, Mesh, Poses, Puzzle, Solver, Step
from diffassemble.fragments.chance import SPREAD, IdentitySolver, RandomSolver


def fragments(count: int) -> Puzzle:
    points = torch.rand(count, 5, 3, generator=torch.Generator().manual_seed(0))
    cloud = Mesh(points[0], torch.zeros(0, 3, dtype=torch.long))
    pieces = FragmentPieces(points, (cloud,) * count, torch.zeros(count, 3))
    return Puzzle(pieces, None, tuple(str(number) for number in range(count)))


def only_step(solver: Solver, puzzle: Puzzle, seed: int = 0) -> Step:
    (step,) = solver.steps(puzzle, torch.Generator().manual_seed(seed))
    assert step.done == 1.0
    assert step.confidence is not None
    assert not step.confidence.any()
    return step


def test_identity_moves_no_fragment() -> None:
    poses = only_step(IdentitySolver(), fragments(4)).poses
    assert torch.equal(poses.rotation, Poses.identity(4, 3).rotation)
    assert not poses.translation.any()


def test_identity_lays_pictures_as_listed(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(2, 3)
    cells, turns = puzzle.board.snap(only_step(IdentitySolver(), puzzle).poses)
    assert cells.tolist() == [0, 1, 2, 3, 4, 5]
    assert not turns.any()


def test_random_fragments_turn_evenly_and_lie_as_wide_as_true_ones() -> None:
    poses = only_step(RandomSolver(), fragments(4000)).poses
    assert torch.allclose(poses.rotation @ poses.rotation.transpose(1, 2), torch.eye(3).expand(4000, 3, 3), atol=1e-5)
    assert float(poses.rotation.mean(0).abs().max()) < 0.05
    assert float(poses.translation.std()) == pytest.approx(SPREAD, rel=0.05)
    assert float(poses.translation.mean(0).abs().max()) < 0.02


def test_random_pictures_fill_cells_once(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(3, 3)
    step = only_step(RandomSolver(), puzzle, 1)
    cells, turns = puzzle.board.snap(step.poses)
    assert sorted(cells.tolist()) == list(range(9))
    assert len(set(turns.tolist())) > 1


def test_the_generator_decides() -> None:
    puzzle = fragments(3)
    one, two, three = (only_step(RandomSolver(), puzzle, seed).poses for seed in (1, 1, 2))
    assert torch.equal(one.rotation, two.rotation)
    assert not torch.equal(one.translation, three.translation)
