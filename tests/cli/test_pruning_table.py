"""`evaluate --table pruning`: which networks are taught, and what is left behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from diffassemble.cli import pruning_table
from diffassemble.cli.evaluate_options import EvaluateOptions
from diffassemble.cli.main import main
from diffassemble.cli.pruning_table import evaluate_pruning, variants
from diffassemble.core import Board, InputError

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


@pytest.mark.slow
def test_networks_are_taught_once_and_tested(
    picture_folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def run_here(words: Sequence[str]) -> tuple[float, float]:
        asked.append(list(words))
        assert main(list(words)) == 0
        return 1.0, 100.0

    monkeypatch.setattr(pruning_table, "_run", run_here)  # processes of their own would take their time to start
    data = tuple(map(str, picture_folders))
    files = {"json": tmp_path / "pruning.json", "figure": tmp_path / "pruning.png"}
    small = {"grid": ("2",), "limit": 1, "training_steps": 1, "steps": 1}
    options = EvaluateOptions(table="pruning", data=data, degree=(0.6, 1.0), **small, **files)
    evaluate_pruning(options)
    found = json.loads(files["json"].read_text())
    assert [(row["graph"], row["degree"]) for row in found] == [("expander", 0.6), ("dropout", 0.6), ("complete", 1.0)]
    assert Image.open(files["figure"]).format == "PNG"
    assert [words[0] for words in asked] == ["train", "evaluate"] * 3
    evaluate_pruning(options)
    assert [words[0] for words in asked[6:]] == ["evaluate"] * 3


def test_a_process_tells_its_seconds_and_memory_or_why_it_failed() -> None:
    seconds, peak = pruning_table._run(["--help"])
    assert 0 < seconds < 60
    assert peak > 5
    with pytest.raises(InputError, match="diffassemble train nothing: "):
        pruning_table._run(["train", "nothing"])


@pytest.mark.parametrize("words", [["--data", "somewhere"], []])
def test_it_must_know_what_to_learn_from_and_what_to_test_on(command: Command, words: list[str]) -> None:
    done = command("evaluate", "--table", "pruning", *words)
    assert done.code == 2
    assert "pass --data LEARN_DIR TEST_DIR" in done.err


def test_a_degree_of_zero_is_refused_in_one_line(command: Command, picture_folders: tuple[Path, Path]) -> None:
    done = command("evaluate", "--table", "pruning", "--data", *picture_folders, "--degree", "0")
    assert done.code == 2
    assert "degree 0 joins no pieces" in done.err
