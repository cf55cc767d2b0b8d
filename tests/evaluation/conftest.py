"""Pictures and broken objects to evaluate on, and solvers whose scores are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.core import Board, Mesh, Placements, Poses, Puzzle, Solver, Step
from diffassemble.evaluation.fragments import ObjectCell
from diffassemble.evaluation.squares import PictureCell
from diffassemble.evaluation.sweep import Cell, Draws, Journal, Scoring, Sweep, run_sweep, score_here


@dataclass
class FakeSolver:
    """Answers by a function of the puzzle and the generator, and remembers what it was shown."""

    name: str
    answer: Callable[[Puzzle, torch.Generator], Poses]
    sure: bool = True
    shown: list[Puzzle] = field(default_factory=list)

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        self.shown.append(puzzle)
        # A first guess that must not be scored.
        yield Step(random_poses(puzzle, generator), 0.5)
        answer = self.answer(puzzle, generator)
        yield Step.last(Placements(answer, torch.ones(len(puzzle)))) if self.sure else Step(answer, 1.0)


def random_poses(puzzle: Puzzle, generator: torch.Generator) -> Poses:
    """By chance: a placement on the board, or a move of every fragment."""
    if puzzle.lattice is None:
        move = torch.randn(len(puzzle), 3, generator=generator)
        return Poses(Poses.identity(len(puzzle), 3).rotation, move)
    cells = torch.randperm(puzzle.board.cells, generator=generator)[: len(puzzle)]
    return puzzle.board.poses(cells, torch.randint(0, 4, (len(puzzle),), generator=generator))


@pytest.fixture
def random_solver() -> FakeSolver:
    return FakeSolver("random", random_poses)


@pytest.fixture
def nothing() -> FakeSolver:
    """Leaves fragments as they are."""
    return FakeSolver("nothing", lambda puzzle, _: Poses.identity(len(puzzle), 3))


@pytest.fixture
def oracle() -> Callable[..., FakeSolver]:
    """A solver that was told the truths of the cases to come; it may turn the whole of a picture at the end."""

    def make(cells: list[Cell], turned: int = 0, **options: int) -> FakeSolver:
        draws = [Draws(cell, **options) for cell in cells]
        truths = (each.case(number)[0].puzzle.truth for each in draws for number in range(len(each)))

        def answer(puzzle: Puzzle, generator: torch.Generator) -> Poses:
            truth = next(truths)
            if not turned:
                return truth
            _, cells, turns = puzzle.board.turned(*puzzle.board.snap(truth), turned)
            return puzzle.board.poses(cells, turns)

        return FakeSolver("oracle", answer)

    return make


@pytest.fixture
def rows() -> Callable[..., list[Any]]:
    """The rows of solvers on one cell."""

    def measure(
        cell: Cell, *solvers: Solver, scoring: Scoring = score_here, journal: Journal | None = None, **options: Any
    ) -> list[Any]:
        sweep = Sweep(solvers, [Draws(cell, **options)], scoring, journal)
        return list(run_sweep(sweep))

    return measure


@pytest.fixture
def untimed() -> Callable[[list[Any]], list[Any]]:
    """All of rows that does not depend on the machine."""
    return lambda rows: [replace(row, seconds_per_puzzle=0.0, peak_mb=0.0) for row in rows]


@pytest.fixture(params=["squares", "fragments"])
def cell(request: pytest.FixtureRequest, pictures: list[Path], fractures: list[Sliced]) -> Cell:
    """A small cell of each kind of pieces."""
    return {
        "squares": PictureCell("noise", pictures[:5], Board(2, 2), size=8),
        "fragments": ObjectCell("bars", fractures, anchors=("none", "largest")),
    }[request.param]


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
