"""Tables for people, rows for machines."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console

from diffassemble.evaluation.benchmark import Row
from diffassemble.evaluation.sweep import Measured
from diffassemble.evaluation.tables import results_table, write_rows
from diffassemble.puzzle import InputError

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
