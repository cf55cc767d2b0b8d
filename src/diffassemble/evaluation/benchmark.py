"""One solver on many puzzles."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch

from diffassemble.evaluation.memory import peak_megabytes
from diffassemble.evaluation.metrics import (
    direct_comparison,
    direct_comparison_free,
    neighbour_accuracy,
    perfect,
)
from diffassemble.evaluation.puzzles import benchmark_puzzles
from diffassemble.geometry import Poses
from diffassemble.puzzle import Board, InputError, Puzzle, Solver, Step


@dataclass(frozen=True)
class Score:
    """One puzzle: percent right as it stands, at the best turn of the whole, and of neighbour pairs."""

    accuracy: float
    accuracy_free: float
    neighbours: float
    perfect: bool
    seconds: float
    pieces: int


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
) -> Row:
    """Solve the puzzles of `benchmark_puzzles` and average the scores; `report` hears of each as it comes.

    `data` names the pictures in the row (default: their folder's name).
    """
    scores = []
    for puzzle, generator in benchmark_puzzles(
        pictures, board, missing=missing, erode=erode, limit=limit, puzzles=puzzles, seed=seed, size=size
    ):
        scores.append(score_answer(solver, puzzle, generator))
        report(scores[-1])
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


def score_answer(solver: Solver, puzzle: Puzzle, generator: torch.Generator) -> Score:
    """Let a solver put together a puzzle without showing it the truth, and score its last step."""
    if puzzle.truth is None:
        raise InputError("a puzzle without its truth can't be scored; cut one from a picture")
    start = time.perf_counter()
    answer = _answer(solver, puzzle.without_truth(), generator)
    seconds = time.perf_counter() - start
    board = puzzle.board
    placement = (board, *board.snap(answer), *board.snap(puzzle.truth))
    return Score(
        accuracy=direct_comparison(*placement),
        accuracy_free=direct_comparison_free(*placement),
        neighbours=neighbour_accuracy(*placement),
        perfect=perfect(*placement),
        seconds=seconds,
        pieces=len(puzzle),
    )


def _answer(solver: Solver, puzzle: Puzzle, generator: torch.Generator) -> Poses:
    last: Step | None = None
    for step in solver.steps(puzzle, generator):
        last = step
    if last is None:
        raise RuntimeError(f"solver {solver.name} gave no answer")
    return last.poses
