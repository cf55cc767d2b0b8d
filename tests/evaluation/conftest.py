"""Pictures to evaluate on, and solvers whose scores are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.geometry import Poses
from diffassemble.puzzle import Puzzle, Step


@dataclass
class FakeSolver:
    """Answers by a function of the puzzle and the generator, and remembers what it was shown."""

    name: str
    answer: Callable[[Puzzle, torch.Generator], Poses]
    shown: list[Puzzle] = field(default_factory=list)

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        self.shown.append(puzzle)
        # A first guess that must not be scored.
        yield Step(puzzle.board.poses(*random_placement(puzzle, generator)), 0.5)
        yield Step(self.answer(puzzle, generator), 1.0, torch.ones(len(puzzle)))


def random_placement(puzzle: Puzzle, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    cells = torch.randperm(puzzle.board.cells, generator=generator)[: len(puzzle)]
    return cells, torch.randint(0, 4, (len(puzzle),), generator=generator)


@pytest.fixture
def random_solver() -> FakeSolver:
    return FakeSolver("random", lambda puzzle, g: puzzle.board.poses(*random_placement(puzzle, g)))


@pytest.fixture
def oracle() -> Callable[..., FakeSolver]:
    """A solver that was told the truths of the puzzles to come; it may turn the whole at the end."""

    def make(puzzles: list[Puzzle], turned: int = 0) -> FakeSolver:
        truths = iter(puzzles)

        def answer(puzzle: Puzzle, generator: torch.Generator) -> Poses:
            truth = next(truths).truth
            assert truth is not None
            _, cells, turns = puzzle.board.turned(*puzzle.board.snap(truth), turned)
            return puzzle.board.poses(cells, turns)

        return FakeSolver("oracle", answer)

    return make


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    """Six pictures of noise, of different shapes."""
    generator = np.random.default_rng(0)
    folder = tmp_path / "noise"
    folder.mkdir()
    paths = []
    for index in range(6):
        height, width = 60 + 10 * index, 90
        path = folder / f"{index}.png"
        Image.fromarray(generator.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(path)
        paths.append(path)
    return paths
