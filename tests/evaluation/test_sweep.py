"""All combinations, in order, with intervals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

from diffassemble.evaluation.benchmark import Score
from diffassemble.evaluation.puzzles import benchmark_puzzles
from diffassemble.evaluation.sweep import Sweep, run_sweep
from diffassemble.puzzle import Board


def test_every_combination_is_measured_once(random_solver: Any, pictures: list[Path]) -> None:
    sweep = Sweep(
        solvers=[random_solver],
        collections=[("one", pictures[:3]), ("two", pictures[3:5])],
        boards=[Board(2, 2), Board(2, 3)],
        missing=(0.0, 0.5),
        erode=(0, 1),
        limit=2,
    )
    heard: list[Score] = []
    rows = [result.row for result in run_sweep(sweep, heard.append)]
    seen = {(row.data, row.grid, row.missing, row.erode) for row in rows}
    assert len(rows) == len(seen) == 16
    assert sweep.puzzles == len(heard) == sum(row.puzzles for row in rows) == 32


def test_solvers_stand_side_by_side_with_their_intervals(
    random_solver: Any, oracle: Callable[..., Any], pictures: list[Path]
) -> None:
    boards = [Board(2, 2), Board(3, 3)]
    truths = chain.from_iterable(benchmark_puzzles(pictures, board) for board in boards)
    knowing = oracle([puzzle for puzzle, _ in truths])
    results = list(run_sweep(Sweep([knowing, random_solver], [("noise", pictures)], boards)))
    assert [result.row.solver for result in results] == ["oracle", "random"] * 2
    for result in results[::2]:
        assert result.accuracy == result.accuracy_free == (100.0, 100.0)
    for result in results[1::2]:
        assert result.accuracy[0] <= result.row.accuracy <= result.accuracy[1]
        assert result.accuracy_free[0] <= result.row.accuracy_free <= result.accuracy_free[1]
