"""The hybrid needs no network where borders speak, and listens to it where they are mute."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import ImagePieces, Locks, Puzzle, Step
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.network.denoiser import Denoiser
from diffassemble.squares.diffusion import DiffusionSolver
from diffassemble.squares.edge_model import EdgeModel, EdgeModelConfig
from diffassemble.squares.hybrid import HybridSolver


@pytest.fixture
def solver(tiny_model: Path) -> HybridSolver:
    """With a network that has learnt nothing."""
    return HybridSolver(DiffusionSolver(Denoiser.from_pretrained(tiny_model), 2, 2))


@pytest.fixture
def learned(solver: HybridSolver) -> HybridSolver:
    """With an edge model that has learnt nothing but to believe what it sees."""
    torch.manual_seed(0)
    edge_model = EdgeModel(EdgeModelConfig(width=8, blocks=0, embedding=2))
    edge_model.odds[:, 4] = 1.0  # the lower of the two chances
    return HybridSolver(solver.diffusion, edge_model=edge_model.compare)


def drained(solver: HybridSolver, puzzle: Puzzle) -> list[Step]:
    return list(solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(0)))


def right(puzzle: Puzzle, step: Step) -> float:
    return direct_comparison_free(puzzle.board, *puzzle.board.snap(step.poses), *puzzle.board.snap(puzzle.truth))


@pytest.mark.parametrize("name", ["astronaut", "coffee", "cat"])
@pytest.mark.parametrize("shape", [(6, 6), (8, 5)])
def test_borders_suffice_for_photos(
    cut: Callable[..., Puzzle], solver: HybridSolver, name: str, shape: tuple[int, int]
) -> None:
    puzzle = cut(*shape, name=name)
    assert right(puzzle, drained(solver, puzzle)[-1]) > 95


def test_so_do_learned_edges_and_the_search_of_large_boards(
    cut: Callable[..., Puzzle], solver: HybridSolver, learned: HybridSolver
) -> None:
    puzzle = cut(6, 7, name="astronaut")
    assert right(puzzle, drained(learned, puzzle)[-1]) > 80
    assert right(puzzle, drained(listed(solver), puzzle)[-1]) > 80


def test_where_borders_are_mute_the_network_is_heard(cut: Callable[..., Puzzle], oracle: Any) -> None:
    puzzle = cut(4, 4)
    random = torch.Generator().manual_seed(0)
    blurred = Puzzle(ImagePieces(torch.rand(16, 3, 16, 16, generator=random)), puzzle.board, puzzle.names, puzzle.truth)
    last = drained(HybridSolver(DiffusionSolver(oracle(blurred), 2, 2), trust=50.0), blurred)[-1]
    assert right(blurred, last) == 100


def listed(solver: HybridSolver, budget: float = math.inf) -> HybridSolver:
    """The same, with the search of large boards."""
    return replace(solver, listed_above=0, budget=budget)


@pytest.mark.parametrize("budget", [1e-9, math.inf])
def test_on_large_boards_locks_hold(cut: Callable[..., Puzzle], solver: HybridSolver, budget: float) -> None:
    puzzle = cut(4, 5)
    wanted = puzzle.board.poses(torch.arange(19, -1, -1), torch.full((20,), 2))
    locked = replace(puzzle, locks=Locks(torch.arange(20) < 3, wanted))
    cells, turns = puzzle.board.snap(drained(listed(solver, budget), locked)[-1].poses)
    assert cells[:3].tolist() == [19, 18, 17]
    assert turns[:3].tolist() == [2, 2, 2]


def test_on_large_boards_the_network_is_heard(cut: Callable[..., Puzzle], oracle: Any) -> None:
    puzzle = cut(5, 5)
    last = drained(listed(HybridSolver(DiffusionSolver(oracle(puzzle, (0, 2)), 2, 2))), puzzle)[-1]
    assert right(puzzle, last) == 100
