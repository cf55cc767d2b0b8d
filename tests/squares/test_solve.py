"""From a solver's steps to an assembly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import InputError, Puzzle, Step
from diffassemble.core.solver import assemble
from diffassemble.kinds import solve
from diffassemble.squares.diffusion import DiffusionSolver


def test_all_steps_become_history(cut: Callable[..., Puzzle], oracle: Any) -> None:
    puzzle = cut(2, 3)
    seen: list[Step] = []
    assembly = assemble(puzzle, DiffusionSolver(oracle(puzzle), denoising_steps=3), on_step=seen.append)
    assert [step.poses for step in seen] == list(assembly.history)
    assert assembly.poses is seen[-1].poses
    assert assembly.puzzle is puzzle
    assert assembly.solver == "diffusion"
    assert assembly.confidence.tolist() == [1.0] * 6
    assert assembly.seconds > 0


def test_solvers_never_see_the_truth_and_may_have_no_opinion(cut: Callable[..., Puzzle]) -> None:
    class Blind:
        name = "blind"

        def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
            assert puzzle.truth is None
            assert generator.initial_seed() == 7
            yield Step(puzzle.board.poses(torch.arange(6), torch.zeros(6, dtype=torch.long)), 1.0)

    assembly = assemble(cut(2, 3), Blind(), seed=7)
    assert assembly.confidence.tolist() == [1.0] * 6
    assert assembly.puzzle.truth is not None


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
    assert len(one.history) == len(two.history) > 2


def test_the_front_door_takes_a_budget(cut: Callable[..., Puzzle], tiny_model: Path) -> None:
    assembly = solve(cut(2, 3), model=str(tiny_model), samples=1, steps=1, budget=0.1)
    assert len(assembly.confidence) == 6
    with pytest.raises(InputError, match="budget 0 leaves no time"):
        solve(cut(2, 3), "gallagher", budget=0.0)
