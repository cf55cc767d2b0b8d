"""Pictures to evaluate on, and solvers whose scores are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.evaluation import TABLES, Comparison, Measured, Row, compare_accuracy, compare_seconds
from diffassemble.geometry import Poses
from diffassemble.puzzle import Board, Puzzle, Step


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


@pytest.fixture
def measured() -> Callable[..., Measured]:
    """A result with the given accuracy, orientation-free accuracy and seconds."""

    def make(solver: str, right: float, free: float, seconds: float = 1.0) -> Measured:
        row = Row(solver, "a/val", "6x6", 36, 0.0, 0, 9, right, free, 50.0, 50.0, seconds, 100.0, 0)
        return Measured(row, (right - 1, right + 1), (free - 2, free + 2))

    return make


@pytest.fixture
def accuracies(measured: Callable[..., Measured]) -> Comparison:
    """A learned and a border solver beside Table 4, at 6x6 and at 7x7, of which the paper says nothing."""
    results = [
        [measured("diffusion", 71.0, 81.0), measured("diffusion", 72.0, 82.0)],
        [measured("gallagher", 13.0, 33.0), measured("gallagher", 14.0, 94.0)],
    ]
    return compare_accuracy(TABLES["4"], "faces", [Board(6, 6), Board(7, 7)], results, {"gallagher", "other"})


@pytest.fixture
def times(measured: Callable[..., Measured]) -> Comparison:
    """Two solvers beside the paper's times at 36 and 900 pieces."""
    results = [
        [measured("hybrid", 1.0, 1.0, 0.25), measured("hybrid", 1.0, 1.0, 9.5)],
        [measured("yu", 1.0, 1.0, 0.5), measured("yu", 1.0, 1.0, 8.75)],
    ]
    return compare_seconds(TABLES["time"], "seconds", [Board(6, 6), Board(30, 30)], results)
