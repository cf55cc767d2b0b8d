"""Pictures and broken objects to evaluate on, and solvers whose scores are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.core import Board, Mesh, Poses, Puzzle, Step
from diffassemble.evaluation.benchmark import Row
from diffassemble.evaluation.comparison import Comparison, compare_accuracy, compare_seconds
from diffassemble.evaluation.fragment_benchmark import FragmentRow
from diffassemble.evaluation.fragment_scores import Anchor, Figures, Group, PieceGroup
from diffassemble.evaluation.quoted import TABLES
from diffassemble.evaluation.sweep import Measured


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


@dataclass(frozen=True)
class Sliced:
    """A bar cut across into slabs, as a broken object."""

    category: str
    name: str
    cuts: tuple[float, ...]

    def meshes(self) -> tuple[Mesh, ...]:
        ends = (0.0, *self.cuts, 4.0)
        return tuple(
            _box(torch.tensor([low, 0.0, 0.0]), torch.tensor([high, 1.0, 1.5])) for low, high in pairwise(ends)
        )


def _box(low: torch.Tensor, high: torch.Tensor) -> Mesh:
    corners = torch.cartesian_prod(*(torch.tensor([0.0, 1.0]),) * 3) * (high - low) + low
    squares = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    return Mesh(corners, torch.tensor([half for a, b, c, d in squares for half in ((a, b, c), (a, c, d))]))


@pytest.fixture
def fractures() -> list[Sliced]:
    """Bars in two classes: of 2 and 4 pieces, and of 6, 10 and 6; one piece is a thin chip."""
    return [
        Sliced("beam", "beam/0", (2.5,)),
        Sliced("beam", "beam/1", (1.0, 1.8, 3.0)),
        Sliced("rod", "rod/0", (0.5, 1.0, 2.0, 3.0, 3.3)),
        Sliced("rod", "rod/1", (0.01, 0.4, 0.8, 1.2, 1.6, 2.0, 2.4, 2.8, 3.5)),
        Sliced("rod", "rod/2", (0.6, 1.1, 2.1, 2.9, 3.4)),
    ]


@dataclass
class FragmentSolver:
    """Answers by a function of what it is given, and remembers it."""

    name: str
    answer: Callable[[Puzzle, torch.Generator], Poses]
    sure: bool = True
    shown: list[Puzzle] = field(default_factory=list)

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        self.shown.append(puzzle)
        # A first guess that must not be scored.
        yield Step(Poses.identity(len(puzzle), 3), 0.5)
        yield Step(self.answer(puzzle, generator), 1.0, torch.ones(len(puzzle)) if self.sure else None)


@pytest.fixture
def fragment_solver() -> Callable[..., FragmentSolver]:
    """A solver of broken objects that answers by the given function; without one, it leaves all as it is."""

    def make(
        name: str = "nothing",
        answer: Callable[[Puzzle, torch.Generator], Poses] = lambda puzzle, _: Poses.identity(len(puzzle), 3),
        sure: bool = True,
    ) -> FragmentSolver:
        return FragmentSolver(name, answer, sure)

    return make


@pytest.fixture
def fragment_row() -> Callable[..., FragmentRow]:
    """A row with the given figures."""

    def make(
        solver: str, r: float, t: float, right: float, *, missing: float = 0.0, anchor: Anchor = "none", seeds: int = 1
    ) -> FragmentRow:
        figures = Figures(r, t, right, right - 1, right / 2, 3.25, r + 20, r + 10)
        spread = None if seeds == 1 else Figures(1.5, 0.4, 2.5, 1.0, 1.0, 1.0, 1.25, 1.0)
        groups = (Group("2", 5, figures), Group("3–4", 4, figures))
        chips = (PieceGroup("< 1 %", 7, 12.5, 80.5, 9.0, 120.0),)
        return FragmentRow(
            *(solver, "bad/everyday/val", 9, missing, 0.001 if seeds > 1 else 0.0, 0, anchor),
            **vars(figures),
            **{"seconds_per_object": 0.25, "peak_mb": 812.5, "seed": 0, "seeds": seeds},
            **{"plain": figures, "deviation": spread, "classes": groups, "by_pieces": groups},
            **{"by_size": chips, "by_confidence": (), "calibration": ()},
        )

    return make
