"""Tables for people, rows for machines."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console

from diffassemble.core import Board, InputError
from diffassemble.evaluation.benchmark import Row
from diffassemble.evaluation.comparison import Comparison, Line
from diffassemble.evaluation.sweep import Measured
from diffassemble.evaluation.tables import comparison_table, results_table, write_rows

ROW = Row("diffusion", "faces/val", "6x6", 25, 0.3, 2, 300, 61.25, 97.5, 96.4, 80.0, 0.125, 812.5, 0)


def test_rows_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "results" / "rows.json"
    write_rows([ROW, ROW], path)
    assert json.loads(path.read_text()) == [asdict(ROW), asdict(ROW)]
    assert [file.name for file in path.parent.iterdir()] == ["rows.json"]


def test_no_rows_are_an_empty_list(tmp_path: Path) -> None:
    write_rows([], tmp_path / "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text()) == []


def test_an_unwritable_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        write_rows([ROW], tmp_path / "file" / "rows.json")


def test_the_table_shows_both_accuracies_and_says_what_they_are() -> None:
    output = io.StringIO()
    Console(width=100, file=output).print(results_table([Measured(ROW, (55.0, 67.5), (96.2, 98.8))]))
    text = output.getvalue()
    for part in ("diffusion", "faces/val", "6x6, 30% missing, 2 px eroded", "61.2", "55.0–67.5", "97.5", "96.2–98.8"):
        assert part in text
    assert "orient." in text
    assert "best turn of the whole" in " ".join(text.split())


def test_a_narrow_terminal_still_shows_every_number() -> None:
    output = io.StringIO()
    Console(width=80, file=output).print(results_table([Measured(ROW, (55.0, 67.5), (96.2, 100.0))]))
    text = output.getvalue()
    for part in ("diffusion", "faces/val", "55.0–67.5", "96.2–100.0", "96.4", "80.0", "0.12 s", "812 MB"):
        assert part in text
    assert "…" not in text


def printed(comparison: Comparison, width: int = 80, **options: bool) -> list[str]:
    output = io.StringIO()
    Console(width=width, file=output).print(comparison_table(comparison, **options))
    return [line.rstrip() for line in output.getvalue().splitlines()]


def test_our_figures_stand_beside_the_quoted_ones(accuracies: Comparison) -> None:
    lines = printed(accuracies)
    assert lines[0] == "faces (PuzzleCelebA in the paper)"
    assert lines[1].split() == ["6x6", "6x6", "7x7", "7x7"]
    assert lines[2].split() == ["method", "score", "ours", "paper", "ours", "paper"]
    assert [line.split() for line in lines[4:9]] == [
        ["diffusion", "absolute", "71.0", "96.92", "72.0"],
        ["diffusion", "orient.", "free", "81.0", "82.0"],
        ["gallagher", "orient.", "free", "33.0", "33.28", "94.0"],
        ["yu", "not", "measured", "33.45"],
        ["huroyan", "not", "measured", "18.18"],
    ]
    text = " ".join(" ".join(lines).split())
    assert "Paper: quoted" in text
    assert "Solvers that only compare borders can't know which way is up" in text


def test_the_explanation_can_be_left_to_the_next_table(accuracies: Comparison) -> None:
    assert len(printed(accuracies, explained=False)) == 9


def test_the_best_of_a_column_is_bold(accuracies: Comparison, times: Comparison) -> None:
    def bold(comparison: Comparison) -> list[list[str]]:
        columns = comparison_table(comparison).columns
        return [[str(cell)[6:-7] for cell in column.cells if "[bold]" in str(cell)] for column in columns]

    assert bold(accuracies) == [[], [], ["71.0", "81.0"], ["96.92"], ["72.0", "94.0"], []]
    assert bold(times) == [[], ["0.25"], ["0.3", "0.3"], ["8.75"], ["5"]]


def test_times_stand_under_their_number_of_pieces(times: Comparison) -> None:
    lines = printed(times)
    assert lines[1].split() == ["36", "36", "900", "900"]
    assert [line.split() for line in lines[4:8]] == [
        ["hybrid", "0.25", "9.50"],
        ["yu", "0.50", "0.3", "8.75", "92"],
        ["gallagher", "0.3", "55.1"],
        ["huroyan", "1", "152"],
    ]
    assert "Seconds a puzzle" in " ".join(lines)


def test_four_grids_fit_a_narrow_terminal() -> None:
    boards = tuple(Board(size, size) for size in (6, 8, 10, 12))
    line = Line("gallagher", "orient. free", (100.0,) * 4, (99.51, 87.66, 99.3, 97.76))
    lines = printed(Comparison("faces", boards, (line,)))
    assert " ".join(lines[4].split()) == "gallagher orient. free 100.0 99.51 100.0 87.66 100.0 99.30 100.0 97.76"
    assert max(map(len, lines)) <= 80
