"""All combinations, in order, with intervals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from diffassemble.core import Board, InputError
from diffassemble.evaluation.puzzles import benchmark_puzzles
from diffassemble.evaluation.scoring import Score
from diffassemble.evaluation.sweep import Cell, Sweep, all_cells, run_sweep, warm_up


def test_every_combination_is_measured_once(random_solver: Any, pictures: list[Path]) -> None:
    cells = all_cells(
        [("one", pictures[:3]), ("two", pictures[3:5])],
        [Board(2, 2), Board(2, 3)],
        missing=(0.0, 0.5),
        erode=(0, 1),
    )
    sweep = Sweep([random_solver], cells, limit=2)
    heard: list[Score] = []
    rows = [result.row for result in run_sweep(sweep, heard.append)]
    seen = {(row.data, row.grid, row.missing, row.erode) for row in rows}
    assert len(rows) == len(seen) == 16
    assert sweep.total == len(heard) == sum(row.puzzles for row in rows) == 32


def test_cells_may_have_pictures_of_their_own(random_solver: Any, pictures: list[Path]) -> None:
    cells = [Cell("small", pictures[:1], Board(2, 2)), Cell("large", pictures[1:], Board(3, 3), missing=0.3)]
    sweep = Sweep([random_solver, random_solver], cells, puzzles=3, size=10)
    rows = [result.row for result in run_sweep(sweep)]
    assert [(row.data, row.grid, row.missing, row.puzzles) for row in rows] == [
        *[("small", "2x2", 0.0, 3)] * 2,
        *[("large", "3x3", 0.3, 5)] * 2,
    ]
    assert sweep.total == 16
    assert all(puzzle.pieces.size == 10 for puzzle in random_solver.shown)


def test_solvers_stand_side_by_side_with_their_intervals(
    random_solver: Any, oracle: Callable[..., Any], pictures: list[Path]
) -> None:
    boards = [Board(2, 2), Board(3, 3)]
    truths = chain.from_iterable(benchmark_puzzles(pictures, board) for board in boards)
    knowing = oracle([puzzle for puzzle, _ in truths])
    results = list(run_sweep(Sweep([knowing, random_solver], all_cells([("noise", pictures)], boards))))
    assert [result.row.solver for result in results] == ["oracle", "random"] * 2
    for result in results[::2]:
        assert result.accuracy == result.accuracy_free == (100.0, 100.0)
    for result in results[1::2]:
        assert result.accuracy[0] <= result.row.accuracy <= result.accuracy[1]
        assert result.accuracy_free[0] <= result.row.accuracy_free <= result.accuracy_free[1]


def test_nothing_is_solved_if_any_cell_is_impossible(random_solver: Any, pictures: list[Path]) -> None:
    cells = all_cells([("noise", pictures)], [Board(2, 2)], missing=(0.0, 1.0))
    with pytest.raises(InputError, match=r"missing 1\.0"):
        list(run_sweep(Sweep([random_solver], cells)))
    assert not random_solver.shown


def test_every_solver_warms_up_on_a_small_puzzle(random_solver: Any, pictures: list[Path]) -> None:
    warm_up(Sweep([random_solver, random_solver], all_cells([("noise", pictures)], [Board(20, 20)]), size=8))
    assert [len(puzzle) for puzzle in random_solver.shown] == [9, 9]
