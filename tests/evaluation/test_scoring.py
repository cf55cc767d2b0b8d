"""Puzzles are scored by their numbers, whoever does it and in whatever order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import Board, InputError, Puzzle, Solver
from diffassemble.evaluation.benchmark import evaluate
from diffassemble.evaluation.puzzles import Draws, benchmark_puzzles
from diffassemble.evaluation.scoring import Score, score_answer, score_here


def test_scores_come_with_their_numbers(oracle: Callable[..., Any], random_solver: Any, pictures: list[Path]) -> None:
    draws = Draws(pictures, Board(2, 3), puzzles=len(pictures) + 2)
    puzzles = [puzzle for puzzle, _ in benchmark_puzzles(pictures, Board(2, 3), puzzles=len(pictures) + 2)]
    chosen = [3, 0, len(pictures)]
    found = dict(score_here(oracle([puzzles[number] for number in chosen]), draws, chosen))
    assert list(found) == chosen
    assert all(score.accuracy == 100 and score.pieces == 6 for score in found.values())
    assert not list(score_here(random_solver, draws, []))


def test_rows_do_not_depend_on_the_order_of_arrival(random_solver: Any, pictures: list[Path]) -> None:
    def backwards(solver: Solver, draws: Draws, numbers: Sequence[int]) -> Iterator[tuple[int, Score]]:
        return score_here(solver, draws, numbers[::-1])

    rows = [evaluate(random_solver, pictures, Board(3, 3), scoring=scoring) for scoring in (score_here, backwards)]
    assert replace(rows[1], seconds_per_puzzle=0.0, peak_mb=0.0) == replace(
        rows[0], seconds_per_puzzle=0.0, peak_mb=0.0
    )


def test_what_has_no_truth_cannot_be_scored(random_solver: Any, pictures: list[Path]) -> None:
    puzzle: Puzzle = Draws(pictures, Board(2, 2)).puzzle(0)[0].without_truth()
    with pytest.raises(InputError, match="without its truth"):
        score_answer(random_solver, puzzle, torch.Generator())
