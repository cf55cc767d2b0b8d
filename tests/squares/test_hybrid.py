"""The hybrid needs no network where borders determine the picture, and follows it where they do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from diffassemble.core import ImagePieces, Locks, Puzzle, Step
from diffassemble.core.board import Placement
from diffassemble.core.solver import content_order
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.network.batch import PuzzleBatch
from diffassemble.network.denoiser import Denoiser
from diffassemble.squares.edge_model import EdgeModel, EdgeModelConfig
from diffassemble.squares.energy import EnergyConfig
from diffassemble.squares.hybrid import HybridConfig, HybridSolver


@pytest.fixture
def solver(tiny_model: Path) -> HybridSolver:
    """With a network that has learnt nothing."""
    return HybridSolver(Denoiser.from_pretrained(tiny_model))


@pytest.fixture
def learned(solver: HybridSolver) -> HybridSolver:
    """With an edge model that has learnt nothing but to believe what it sees."""
    torch.manual_seed(0)
    edge_model = EdgeModel(EdgeModelConfig(width=8, blocks=0, embedding=2))
    edge_model.odds[:, 4] = 1.0  # the lower of the two chances
    return replace(solver, edge_model=edge_model.compare)


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


class Knowing(Denoiser):
    """Says of each piece by itself where it belongs."""

    truth: Placement
    asked = 0

    def alone_logits(self, batch: PuzzleBatch) -> Tensor:
        self.asked += 1
        cells, turns = self.truth
        logits = torch.zeros(len(cells), 1, batch.boards[0].cells, 4)
        logits[torch.arange(len(cells)), 0, cells, turns] = 10.0
        return logits


@pytest.mark.parametrize(("sizes", "turn"), [((4, 4), 0), ((4, 4), 1), ((3, 5), 2)])
def test_where_borders_are_mute_what_pieces_show_decides(
    cut: Callable[..., Puzzle], tiny_model: Path, sizes: tuple[int, int], turn: int
) -> None:
    puzzle, random = cut(*sizes), torch.Generator().manual_seed(0)
    pixels = torch.rand(len(puzzle), 3, 16, 16, generator=random)
    content = Knowing(Denoiser.from_pretrained(tiny_model).config)
    order = content_order(pixels)
    cells, turns = puzzle.board.turned(*puzzle.board.snap(puzzle.truth), turn)[1:]
    content.truth = cells[order], turns[order]
    mute = Puzzle(ImagePieces(pixels), puzzle.board, puzzle.names, puzzle.board.poses(cells, turns))
    last = drained(HybridSolver(content, config=HybridConfig(trust=5.0)), mute)[-1]
    assert all(torch.equal(*pair) for pair in zip(mute.board.snap(last.poses), (cells, turns), strict=True))


def test_what_is_beyond_doubt_is_answered_at_once(cut: Callable[..., Puzzle], solver: HybridSolver) -> None:
    content = Knowing(solver.content.config)
    for missing, sure, asked in ((0.0, -math.inf, 0), (0.0, math.inf, 1), (0.2, -math.inf, 1)):
        puzzle = cut(6, 6, missing=missing, name="astronaut")
        order = content_order(puzzle.pixels)
        content.truth, content.asked = tuple(part[order] for part in puzzle.board.snap(puzzle.truth)), 0
        assert right(puzzle, drained(HybridSolver(content, config=HybridConfig(sure=sure)), puzzle)[-1]) == 100
        assert content.asked == asked


def listed(solver: HybridSolver, budget: float = math.inf) -> HybridSolver:
    """The same, with the search of large boards."""
    return replace(solver, budget=budget, config=HybridConfig(energy=EnergyConfig(listed_above=0)))


@pytest.mark.parametrize("budget", [1e-9, math.inf])
def test_on_large_boards_locks_hold(cut: Callable[..., Puzzle], solver: HybridSolver, budget: float) -> None:
    puzzle = cut(4, 5)
    wanted = puzzle.board.poses(torch.arange(19, -1, -1), torch.full((20,), 2))
    locked = replace(puzzle, locks=Locks(torch.arange(20) < 3, wanted))
    cells, turns = puzzle.board.snap(drained(listed(solver, budget), locked)[-1].poses)
    assert cells[:3].tolist() == [19, 18, 17]
    assert turns[:3].tolist() == [2, 2, 2]
