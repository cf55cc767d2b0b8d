"""The diffusion solver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import Board, Poses, Puzzle, Solver, Step
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.sampling import denoise
from diffassemble.squares.diffusion import DiffusionSolver, rank_placements
from diffassemble.squares.edge_model import find_matches


def drained(solver: Solver, puzzle: Puzzle, seed: int = 0) -> list[Step]:
    return list(solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(seed)))


def assert_same(one: Poses, two: Poses) -> None:
    assert torch.equal(one.translation, two.translation)
    assert torch.equal(one.rotation, two.rotation)


@pytest.fixture
def real(tiny_model: Path) -> DiffusionSolver:
    """A solver with a network that has learnt nothing."""
    return DiffusionSolver(Denoiser.from_pretrained(tiny_model), denoising_steps=4, samples=3)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (5, 2)])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_a_perfect_network_gives_the_exact_truth(
    cut: Callable[..., Puzzle], oracle: Any, shape: tuple[int, int], missing: float, eta: float
) -> None:
    puzzle = cut(*shape, missing=missing)
    steps = drained(DiffusionSolver(oracle(puzzle), denoising_steps=3, samples=2, eta=eta), puzzle)
    assert_same(steps[-1].poses, puzzle.truth)
    if not missing:
        assert steps[-1].placements.confidence.min() > 0.9


@pytest.mark.parametrize(("times", "asked", "taken"), [(300, 5, 5), (1, 20, 1), (7, 20, 7)])
def test_steps_lead_from_noise_to_the_answer(
    cut: Callable[..., Puzzle], oracle: Any, times: int, asked: int, taken: int
) -> None:
    puzzle = cut(2, 3)
    steps = drained(DiffusionSolver(oracle(puzzle, times=times), denoising_steps=asked), puzzle)
    assert len(steps) == taken + 1
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert done[0] > 0
    assert done[-1] == 1
    assert all(step.result is None for step in steps[:-1])
    apart = [float((step.poses.translation - puzzle.truth.translation).norm()) for step in steps]
    assert apart[-1] == 0
    assert apart == sorted(apart, reverse=True)


def test_samples_that_differ_by_a_turn_of_the_whole_agree(cut: Callable[..., Puzzle], oracle: Any) -> None:
    puzzle = cut(3, 3)
    solver = DiffusionSolver(oracle(puzzle, wholes=(0, 1, 2, 3)), denoising_steps=2, samples=4)
    last = drained(solver, puzzle)[-1]
    assert last.placements.confidence.min() > 0.9


@pytest.mark.parametrize(("shape", "allowed"), [((3, 3), (0, 1, 2, 3)), ((2, 4), (0, 2))])
def test_the_whole_is_turned_upright_where_the_board_allows_it(
    cut: Callable[..., Puzzle], oracle: Any, shape: tuple[int, int], allowed: tuple[int, ...]
) -> None:
    puzzle = cut(*shape)
    asked = []
    for lying in allowed:

        def upright(given: Puzzle, placed: Poses, turns: tuple[int, ...], lying: int = lying) -> tuple[int, float]:
            asked.append(turns)
            assert given.truth is None
            return -lying % 4, 0.75

        solver = DiffusionSolver(oracle(puzzle, wholes=(lying,)), denoising_steps=2, samples=1, upright=upright)
        steps = drained(solver, puzzle)
        assert_same(steps[-1].poses, puzzle.truth)
        assert steps[-1].done == 1
        assert len(steps) == 4  # the turn of the whole is a step of its own
        assert [step.placements.upright for step in steps] == [None, None, None, 0.75]
    assert asked == [allowed] * len(allowed)


def test_puzzles_of_a_batch_are_denoised_apart(cut: Callable[..., Puzzle], tiny_model: Path) -> None:
    model = Denoiser.from_pretrained(tiny_model)
    one, two = cut(2, 3), cut(3, 3, name="chelsea")
    *_, (_, together) = denoise(model, pack([one, two], find_matches), 3, 2, torch.Generator().manual_seed(0))
    *_, (_, alone) = denoise(model, pack([one], find_matches), 3, 2, torch.Generator().manual_seed(0))
    torch.testing.assert_close(together.vectors[:6], alone.vectors, atol=1e-4, rtol=1e-4)
    assert not together.vectors.requires_grad


def test_without_borders_the_placement_that_the_others_agree_with_ranks_highest() -> None:
    board = Board(2, 2)
    common = (torch.tensor([0, 1, 2, 3]), torch.zeros(4, dtype=torch.long))
    turned = board.turned(*common, 1)[1:]
    odd = (torch.tensor([3, 1, 2, 0]), torch.zeros(4, dtype=torch.long))
    ranks = rank_placements([odd, common, turned], board, None)
    assert ranks[0] < ranks[1] == ranks[2]


def test_borders_count_beside_what_the_others_agree_with(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(3, 3)
    matches = pack([puzzle], find_matches).matches
    assert matches is not None
    true = puzzle.board.snap(puzzle.truth)
    wrong = true[0].roll(1), true[1]
    plain = rank_placements([true, wrong, true], puzzle.board, None)
    ranks = rank_placements([true, wrong, true], puzzle.board, matches)
    realised = [more - less for more, less in zip(ranks, plain, strict=True)]
    assert realised[0] == realised[2] > realised[1] >= 0
