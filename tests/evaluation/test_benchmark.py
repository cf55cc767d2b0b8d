"""Solvers with known scores get them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import Board, InputError, Puzzle, Step
from diffassemble.evaluation.benchmark import Row, evaluate
from diffassemble.evaluation.puzzles import benchmark_puzzles
from diffassemble.evaluation.scoring import Score, score_answer

JSON_FIELDS = [
    *("solver", "data", "grid", "pieces", "missing", "erode", "puzzles", "accuracy", "accuracy_free"),
    *("neighbours", "perfect", "seconds_per_puzzle", "peak_mb", "seed"),
]


def puzzles(pictures: list[Path], board: Board, **options: Any) -> list[Puzzle]:
    return [puzzle for puzzle, _ in benchmark_puzzles(pictures, board, **options)]


def test_rows_have_the_promised_fields() -> None:
    assert [field.name for field in fields(Row)] == JSON_FIELDS


@pytest.mark.parametrize("board", [Board(3, 3), Board(2, 4)])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_an_oracle_gets_everything(
    oracle: Callable[..., Any], pictures: list[Path], board: Board, missing: float
) -> None:
    solver = oracle(puzzles(pictures, board, missing=missing))
    row = evaluate(solver, pictures, board, missing=missing)
    assert (row.accuracy, row.accuracy_free, row.neighbours, row.perfect) == (100.0, 100.0, 100.0, 100.0)
    assert (row.solver, row.data, row.grid) == ("oracle", "noise", f"{board.rows}x{board.cols}")
    assert row.pieces == board.cells - round(missing * board.cells)
    assert row.puzzles == len(pictures)


@pytest.mark.parametrize("turned", [1, 2, 3])
def test_an_oracle_that_turns_the_whole_is_right_orientation_free_only(
    oracle: Callable[..., Any], pictures: list[Path], turned: int
) -> None:
    board = Board(4, 4)
    row = evaluate(oracle(puzzles(pictures, board), turned), pictures, board)
    assert (row.accuracy, row.accuracy_free, row.neighbours, row.perfect) == (0.0, 100.0, 100.0, 100.0)


def test_random_answers_score_at_chance(random_solver: Any, pictures: list[Path]) -> None:
    # 180 answers of 4 pieces each: the share of right ones is 1/16 within five standard errors.
    row = evaluate(random_solver, pictures * 30, Board(2, 2), size=8)
    assert row.puzzles == 180
    assert row.accuracy == pytest.approx(100 / 16, abs=5 * 100 * (0.25 / 180) ** 0.5 / 4)
    assert row.accuracy_free > row.accuracy


def test_solvers_never_see_the_truth(random_solver: Any, pictures: list[Path]) -> None:
    evaluate(random_solver, pictures, Board(3, 3), missing=0.2)
    assert len(random_solver.shown) == len(pictures)
    assert all(puzzle.truth is None for puzzle in random_solver.shown)
    assert all(puzzle.names == random_solver.shown[0].names for puzzle in random_solver.shown)


def test_every_solver_gets_the_same_puzzles(
    random_solver: Any, oracle: Callable[..., Any], pictures: list[Path]
) -> None:
    board = Board(3, 3)
    other = oracle(puzzles(pictures, board, seed=7, erode=1))
    # One solver uses up randomness before the other starts; neither may feel it.
    torch.rand(3)
    evaluate(random_solver, pictures, board, seed=7, erode=1)
    torch.rand(5)
    evaluate(other, pictures, board, seed=7, erode=1)
    for one, two in zip(random_solver.shown, other.shown, strict=True):
        assert torch.equal(one.pieces.pixels, two.pieces.pixels)


def test_same_seed_same_row(random_solver: Any, pictures: list[Path]) -> None:
    first, second = (evaluate(random_solver, pictures, Board(2, 2), seed=3) for _ in range(2))
    assert (first.accuracy, first.neighbours) == (second.accuracy, second.neighbours)


def test_reordered_pieces_score_the_same(oracle: Callable[..., Any], pictures: list[Path]) -> None:
    board = Board(4, 4)
    puzzle = puzzles(pictures[:1], board)[0]
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    # The answer is the truth but for two exchanged pieces.
    swapped = torch.tensor([1, 0, *range(2, 16)])

    def score(given: Puzzle, answered: Puzzle) -> tuple[float, float, float]:
        result = score_answer(oracle([answered]), given, torch.Generator())
        return result.accuracy, result.accuracy_free, result.neighbours

    plain = score(puzzle, puzzle.reordered(swapped))
    assert plain == score(puzzle.reordered(order), puzzle.reordered(swapped).reordered(order))
    assert plain[0] == 87.5


def test_each_puzzle_is_reported(random_solver: Any, pictures: list[Path]) -> None:
    heard: list[Score] = []
    row = evaluate(random_solver, pictures, Board(2, 2), limit=4, data="my pictures", report=heard.append)
    assert len(heard) == row.puzzles == 4
    assert row.accuracy == pytest.approx(sum(score.accuracy for score in heard) / 4)
    assert row.seconds_per_puzzle == pytest.approx(sum(score.seconds for score in heard) / 4)
    assert row.data == "my pictures"
    assert row.peak_mb > 10


def test_further_puzzles_count(random_solver: Any, pictures: list[Path]) -> None:
    row = evaluate(random_solver, pictures, Board(2, 2), puzzles=8, size=8)
    assert row.puzzles == len(random_solver.shown) == 8
    assert all(puzzle.pieces.size == 8 for puzzle in random_solver.shown)


def test_a_puzzle_without_truth_is_refused(random_solver: Any, pictures: list[Path]) -> None:
    puzzle = puzzles(pictures[:1], Board(2, 2))[0].without_truth()
    with pytest.raises(InputError, match="truth"):
        score_answer(random_solver, puzzle, torch.Generator())


def test_a_solver_that_gives_no_answer_is_a_fault(pictures: list[Path]) -> None:
    class Silent:
        name = "silent"

        def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
            return iter(())

    with pytest.raises(RuntimeError, match="silent"):
        evaluate(Silent(), pictures, Board(2, 2))
