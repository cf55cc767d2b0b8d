"""Our figures beside those of the paper, never in one column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from diffassemble.core import Board
from diffassemble.evaluation.interval import Interval
from diffassemble.evaluation.quoted import PAPER_NAMES, PaperTable
from diffassemble.evaluation.sweep import Measured

ABSOLUTE, FREE, SECONDS, NOT_OURS = "absolute", "orient. free", "seconds", "not measured"


@dataclass(frozen=True)
class Line:
    """A method under one score, board by board: ours, the 95 % intervals of ours, and what the paper says of it."""

    method: str
    score: str
    ours: tuple[float | None, ...]
    paper: tuple[float | None, ...]
    intervals: tuple[Interval, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """All methods on one kind of pictures."""

    title: str
    boards: tuple[Board, ...]
    lines: tuple[Line, ...]


# The results of one solver, board by board.
Results = Sequence[Measured]


def compare_accuracy(
    table: PaperTable, pictures: str, boards: Sequence[Board], solvers: Sequence[Results], borders_only: Collection[str]
) -> Comparison:
    """Percent right as it stands and at the best turn of the whole; of solvers in `borders_only` the latter alone."""
    title = f"{pictures} ({PAPER_NAMES[pictures]} in the paper)"

    def lines(results: Results, paper: tuple[float | None, ...]) -> list[Line]:
        name = results[0].row.solver
        right = tuple(result.row.accuracy for result in results), tuple(result.accuracy for result in results)
        free = tuple(result.row.accuracy_free for result in results), tuple(result.accuracy_free for result in results)
        if name in borders_only:
            return [Line(name, FREE, free[0], paper, free[1])]
        return [Line(name, ABSOLUTE, right[0], paper, right[1]), Line(name, FREE, free[0], _nothing(boards), free[1])]

    return _compare(title, table, pictures, boards, solvers, lines)


def compare_seconds(table: PaperTable, title: str, boards: Sequence[Board], solvers: Sequence[Results]) -> Comparison:
    """Seconds a puzzle."""

    def lines(results: Results, paper: tuple[float | None, ...]) -> list[Line]:
        return [Line(results[0].row.solver, SECONDS, tuple(r.row.seconds_per_puzzle for r in results), paper)]

    return _compare(title, table, table.pictures[0], boards, solvers, lines)


def _compare(
    title: str,
    table: PaperTable,
    pictures: str,
    boards: Sequence[Board],
    solvers: Sequence[Results],
    lines: Callable[[Results, tuple[float | None, ...]], list[Line]],
) -> Comparison:
    """The lines of our solvers, then of those that only the paper has."""
    found: list[Line] = []
    for results in solvers:
        found += lines(results, table.figures(results[0].row.solver, pictures, boards))
    ours = {line.method for line in found}
    for method in table.methods:
        if method not in ours:
            found.append(Line(method, NOT_OURS, _nothing(boards), table.figures(method, pictures, boards)))
    return Comparison(title, tuple(boards), tuple(found))


def _nothing(boards: Sequence[Board]) -> tuple[None, ...]:
    return (None,) * len(boards)
