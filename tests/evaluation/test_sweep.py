"""The one sweep of all kinds: every combination once, the same cases for everyone, and a killed run goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import Board, InputError, Puzzle, Solver, Step
from diffassemble.evaluation.rows import Score
from diffassemble.evaluation.squares import PictureCell
from diffassemble.evaluation.sweep import Cell, Draws, Journal, Solved, Sweep, run_sweep, score_here, warm_up

SCORE = {"": Score(9, {"accuracy": 50.0}, 0.1, 3, 2, 1, columns={"right": (1.0, 0.0)})}
SETTINGS = {name: {"model": "jigsaw", "budget": math.inf} for name in ("hybrid", "diffusion", "random")}
NONE_LEFT = "limit 0 leaves no (objects|puzzles)"
Rows = Callable[..., list[Any]]


def content(draws: Draws) -> list[tuple[torch.Tensor, int]]:
    """The pieces of all cases, and the seeds of their generators."""
    drawn = [draws.case(number) for number in range(len(draws))]
    return [(case.given.pieces.content, generator.initial_seed()) for case, generator in drawn]


def same(one: list[tuple[torch.Tensor, int]], two: list[tuple[torch.Tensor, int]]) -> bool:
    return all(torch.equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(one, two, strict=True))


def test_too_few_items_are_drawn_again_with_the_next_seeds(cell: Cell) -> None:
    rounds = [*content(Draws(cell, seed=4)), *content(Draws(cell, seed=5)), *content(Draws(cell, seed=6, limit=3))]
    assert same(content(Draws(cell, puzzles=13, seed=4)), rounds)
    limited = [*content(Draws(cell, limit=2)), *content(Draws(cell, limit=2, seed=1))]
    assert same(content(Draws(cell, limit=2, puzzles=4)), limited)
    assert same(content(Draws(cell, limit=2, seeds=2)), limited)
    assert not torch.equal(rounds[0][0], rounds[5][0])
    assert [Draws(cell, limit=2).place(number) for number in range(2)] == [(0, 0), (2, 0)]
    assert len({tuple(Draws(cell).identity(number).items()) for number in range(5)}) == 5


@pytest.mark.parametrize(
    ("limit", "puzzles", "seeds", "count"),
    [(None, None, 1, 5), (2, None, 1, 2), (9, None, 1, 5), (None, 3, 1, 5), (None, 14, 1, 14), (2, 3, 2, 4)],
)
def test_the_number_of_cases_is_known_beforehand(
    cell: Cell, limit: int | None, puzzles: int | None, seeds: int, count: int
) -> None:
    assert len(Draws(cell, limit, puzzles, 0, seeds)) == count


@pytest.mark.parametrize(
    ("wish", "message"),
    [({"puzzles": 0}, "puzzles 0"), ({"seeds": 0}, "seeds 0"), ({"seed": -1}, "seed -1"), ({"limit": 0}, NONE_LEFT)],
)
def test_nothing_is_solved_if_anything_is_impossible(
    cell: Cell, random_solver: Any, rows: Rows, wish: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        rows(cell, random_solver, **wish)
    for missing in (1.0, -0.1):
        with pytest.raises(InputError, match=f"missing {missing}"):
            list(run_sweep(Sweep([random_solver], [Draws(cell), Draws(replace(cell, missing=missing))])))
    assert not random_solver.shown


def test_every_combination_is_measured_once(random_solver: Any, pictures: list[Path]) -> None:
    cells = [
        PictureCell(name, some, board, missing, size=8)
        for name, some in (("one", pictures[:3]), ("two", pictures[3:5]))
        for board in (Board(2, 2), Board(2, 3))
        for missing in (0.0, 0.5)
    ]
    sweep = Sweep([random_solver, replace(random_solver, name="again")], [Draws(cell, limit=2) for cell in cells])
    solved: list[Solved] = []
    rows = list(run_sweep(sweep, solved.append))
    assert [row.solver for row in rows] == ["random", "again"] * 8
    assert len({(row.solver, row.data, *row.setting.values()) for row in rows}) == 16
    assert sweep.total == len(solved) == sum(row.puzzles for row in rows) == 32
    assert rows[0].seconds_per_puzzle == pytest.approx(sum(one.score.seconds for one in solved[:2]) / 2)
    for row in rows:
        low, high = row.intervals["accuracy_free"]
        assert low <= row["accuracy_free"] <= high


def test_solvers_get_the_same_cases_and_never_the_truth(
    cell: Cell, random_solver: Any, rows: Rows, untimed: Any
) -> None:
    other = replace(random_solver, name="other", shown=[])
    found = rows(cell, random_solver, other, limit=3, seed=4)
    assert len(random_solver.shown) == len(other.shown) == 3
    for one, two in zip(random_solver.shown, other.shown, strict=True):
        assert one.truth is None
        assert torch.equal(one.pieces.content, two.pieces.content)
    # Their generators are the same, too.
    half = len(found) // 2
    assert untimed(found[:half]) == untimed([replace(row, solver="random") for row in found[half:]])
    assert {row.seed for row in found} == {4}


def test_rows_do_not_depend_on_the_order_of_arrival(cell: Cell, random_solver: Any, rows: Rows, untimed: Any) -> None:
    def backwards(solver: Solver, draws: Draws, numbers: Sequence[int]) -> Iterator[Any]:
        return score_here(solver, draws, numbers[::-1])

    one, two = (rows(cell, random_solver, scoring=scoring) for scoring in (score_here, backwards))
    assert untimed(one) == untimed(two)


def test_every_solver_warms_up_on_the_first_case(cell: Cell, random_solver: Any) -> None:
    warm_up(Sweep([random_solver, random_solver], [Draws(cell)]))
    assert len({len(puzzle) for puzzle in random_solver.shown}) == 1 < len(random_solver.shown) == 2


def test_a_solver_that_gives_no_answer_is_a_fault(cell: Cell, rows: Rows) -> None:
    class Silent:
        name = "silent"

        def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
            return iter(())

    with pytest.raises(RuntimeError, match="silent"):
        rows(cell, Silent())


def test_scores_are_read_back_under_the_same_settings_alone(tmp_path: Path) -> None:
    path, puzzle = tmp_path / "scores.jsonl", {"picture": "a/b.png", "seed": 1}
    Journal(path, SETTINGS).note("hybrid", puzzle, SCORE)
    again = Journal(path, SETTINGS)
    assert again.look_up("hybrid", puzzle) == SCORE
    assert again.look_up("diffusion", puzzle) is None
    assert again.look_up("hybrid", {**puzzle, "seed": 2}) is None
    assert Journal(path, {"hybrid": {"model": "other", "budget": math.inf}}).look_up("hybrid", puzzle) is None


def test_a_line_that_was_being_written_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    first = Journal(path, SETTINGS)
    for seed in range(3):
        first.note("hybrid", {"seed": seed}, SCORE)
    whole = path.read_text()
    path.write_text(whole[:-20])
    again = Journal(path, SETTINGS)
    assert [again.look_up("hybrid", {"seed": seed}) for seed in range(3)] == [SCORE, SCORE, None]
    again.note("hybrid", {"seed": 2}, SCORE)
    assert path.read_text() == whole


@pytest.mark.parametrize("text", ["hello", "[1]", '{"score": {"accuracy": 1}}', '{"score": {"none": 3}}'])
def test_what_is_no_journal_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text(f"{text}\n")
    with pytest.raises(InputError, match="line 1: is no score; pass another --scores file"):
        Journal(path, SETTINGS)


def test_a_run_that_is_broken_off_goes_on(
    cell: Cell, random_solver: Any, rows: Rows, untimed: Any, tmp_path: Path
) -> None:
    def kept(name: str) -> Journal:
        return Journal(tmp_path / name, SETTINGS)

    def stop(solved: Solved) -> None:
        if len(random_solver.shown) == 2:
            raise KeyboardInterrupt

    whole = rows(cell, random_solver, puzzles=7, journal=kept("whole"))
    random_solver.shown.clear()
    with pytest.raises(KeyboardInterrupt):
        list(run_sweep(Sweep([random_solver], [Draws(cell, puzzles=7)], journal=kept("broken")), stop))
    resumed = rows(cell, random_solver, puzzles=7, journal=kept("broken"))
    assert len(random_solver.shown) == 7
    assert untimed(resumed) == untimed(whole)
    # Once more, all is known: the same scores, to the last bit, and seconds as they were.
    again = rows(cell, random_solver, puzzles=7, journal=kept("broken"))
    assert len(random_solver.shown) == 7
    assert [replace(row, peak_mb=0.0) for row in again] == [replace(row, peak_mb=0.0) for row in resumed]
    assert len(kept("whole").known) == len((tmp_path / "broken").read_text().splitlines()) == 7
