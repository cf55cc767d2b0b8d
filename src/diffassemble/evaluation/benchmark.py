"""One solver on many puzzles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from diffassemble.core import Board, Solver
from diffassemble.evaluation.journal import Journal
from diffassemble.evaluation.memory import peak_megabytes
from diffassemble.evaluation.puzzles import Draws
from diffassemble.evaluation.scoring import Score, Scoring, score_here


@dataclass(frozen=True)
class Row:
    """One line of a results table: means over puzzles; accuracies, neighbours and perfect in percent.

    `missing` is the share of pieces lost, `erode` the pixels lost at every side, `pieces` how many are given,
    `peak_mb` the highest memory of the process up to this row.
    """

    solver: str
    data: str
    grid: str
    pieces: int
    missing: float
    erode: int
    puzzles: int
    accuracy: float
    accuracy_free: float
    neighbours: float
    perfect: float
    seconds_per_puzzle: float
    peak_mb: float
    seed: int


def evaluate(
    solver: Solver,
    pictures: Sequence[Path],
    board: Board,
    *,
    missing: float = 0.0,
    erode: int = 0,
    limit: int | None = None,
    puzzles: int | None = None,
    seed: int = 0,
    size: int = 32,
    data: str | None = None,
    report: Callable[[Score], None] = lambda score: None,
    scoring: Scoring = score_here,
    journal: Journal | None = None,
) -> Row:
    """Solve the puzzles of `benchmark_puzzles` and average the scores; `report` hears of each as it comes.

    `data` names the pictures in the row (default: their folder's name). What the journal knows is not solved again.
    """
    draws = Draws(pictures, board, missing, erode, limit, puzzles, seed, size)
    draws.check()
    found: dict[int, Score] = {}
    for number, score in _scores(solver, draws, scoring, journal):
        found[number] = score
        report(score)
    scores = [found[number] for number in sorted(found)]
    return Row(
        solver=solver.name,
        data=data or pictures[0].parent.name,
        grid=f"{board.rows}x{board.cols}",
        pieces=scores[0].pieces,
        missing=missing,
        erode=erode,
        puzzles=len(scores),
        accuracy=fmean(score.accuracy for score in scores),
        accuracy_free=fmean(score.accuracy_free for score in scores),
        neighbours=fmean(score.neighbours for score in scores),
        perfect=fmean(100.0 * score.perfect for score in scores),
        seconds_per_puzzle=fmean(score.seconds for score in scores),
        peak_mb=round(peak_megabytes(), 1),
        seed=seed,
    )


def _scores(solver: Solver, draws: Draws, scoring: Scoring, journal: Journal | None) -> Iterator[tuple[int, Score]]:
    """The scores of all puzzles, each with its number: first those that the journal knows."""
    todo = []
    for number in range(len(draws)):
        known = None if journal is None else journal.look_up(solver.name, draws.identity(number))
        if known is None:
            todo.append(number)
        else:
            yield number, known
    for number, score in scoring(solver, draws, todo):
        if journal is not None:
            journal.note(solver.name, draws.identity(number), score)
        yield number, score
