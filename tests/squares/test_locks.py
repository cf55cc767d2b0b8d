"""Whatever a solver answers becomes an assembly: locked pieces stand where they are locked, no two share a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffassemble.assembly.answer import assemble
from diffassemble.assembly.locks import hold, moved_to_locks
from diffassemble.core import Board, InputError, Locks, Placements, Poses, Puzzle, Step
from diffassemble.core.poses import random_rotations
from diffassemble.kinds import make_solver, solve
from diffassemble.network.batch import pack
from diffassemble.network.sampling import denoise
from diffassemble.squares.edge_model import match_finder
from diffassemble.squares.hybrid import HybridSolver


def test_solvers_never_see_the_truth_and_may_have_no_opinion(cut: Callable[..., Puzzle]) -> None:
    class Blind:
        name = "blind"

        def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
            assert puzzle.truth is None
            assert generator.initial_seed() == 7
            yield Step(puzzle.board.poses(torch.arange(6), torch.zeros(6, dtype=torch.long)), 1.0)

    assembly = assemble(cut(2, 3), Blind(), seed=7)
    assert assembly.confidence.tolist() == [0.0] * 6


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_seeds_out_of_range(cut: Callable[..., Puzzle], reading_order: Any, seed: int) -> None:
    puzzle = cut(2, 3)
    with pytest.raises(InputError, match=f"seed {seed} is out of range"):
        assemble(puzzle, reading_order(puzzle), seed)


def test_the_front_door(cut: Callable[..., Puzzle], tiny_model: Path) -> None:
    puzzle = cut(2, 3)
    one, two = (solve(puzzle, model=str(tiny_model), samples=2, steps=2, seed=3) for _ in range(2))
    assert torch.equal(one.poses.translation, two.poses.translation)
    assert one.solver == "hybrid"
    assert len(one.history) == len(two.history) > 0


def test_the_front_door_takes_a_budget(cut: Callable[..., Puzzle], tiny_model: Path) -> None:
    assembly = solve(cut(2, 3), model=str(tiny_model), samples=1, steps=1, budget=0.1)
    assert len(assembly.confidence) == 6
    with pytest.raises(InputError, match="budget 0 leaves no time"):
        solve(cut(2, 3), "gallagher", budget=0.0)


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
    locks = Locks(held, board.poses(wanted, (turns + 1) % 4))
    new_cells, new_turns = hold((cells, turns), board, locks)
    assert torch.equal(new_cells[held], wanted[held])
    assert torch.equal(new_turns[held], ((turns + 1) % 4)[held])
    assert len(new_cells.unique()) == pieces
    assert 0 <= int(new_cells.min()) <= int(new_cells.max()) < board.cells


@pytest.mark.parametrize("by", range(4))
def test_a_right_whole_is_turned_and_not_torn_apart(by: int) -> None:
    board = Board(4, 4)
    cells, turns = torch.randperm(16, generator=torch.Generator().manual_seed(1)), torch.arange(16) % 4
    locks = Locks(torch.arange(16) < 2, board.poses(cells, turns))
    answer = hold(board.turned(cells, turns, by)[1:], board, locks)
    assert torch.equal(answer[0], cells)
    assert torch.equal(answer[1], turns)


def test_objects_are_moved_as_a_whole() -> None:
    generator = torch.Generator().manual_seed(0)
    truth = Poses(random_rotations(5, generator), torch.randn(5, 3, generator=generator))
    whole = Poses(random_rotations(1, generator), torch.randn(1, 3, generator=generator))[[0] * 5]
    locks = Locks(torch.tensor([False, True, False, True, False]), truth)
    back = moved_to_locks(whole @ truth, locks)
    assert torch.allclose(back.rotation, truth.rotation, atol=1e-5)
    assert torch.allclose(back.translation, truth.translation, atol=1e-5)


class Stubborn:
    """Puts every piece on the first cells, locks or not."""

    name = "stubborn"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        count = torch.arange(len(puzzle))
        yield Step.last(Placements(puzzle.board.poses(count, count % 4), torch.ones(len(puzzle))))


def test_solvers_that_know_nothing_of_locks(cut: Callable[..., Puzzle]) -> None:
    puzzle = locked(cut(3, 4), [0, 7], [11, 0], [3, 2])
    assembly = assemble(puzzle, Stubborn())
    cells, turns = puzzle.board.snap(assembly.poses)
    assert cells[[0, 7]].tolist() == [11, 0]
    assert turns[[0, 7]].tolist() == [3, 2]
    assert sorted(cells.tolist()) == list(range(12))


@pytest.mark.parametrize("name", ["gallagher", "yu", "huroyan"])
def test_border_solvers_turn_the_whole_to_what_is_locked(cut: Callable[..., Puzzle], name: str) -> None:
    puzzle = cut(3, 3)
    truth = puzzle.board.snap(puzzle.truth)
    _, cells, turns = puzzle.board.turned(*truth, 1)
    given = locked(puzzle, [4], [int(cells[4])], [int(turns[4])])
    answer = puzzle.board.snap(assemble(given, make_solver("squares", name)).poses)
    assert torch.equal(answer[0], cells)
    assert torch.equal(answer[1], turns)


def test_diffusion_holds_locked_poses_at_every_step(cut: Callable[..., Puzzle], oracle: Callable) -> None:
    puzzle = cut(3, 3)
    given = locked(puzzle, [2], [5], [1])
    model = oracle(puzzle)
    assert given.locks is not None
    wanted = model.space.to_vector(given.locks.poses)[2]
    batch = pack([given], match_finder(model))
    drawn = torch.Generator().manual_seed(0)
    noises = []
    times = model.schedule.visited(5)[1:]
    for time, (noisy, clean) in zip(times, denoise(model, batch, 5, 2, drawn, locks=given.locks), strict=True):
        assert torch.allclose(clean.vectors[2], wanted.expand(2, -1))
        alpha = model.schedule.alpha_bar[time]
        if time:
            noises.append((noisy[2] - alpha.sqrt() * wanted) / (1 - alpha).sqrt())
    # The settled pose under one and the same noise, all the way down.
    assert all(torch.allclose(noise, noises[0], atol=1e-3) for noise in noises)


def test_the_search_builds_around_what_is_locked(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(3, 3)
    _, cells, turns = puzzle.board.turned(*puzzle.board.snap(puzzle.truth), 3)
    given = locked(puzzle, [4, 5], cells[[4, 5]].tolist(), turns[[4, 5]].tolist())
    answer = puzzle.board.snap(assemble(given, HybridSolver()).poses)
    assert torch.equal(answer[0], cells)
    assert torch.equal(answer[1], turns)
