"""One answer scored, and who does that for many puzzles: this process, or others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from diffassemble.core import InputError, Poses, Puzzle, Solver, Step
from diffassemble.evaluation.metrics import direct_comparison, direct_comparison_free, neighbour_accuracy, perfect
from diffassemble.evaluation.puzzles import Draws


@dataclass(frozen=True)
class Score:
    """One puzzle: percent right as it stands, at the best turn of the whole, and of neighbour pairs."""

    accuracy: float
    accuracy_free: float
    neighbours: float
    perfect: bool
    seconds: float
    pieces: int


Scoring = Callable[[Solver, Draws, Sequence[int]], Iterator[tuple[int, Score]]]
"""Scores a solver on the puzzles with these numbers, in any order: each number with its score."""


def score_here(solver: Solver, draws: Draws, numbers: Sequence[int]) -> Iterator[tuple[int, Score]]:
    """A `Scoring` in this process, one puzzle after the other."""
    for number in numbers:
        yield number, score_answer(solver, *draws.puzzle(number))


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
