"""A journal knows what was scored, under which settings; a run that is broken off goes on and counts nothing twice."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diffassemble.core import Board, InputError
from diffassemble.evaluation.benchmark import evaluate
from diffassemble.evaluation.journal import Journal
from diffassemble.evaluation.scoring import Score

SCORE = Score(50.0, 60.0, 70.0, False, 0.1, 9)
SETTINGS = {"model": "jigsaw", "budget": math.inf}


def test_scores_are_read_back_under_the_same_settings_alone(tmp_path: Path) -> None:
    path, puzzle = tmp_path / "scores.jsonl", {"picture": "a/b.png", "seed": 1}
    Journal(path, SETTINGS).note("hybrid", puzzle, SCORE)
    again = Journal(path, SETTINGS)
    assert again.look_up("hybrid", puzzle) == SCORE
    assert again.look_up("diffusion", puzzle) is None
    assert again.look_up("hybrid", {**puzzle, "seed": 2}) is None
    assert Journal(path, {**SETTINGS, "model": "other"}).look_up("hybrid", puzzle) is None


def test_a_line_that_was_being_written_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    journal = Journal(path, SETTINGS)
    for seed in range(3):
        journal.note("hybrid", {"seed": seed}, SCORE)
    whole = path.read_text()
    path.write_text(whole[:-20])
    again = Journal(path, SETTINGS)
    assert [again.look_up("hybrid", {"seed": seed}) for seed in range(3)] == [SCORE, SCORE, None]
    again.note("hybrid", {"seed": 2}, SCORE)
    assert path.read_text() == whole


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    for text in ("hello\n", "[1]\n", '{"score": {"accuracy": 1}}\n'):
        path.write_text(text)
        with pytest.raises(InputError, match="line 1: is no score; pass another --scores file"):
            Journal(path, SETTINGS)


def test_a_run_that_is_broken_off_goes_on(random_solver: Any, pictures: list[Path], tmp_path: Path) -> None:
    path, heard = tmp_path / "scores.jsonl", list[Score]()

    def twice(score: Score) -> None:
        heard.append(score)
        if len(heard) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(random_solver, pictures, Board(2, 2), report=twice, journal=Journal(path, SETTINGS))
    evaluate(random_solver, pictures, Board(2, 2), journal=Journal(path, SETTINGS))
    assert len(random_solver.shown) == len(pictures)
    row = evaluate(random_solver, pictures, Board(2, 2), journal=Journal(path, SETTINGS))
    assert len(random_solver.shown) == len(pictures)
    assert len(path.read_text().splitlines()) == row.puzzles == len(pictures)
    plain = evaluate(random_solver, pictures, Board(2, 2))
    assert replace(row, seconds_per_puzzle=0.0, peak_mb=0.0) == replace(plain, seconds_per_puzzle=0.0, peak_mb=0.0)
