"""Tables for people, rows for machines."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from diffassemble.evaluation.fragments import ObjectCell
from diffassemble.evaluation.report import parts_table, results_table, write_rows
from diffassemble.evaluation.rows import Row
from diffassemble.evaluation.squares import PictureCell
from diffassemble_research.quoted import Comparison
from diffassemble_research.tables import comparison_table


def text_of(table: Table, width: int = 100) -> str:
    output = io.StringIO()
    Console(width=width, file=output).print(table)
    return output.getvalue()


def test_the_table_shows_both_accuracies_and_what_is_confirmed(measured: Callable[..., Row], tmp_path: Path) -> None:
    row = replace(
        measured("diffusion", 61.25, 97.5), words=("6x6", "30% missing"), sure=20, sure_right=19, false_joins=4
    )
    text = text_of(results_table([row], PictureCell.LAYOUT))
    for one in ("diffusion", "a/val", "30% missing", "61.2", "60.2–62.2", "97.5", "95.5–99.5", "19/20", "4 false"):
        assert one in text
    assert "…" not in text_of(results_table([row], PictureCell.LAYOUT), 80)
    assert "best turn of the whole" in " ".join(text.split())
    assert "relative pose is wrong" in " ".join(text.split())
    path = tmp_path / "results" / "rows.json"
    write_rows([row, row], path)
    first, second = json.loads(path.read_text())
    assert first == second == json.loads(json.dumps(row.fields()))
    assert (first["grid"], first["accuracy"], first["precision"], first["false_joins"]) == ("6x6", 61.25, 95, 4)
    assert first["precision_interval"] == pytest.approx([76.4, 99.1], abs=0.1)
    assert [file.name for file in path.parent.iterdir()] == ["rows.json"]


def printed(comparison: Comparison, width: int = 80, **options: bool) -> list[str]:
    return [line.rstrip() for line in text_of(comparison_table(comparison, **options), width).splitlines()]


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
    assert "…" not in text
    assert "Paper: quoted" in text
    assert "Solvers that only compare borders can't know which way is up" in text


def test_the_best_of_a_column_is_bold(accuracies: Comparison, times: Comparison) -> None:
    def bold(comparison: Comparison) -> list[list[str]]:
        columns = comparison_table(comparison).columns
        return [[str(cell)[6:-7] for cell in column.cells if "[bold]" in str(cell)] for column in columns]

    assert bold(accuracies) == [[], [], ["71.0", "81.0"], ["96.92"], ["72.0", "94.0"], []]
    assert bold(times) == [[], ["0.25"], ["0.3", "0.3"], ["8.75"], ["5"]]


def test_objects_have_two_tables(object_row: Callable[..., Row]) -> None:
    row = object_row("mend", 71.25, 14.5, 31.0, missing=0.2, anchor="largest", seeds=5)
    text = " ".join(text_of(results_table([row], ObjectCell.LAYOUT), 110).split())
    for part in ("mend", "bad/everyday/val", "anchor largest", "20% missing", "71.2", "91.2", "×5", "7/8", "3 false"):
        assert part in text
    for part in ("14.5", "31.0", "30.0–32.0", "15.5", "3.2", "0.25 s", "812 MB", "class means", "chance: R 86"):
        assert part in text
    text = text_of(parts_table([row]))
    for part in ("pieces", "3–4", "area", "< 1 %", "31.0", "71.2°"):
        assert part in text
    assert "confidence" not in text.split("mend")[0]


def test_ours_and_quoted_errors_have_columns_of_their_own(
    object_row: Callable[..., Row], errors: Callable[..., list[Comparison]]
) -> None:
    rows = [object_row("diffusion", 70.5, 13.2, 31.0, seeds=5), object_row("identity", 83.1, 17.6, 4.2)]
    (comparison,) = errors("1", *rows)
    text = "\n".join(printed(comparison, 100))
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    ours = ["70.5", "±1.5", "73.3", "13.2", "±0.4", "14.8", "31.0", "±2.5", "27.5", "90.5", "±1.2"]
    assert lines["diffusion"] == ours
    assert lines["identity"] == ["83.1", "17.6", "4.2", "103.1"]
    assert lines["dgl"] == ["81.4", "14.9", "25.4"]
    assert "9 fractures of bad/everyday/val, anchor none" in " ".join(text.split())
    assert "Quoted: from other objects" in " ".join(text.split())
    assert "Quoted" not in "\n".join(printed(comparison, 100, explained=False))
