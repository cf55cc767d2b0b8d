"""Several solvers on several collections, grids and kinds of damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from diffassemble.evaluation.benchmark import Row, Score, evaluate
from diffassemble.evaluation.interval import Interval, bootstrap_interval
from diffassemble.puzzle import Board, Solver


@dataclass(frozen=True)
class Sweep:
    """All combinations to measure; `collections` are names with their pictures."""

    solvers: Sequence[Solver]
    collections: Sequence[tuple[str, Sequence[Path]]]
    boards: Sequence[Board]
    missing: Sequence[float] = (0.0,)
    erode: Sequence[int] = (0,)
    limit: int | None = None
    seed: int = 0

    @property
    def puzzles(self) -> int:
        """How many puzzles will be solved in all."""
        each = len(self.boards) * len(self.missing) * len(self.erode) * len(self.solvers)
        return each * sum(len(pictures[: self.limit]) for _, pictures in self.collections)


@dataclass(frozen=True)
class Measured:
    """A row with the 95 % intervals of its two accuracies."""

    row: Row
    accuracy: Interval
    accuracy_free: Interval


def run_sweep(sweep: Sweep, report: Callable[[Score], None] = lambda score: None) -> Iterator[Measured]:
    """Measure every combination, the solvers side by side on each; `report` hears of every puzzle."""
    for (name, pictures), board, missing, erode, solver in product(
        sweep.collections, sweep.boards, sweep.missing, sweep.erode, sweep.solvers
    ):
        scores: list[Score] = []

        def heard(score: Score, scores: list[Score] = scores) -> None:
            scores.append(score)
            report(score)

        row = evaluate(
            solver,
            pictures,
            board,
            missing=missing,
            erode=erode,
            limit=sweep.limit,
            seed=sweep.seed,
            data=name,
            report=heard,
        )
        yield Measured(
            row,
            bootstrap_interval([score.accuracy for score in scores]),
            bootstrap_interval([score.accuracy_free for score in scores]),
        )
