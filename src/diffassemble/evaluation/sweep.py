"""Several solvers on several collections, grids and kinds of damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from diffassemble.core import Board, Solver
from diffassemble.evaluation.benchmark import Row, evaluate
from diffassemble.evaluation.interval import Interval, bootstrap_interval
from diffassemble.evaluation.journal import Journal
from diffassemble.evaluation.puzzles import check_wishes, puzzle_count
from diffassemble.evaluation.scoring import Score, Scoring, score_here


@dataclass(frozen=True)
class Cell:
    """What a row is measured on; `data` names the pictures."""

    data: str
    pictures: Sequence[Path]
    board: Board
    missing: float = 0.0
    erode: int = 0


@dataclass(frozen=True)
class Sweep:
    """Every solver on every cell, on the same puzzles; see `benchmark_puzzles` for how these are drawn.

    `scoring` is who solves them; what the `journal` knows already is not solved again.
    """

    solvers: Sequence[Solver]
    cells: Sequence[Cell]
    limit: int | None = None
    puzzles: int | None = None
    seed: int = 0
    size: int = 32
    scoring: Scoring = score_here
    journal: Journal | None = None

    @property
    def total(self) -> int:
        """How many puzzles will be solved in all."""
        each = sum(puzzle_count(len(cell.pictures), self.limit, self.puzzles) for cell in self.cells)
        return each * len(self.solvers)


@dataclass(frozen=True)
class Measured:
    """A row with the 95 % intervals of its two accuracies."""

    row: Row
    accuracy: Interval
    accuracy_free: Interval


def all_cells(
    collections: Sequence[tuple[str, Sequence[Path]]],
    boards: Sequence[Board],
    missing: Sequence[float] = (0.0,),
    erode: Sequence[int] = (0,),
) -> list[Cell]:
    """Every combination; collections are names with their pictures."""
    return [
        Cell(name, pictures, board, share, pixels)
        for (name, pictures), board, share, pixels in product(collections, boards, missing, erode)
    ]


def run_sweep(sweep: Sweep, report: Callable[[Score], None] = lambda score: None) -> Iterator[Measured]:
    """Measure cell by cell, the solvers side by side on each; `report` hears of every puzzle.

    All wishes are checked before the first puzzle is solved.
    """
    for cell in sweep.cells:
        check_wishes(
            cell.pictures,
            missing=cell.missing,
            erode=cell.erode,
            limit=sweep.limit,
            puzzles=sweep.puzzles,
            seed=sweep.seed,
            size=sweep.size,
        )
    for cell, solver in product(sweep.cells, sweep.solvers):
        yield _measure(solver, cell, sweep, report)


def warm_up(sweep: Sweep) -> None:
    """Let every solver answer a small puzzle, so that what it compiles or loads at first is not measured."""
    for solver in sweep.solvers:
        evaluate(solver, sweep.cells[0].pictures, Board(3, 3), limit=1, size=sweep.size)


def _measure(solver: Solver, cell: Cell, sweep: Sweep, report: Callable[[Score], None]) -> Measured:
    scores: list[Score] = []

    def heard(score: Score) -> None:
        scores.append(score)
        report(score)

    row = evaluate(
        solver,
        cell.pictures,
        cell.board,
        missing=cell.missing,
        erode=cell.erode,
        limit=sweep.limit,
        puzzles=sweep.puzzles,
        seed=sweep.seed,
        size=sweep.size,
        data=cell.data,
        report=heard,
        scoring=sweep.scoring,
        journal=sweep.journal,
    )
    return Measured(
        row,
        bootstrap_interval([score.accuracy for score in scores]),
        bootstrap_interval([score.accuracy_free for score in scores]),
    )
