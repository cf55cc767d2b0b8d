"""`evaluate --table pruning`: which networks are taught, and what is left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from diffassemble.cli.pruning_table import variants
from diffassemble.puzzle import Board, InputError

Command = Callable[..., Any]
BOARDS = [Board(6, 6), Board(4, 4)]


def test_expanders_and_dropout_at_every_degree_and_the_complete_graph_once() -> None:
    found = [(variant.graph, variant.degree) for variant in variants([0.2, 1.0, 7.0], BOARDS)]
    assert found == [("expander", 0.2), ("dropout", 0.2), ("complete", 1.0), ("expander", 7.0)]


@pytest.mark.parametrize(
    ("degree", "message"),
    [(0.0, "degree 0 joins no pieces"), (36.0, "degree 36 is more than 36 pieces allow; give at most 35")],
)
def test_impossible_degrees_are_refused(degree: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        variants([degree], BOARDS)


def test_networks_are_taught_once_and_tested(
    command: Command, picture_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    rows = tmp_path / "pruning.json"
    words = ["--table", "pruning", "--data", *picture_folders, "--grid", "2", "--degree", "0.6", "1", "--limit", "1"]
    words += ["--training-steps", "1", "--steps", "1", "--json", rows, "--figure", tmp_path / "pruning.png"]
    done = command("evaluate", *words)
    assert done.code == 0, done.err
    found = json.loads(rows.read_text())
    assert [(row["graph"], row["degree"]) for row in found] == [("expander", 0.6), ("dropout", 0.6), ("complete", 1.0)]
    assert all(row["training_peak_mb"] > 50 and row["solving_peak_mb"] > 50 for row in found)
    assert Image.open(tmp_path / "pruning.png").format == "PNG"


@pytest.mark.parametrize("words", [["--data", "somewhere"], []])
def test_it_must_know_what_to_learn_from_and_what_to_test_on(command: Command, words: list[str]) -> None:
    done = command("evaluate", "--table", "pruning", *words)
    assert done.code == 2
    assert "pass --data LEARN_DIR TEST_DIR" in done.err


def test_a_degree_of_zero_is_refused_in_one_line(command: Command, picture_folders: tuple[Path, Path]) -> None:
    done = command("evaluate", "--table", "pruning", "--data", *picture_folders, "--degree", "0")
    assert done.code == 2
    assert "degree 0 joins no pieces" in done.err
