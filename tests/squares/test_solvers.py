"""`diffusion` and `hybrid`: exact with a perfect network, right by borders alone, and what is locked stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.assembly.answer import assemble
from diffassemble.assembly.locks import hold, moved_to_locks
from diffassemble.core import Board, ImagePieces, InputError, Locks, Poses, Puzzle, Solver, Step
from diffassemble.core.board import Placement
from diffassemble.core.poses import random_rotations
from diffassemble.core.solver import content_order
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.network.batch import PuzzleBatch, pack
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.judge import denoise
from diffassemble.squares.edges import EdgeModel, EdgeModelConfig, find_matches, match_finder
from diffassemble.squares.energy import EnergyConfig
from diffassemble.squares.network_solvers import DiffusionSolver, HybridConfig, HybridSolver

Cut = Callable[..., Puzzle]
QUICK = HybridConfig(effort=10_000, starts=2, longest=4.0)
LARGE = replace(QUICK, large_phases=2, energy=EnergyConfig(listed_above=0))


def drained(solver: Solver, puzzle: Puzzle) -> list[Step]:
    return list(solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(0)))


def right(puzzle: Puzzle, step: Step) -> float:
    return direct_comparison_free(puzzle.board, *puzzle.board.snap(step.poses), *puzzle.board.snap(puzzle.truth))


def assert_same(one: Poses, two: Poses) -> None:
    assert torch.equal(one.translation, two.translation)
    assert torch.equal(one.rotation, two.rotation)


# Diffusion.


@pytest.mark.parametrize(
    ("shape", "missing", "eta"), [((3, 3), 0.0, 1.0), ((2, 4), 0.0, 0.0), ((5, 2), 0.3, 0.0), ((3, 3), 0.3, 1.0)]
)
def test_a_perfect_network_gives_the_exact_truth(
    cut: Cut, oracle: Any, shape: tuple[int, int], missing: float, eta: float
) -> None:
    puzzle = cut(*shape, missing=missing)
    steps = drained(DiffusionSolver(oracle(puzzle), denoising_steps=3, samples=2, eta=eta), puzzle)
    assert_same(steps[-1].poses, puzzle.truth)
    if not missing:
        assert steps[-1].placements.confidence.min() >= 0.9


@pytest.mark.parametrize(("shape", "allowed"), [((3, 3), (0, 1, 2, 3)), ((2, 4), (0, 2))])
def test_the_whole_is_turned_upright_where_the_board_allows_it(
    cut: Cut, oracle: Any, shape: tuple[int, int], allowed: tuple[int, ...]
) -> None:
    puzzle, seen = cut(*shape), []
    for turned in allowed:

        def upright(given: Puzzle, placed: Poses, turns: tuple[int, ...], turned: int = turned) -> tuple[int, float]:
            seen.append(turns)
            assert given.truth is None
            return -turned % 4, 0.75

        solver = DiffusionSolver(oracle(puzzle, wholes=(turned,)), denoising_steps=2, samples=1, upright=upright)
        steps = drained(solver, puzzle)
        assert_same(steps[-1].poses, puzzle.truth)
        # The turn of the whole is a step of its own.
        assert [step.placements.upright for step in steps] == [None, None, None, 0.75]
    assert seen == [allowed] * len(allowed)


def test_puzzles_of_a_batch_are_denoised_apart(cut: Cut, tiny_model: Path) -> None:
    model, puzzles = Denoiser.from_pretrained(tiny_model), [cut(2, 3), cut(3, 3, name="chelsea")]
    found = []
    for batch in (puzzles, puzzles[:1]):
        *_, (_, last) = denoise(model, pack(batch, find_matches), 3, 2, torch.Generator().manual_seed(0))
        found.append(last.vectors[:6])
    torch.testing.assert_close(*found, atol=1e-4, rtol=1e-4)


# Hybrid.


@pytest.mark.parametrize(("name", "shape"), [("astronaut", (6, 6)), ("coffee", (8, 5)), ("cat", (8, 5))])
def test_borders_suffice_beside_an_untrained_network(
    cut: Cut, tiny_model: Path, name: str, shape: tuple[int, int]
) -> None:
    puzzle, content = cut(*shape, name=name), Denoiser.from_pretrained(tiny_model)
    assert right(puzzle, drained(HybridSolver(content, config=QUICK), puzzle)[-1]) > 95


def test_learned_edges_and_the_search_of_large_boards_do_too(cut: Cut) -> None:
    torch.manual_seed(0)
    edge_model = EdgeModel(EdgeModelConfig(width=8, blocks=0, embedding=2))  # untrained
    edge_model.odds[:, 4] = 1.0  # the lower of the two chances
    puzzle = cut(6, 7, name="astronaut")
    for solver in (HybridSolver(edge_model=edge_model.compare, config=QUICK), HybridSolver(config=LARGE)):
        assert right(puzzle, drained(solver, puzzle)[-1]) > 80


class Knowing(Denoiser):
    """Gives the true place of each piece from its content alone, and counts how often."""

    truth: Placement
    calls = 0

    def alone_logits(self, batch: PuzzleBatch) -> Tensor:
        self.calls += 1
        cells, turns = self.truth
        logits = torch.zeros(len(cells), 1, batch.boards[0].cells, 4)
        logits[torch.arange(len(cells)), 0, cells, turns] = 10.0
        return logits


@pytest.mark.parametrize(("sizes", "turn"), [((4, 4), 1), ((3, 5), 2)])
def test_content_decides_where_borders_are_noise(cut: Cut, tiny_model: Path, sizes: tuple[int, int], turn: int) -> None:
    puzzle, random = cut(*sizes), torch.Generator().manual_seed(0)
    pixels = torch.rand(len(puzzle), 3, 16, 16, generator=random)
    content = Knowing(Denoiser.from_pretrained(tiny_model).config)
    order = content_order(pixels)
    cells, turns = puzzle.board.turned(*puzzle.board.snap(puzzle.truth), turn)[1:]
    content.truth = cells[order], turns[order]
    noise = Puzzle(ImagePieces(pixels), puzzle.board, puzzle.names, puzzle.board.poses(cells, turns))
    last = drained(HybridSolver(content, config=replace(QUICK, trust=5.0)), noise)[-1]
    assert all(torch.equal(*pair) for pair in zip(noise.board.snap(last.poses), (cells, turns), strict=True))


def test_the_first_assembly_is_the_answer_where_there_is_no_doubt(cut: Cut, tiny_model: Path) -> None:
    content = Knowing(Denoiser.from_pretrained(tiny_model).config)
    for missing, sure, calls in ((0.0, -math.inf, 0), (0.0, math.inf, 1), (0.2, -math.inf, 1)):
        puzzle = cut(6, 6, missing=missing, name="astronaut")
        order = content_order(puzzle.pixels)
        content.truth, content.calls = tuple(part[order] for part in puzzle.board.snap(puzzle.truth)), 0
        assert right(puzzle, drained(HybridSolver(content, config=replace(QUICK, sure=sure)), puzzle)[-1]) == 100
        assert content.calls == calls


# Locks, and the front door. That every solver holds locks is in tests/contracts.


@pytest.mark.parametrize("budget", [1e-9, math.inf])
def test_on_large_boards_locks_hold(cut: Cut, budget: float) -> None:
    puzzle = cut(4, 5)
    wanted = puzzle.board.poses(torch.arange(19, -1, -1), torch.full((20,), 2))
    locked = replace(puzzle, locks=Locks(torch.arange(20) < 3, wanted))
    cells, turns = puzzle.board.snap(drained(HybridSolver(budget=budget, config=LARGE), locked)[-1].poses)
    assert cells[:3].tolist() == [19, 18, 17]
    assert turns[:3].tolist() == [2, 2, 2]


def locked(puzzle: Puzzle, indices: list[int], cells: list[int], turns: list[int]) -> Puzzle:
    held = torch.zeros(len(puzzle), dtype=torch.bool)
    held[indices] = True
    where, how = torch.zeros(len(puzzle), dtype=torch.long), torch.zeros(len(puzzle), dtype=torch.long)
    where[indices], how[indices] = torch.tensor(cells), torch.tensor(turns)
    return replace(puzzle, locks=Locks(held, puzzle.board.poses(where, how)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4), st.integers(1, 6))
def test_placements_keep_locks(seed: int, rows: int, cols: int, count: int) -> None:
    generator, board = torch.Generator().manual_seed(seed), Board(rows, cols)
    pieces = max(1, board.cells - seed % 3)
    cells = torch.randperm(board.cells, generator=generator)[:pieces]
    turns = torch.randint(0, 4, (pieces,), generator=generator)
    wanted = torch.randperm(board.cells, generator=generator)[:pieces]
    held = torch.arange(pieces) < min(count, pieces)
    new_cells, new_turns = hold((cells, turns), board, Locks(held, board.poses(wanted, (turns + 1) % 4)))
    assert torch.equal(new_cells[held], wanted[held])
    assert torch.equal(new_turns[held], ((turns + 1) % 4)[held])
    assert len(new_cells.unique()) == pieces
    assert 0 <= int(new_cells.min()) <= int(new_cells.max()) < board.cells


def test_objects_are_moved_to_their_locks_as_a_whole() -> None:
    generator = torch.Generator().manual_seed(0)
    truth = Poses(random_rotations(10, generator), torch.randn(10, 3, generator=generator))
    held = torch.arange(10) % 5 % 2 == 1
    # Two objects of five pieces, each with a pose of its own.
    moved = Poses(random_rotations(2, generator), torch.randn(2, 3, generator=generator))
    objects = [torch.arange(5), torch.arange(5, 10)]
    for number, pieces in enumerate(objects):
        found = moved[torch.full((5,), number)] @ truth[pieces]
        back = moved_to_locks(found, Locks(held[pieces], truth[pieces]))
        assert torch.allclose(back.rotation, truth.rotation[pieces], atol=1e-5)
        assert torch.allclose(back.translation, truth.translation[pieces], atol=1e-5)


class FirstCells:
    """Puts every piece on the first cells, whatever is locked."""

    name = "first cells"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        assert puzzle.truth is None
        assert generator.initial_seed() == 7
        count = torch.arange(len(puzzle))
        yield Step(puzzle.board.poses(count, count % 4), 1.0)


def test_answers_of_any_solver_keep_locks_may_lack_confidence_and_have_a_valid_seed(cut: Cut) -> None:
    puzzle = locked(cut(3, 4), [0, 7], [11, 0], [3, 2])
    cells, turns = puzzle.board.snap(assemble(puzzle, FirstCells(), seed=7).poses)
    assert (cells[[0, 7]].tolist(), turns[[0, 7]].tolist()) == ([11, 0], [3, 2])
    assert sorted(cells.tolist()) == list(range(12))
    assert not assemble(cut(2, 3), FirstCells(), seed=7).confidence.any()
    for seed in (-1, 2**63):
        with pytest.raises(InputError, match=f"seed {seed} is out of range"):
            assemble(puzzle, FirstCells(), seed)


def test_locked_pieces_determine_the_turn_of_the_whole(cut: Cut) -> None:
    puzzle = cut(3, 3)
    _, cells, turns = puzzle.board.turned(*puzzle.board.snap(puzzle.truth), 3)
    given = locked(puzzle, [4, 5], cells[[4, 5]].tolist(), turns[[4, 5]].tolist())
    answer = puzzle.board.snap(assemble(given, HybridSolver(config=QUICK)).poses)
    assert torch.equal(answer[0], cells)
    assert torch.equal(answer[1], turns)


def test_diffusion_holds_locked_poses_at_every_step(cut: Cut, oracle: Any) -> None:
    puzzle = cut(3, 3)
    given, model = locked(puzzle, [2], [5], [1]), oracle(puzzle)
    assert given.locks is not None
    wanted = model.space.to_vector(given.locks.poses)[2]
    chain = denoise(
        model, pack([given], match_finder(model)), 5, 2, torch.Generator().manual_seed(0), locks=given.locks
    )
    noises = []
    for time, (noisy, clean) in zip(model.schedule.visited(5)[1:], chain, strict=True):
        assert torch.allclose(clean.vectors[2], wanted.expand(2, -1))
        alpha = model.schedule.alpha_bar[time]
        if time:
            noises.append((noisy[2] - alpha.sqrt() * wanted) / (1 - alpha).sqrt())
    # The settled pose under one and the same noise, all the way down.
    assert all(torch.allclose(noise, noises[0], atol=1e-3) for noise in noises)
