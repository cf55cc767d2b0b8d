"""The verb `evaluate`, with solvers whose scores are known."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import diffassemble.solvers
import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.cli import evaluate
from diffassemble.core import Board, InputError, Poses, Puzzle, Step
from diffassemble.evaluation.puzzles import benchmark_puzzles


class Told:
    """Knows the answers to the puzzles it is going to get, and turns them as a whole if asked to."""

    def __init__(self, name: str, truths: Iterator[Poses], turned: int) -> None:
        self.name, self.truths, self.turned = name, truths, turned

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        _, cells, turns = puzzle.board.turned(*puzzle.board.snap(next(self.truths)), self.turned)
        yield Step(puzzle.board.poses(cells, turns), 1.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    (tmp_path / "pictures").mkdir()
    for index in range(4):
        pixels = generator.integers(0, 256, (70, 80, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "pictures" / f"{index}.png")
    return tmp_path / "pictures"


@pytest.fixture
def known_solvers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """`right` and `turned`, told the puzzles of COMMAND; lists how they were asked for."""
    asked: list[dict[str, Any]] = []

    def truths() -> Iterator[Poses]:
        paths = sorted(folder.iterdir())
        for board in (Board(2, 2), Board(2, 3)):
            for missing in (0.0, 0.34):
                for puzzle, _ in benchmark_puzzles(paths, board, missing=missing, limit=3, seed=5):
                    assert puzzle.truth is not None
                    yield puzzle.truth

    def make_solver(name: str, **options: Any) -> Told:
        asked.append({"name": name, **options})
        return Told(name, truths(), turned={"right": 0, "turned": 2}[name])

    monkeypatch.setattr(diffassemble.solvers, "make_solver", make_solver, raising=False)
    return asked


COMMAND = (
    "--grid 2 2x3 --solver right turned --missing 0 0.34 --limit 3 --seed 5 "
    "--model mine --samples 2 --steps 9 --budget 4.5"
)


def test_rows_and_table(
    folder: Path, tmp_path: Path, known_solvers: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.json"
    evaluate.run(["--data", str(folder), *COMMAND.split(), "--json", str(out)])
    rows = json.loads(out.read_text())
    assert [(row["grid"], row["missing"], row["solver"]) for row in rows] == [
        (grid, missing, solver) for grid in ("2x2", "2x3") for missing in (0.0, 0.34) for solver in ("right", "turned")
    ]
    for row in rows:
        assert row["accuracy"] == (100.0 if row["solver"] == "right" else 0.0)
        assert row["accuracy_free"] == row["neighbours"] == row["perfect"] == 100.0
        assert (row["puzzles"], row["seed"], row["data"]) == (3, 5, f"{tmp_path.name}/pictures")
    asked = {"model": "mine", "samples": 2, "steps": 9, "budget": 4.5}
    assert known_solvers == [{"name": "right", **asked}, {"name": "turned", **asked}]
    text = capsys.readouterr().out
    assert "orientation free" in text
    assert "100.0–100.0" in text
    assert "wrote 8 rows" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--data", "nowhere"], "nowhere does not exist"),
        (["--grid", "6by6"], "6by6"),
        (["--missing", "1"], "missing 1.0"),
        (["--erode", "-1"], "erode -1"),
        (["--missing", "0", "1"], "missing 1.0"),
        (["--limit", "0"], "limit 0"),
        (["--puzzles", "0"], "puzzles 0"),
        (["--size", "3"], "pieces of 3 pixels"),
        (["--figure", "x.png"], "pass --table too"),
        (["--table", "5"], "no table '5'; use one of: 3, 4, time"),
        (["--table", "4", "--missing", "0.3"], "leave --missing and --erode out"),
        (["--table", "time", "--figure", "x.jpg"], "ends in .png"),
        (["--data", "celeba-hq=nowhere"], "CelebAMask-HQ"),
    ],
)
@pytest.mark.usefixtures("known_solvers")
def test_bad_input_is_named_and_writes_nothing(folder: Path, tmp_path: Path, change: list[str], message: str) -> None:
    out = tmp_path / "rows.json"
    with pytest.raises(InputError, match=message):
        evaluate.run(["--data", str(folder), "--solver", "right", "--json", str(out), *change])
    assert not out.exists()


@pytest.mark.usefixtures("known_solvers")
def test_a_file_that_cannot_be_written_is_named_before_anything_is_solved(folder: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        evaluate.run(["--data", str(folder), "--solver", "nobody", "--json", str(folder)])


def test_without_data_there_is_nothing_to_do() -> None:
    with pytest.raises(InputError, match="pass --data DIR"):
        evaluate.run([])


def test_rows_measured_before_a_fault_are_kept(
    folder: Path, tmp_path: Path, known_solvers: list[dict[str, Any]]
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "0.png").write_bytes(b"not a picture")
    out = tmp_path / "rows.json"
    words = ["--solver", "right", "--grid", "2", "--limit", "3", "--seed", "5", "--json", str(out)]
    with pytest.raises(InputError, match=r"broken/0\.png"):
        evaluate.run(["--data", str(folder), str(tmp_path / "broken"), *words])
    assert [row["accuracy"] for row in json.loads(out.read_text())] == [100.0]
    assert known_solvers[0]["budget"] == math.inf


@pytest.mark.usefixtures("known_solvers")
def test_a_broken_picture_is_named(folder: Path) -> None:
    (folder / "0.png").write_bytes(b"not a picture")
    with pytest.raises(InputError, match=r"0\.png"):
        evaluate.run(["--data", str(folder), "--solver", "right", "--grid", "2"])


def test_unknown_options_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        evaluate.run(["--data", "x", "--colour", "red"])
    assert stopped.value.code == 2


def test_help_needs_nothing_heavy() -> None:
    code = (
        "import sys, diffassemble.cli.evaluate as verb\n"
        "try: verb.run(['--help'])\n"
        "finally: assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert "--missing" in done.stdout
