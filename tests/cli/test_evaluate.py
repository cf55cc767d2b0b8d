"""The verb `evaluate`: what it can be asked for, what it measures on pictures, and what a run leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tyro
from PIL import Image
from rich.table import Table

from diffassemble.assembly.kind import SolverOptions
from diffassemble.cli import sweep
from diffassemble.cli.progress import show
from diffassemble.cli.sweep import check_places, evaluate_solvers
from diffassemble.core import InputError
from diffassemble.core.solver import ChanceSolver
from diffassemble.kinds.squares import COMPARED_SOLVERS, as_listed
from diffassemble_research import evaluate
from diffassemble_research.evaluate import PaperOptions as EvaluateOptions


def parsed(text: str) -> EvaluateOptions:
    return tyro.cli(EvaluateOptions, args=text.split())


@pytest.mark.parametrize("bad", ["--anchor smallest", "--split test", "--pieces few", "--points many", "--colour red"])
def test_bad_words_exit_with_2(bad: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        parsed(bad)
    assert stopped.value.code == 2


def test_every_option_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--help")
    text = capsys.readouterr().out
    for field in fields(EvaluateOptions):
        assert f"--{field.name.replace('_', '-')}" in text
    assert "largest piece stands at its true pose" in " ".join(text.replace("│", " ").split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four pictures of noise."""
    generator = np.random.default_rng(0)
    (tmp_path / "pictures").mkdir()
    for index in range(4):
        pixels = generator.integers(0, 256, (70, 80, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "pictures" / f"{index}.png")
    return tmp_path / "pictures"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The names and models of the solvers that are asked for from now on; all know nothing."""
    found: list[tuple[str, str]] = []

    def make_solver(kind: str, name: str, options: SolverOptions) -> ChanceSolver:
        found.append((name, options.model))
        return ChanceSolver(name, as_listed)

    monkeypatch.setattr(sweep, "make_solver", make_solver)
    return found


def test_rows_and_table(folder: Path, tmp_path: Path, asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.json"
    words = "--grid 2 2x3 --solver one two --missing 0 0.34 --limit 3 --seed 5 --model mine --rows two=other"
    evaluate.run(["--data", str(folder), *words.split(), "--json", str(out)])
    rows = json.loads(out.read_text())
    assert [(row["grid"], row["missing"], row["solver"]) for row in rows] == [
        (grid, missing, solver) for grid in ("2x2", "2x3") for missing in (0.0, 0.34) for solver in ("one", "two")
    ]
    assert {(row["puzzles"], row["seed"], row["data"]) for row in rows} == {(3, 5, f"{tmp_path.name}/pictures")}
    assert asked == [("one", "mine"), ("diffusion", "other")]
    text = capsys.readouterr().out
    assert "orientation free" in text
    assert "wrote 8 rows" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--data", "nowhere"], "nowhere does not exist"),
        (["--grid", "6by6"], "6by6"),
        (["--missing", "0", "1"], "--missing 0 1: must be"),
        (["--puzzles", "0"], "puzzles 0"),
        (["--size", "3"], "pieces of 3 pixels"),
        (["--json", "."], "is a folder"),
        (["--figure", "x.png"], "pass --table too"),
        (["--table", "5"], "no table '5'; use one of: 1, 2, 3, 4, missing-3d, time, pairs, memory, pruning"),
        (["--table", "4", "--missing", "0.3"], "leave --missing and --erode out"),
        (["--table", "time", "--figure", "x.jpg"], "ends in .png"),
        (["--data", "celeba-hq=nowhere"], "CelebAMask-HQ"),
    ],
)
@pytest.mark.usefixtures("asked")
def test_bad_input_is_named_and_writes_nothing(folder: Path, tmp_path: Path, change: list[str], message: str) -> None:
    out = tmp_path / "rows.json"
    with pytest.raises(InputError, match=message):
        evaluate.run(["--data", str(folder), "--json", str(out), *change])
    with pytest.raises(InputError, match="pass --data DIR"):
        evaluate.run([])
    assert not out.exists()


@pytest.mark.usefixtures("asked")
def test_rows_measured_before_a_fault_are_kept(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "0.png").write_bytes(b"not a picture")
    out = tmp_path / "rows.json"
    with pytest.raises(InputError, match=r"broken/0\.png"):
        evaluate.run(["--data", str(folder), str(tmp_path / "broken"), "--grid", "2", "--json", str(out)])
    assert [row["puzzles"] for row in json.loads(out.read_text())] == [4]


def test_help_needs_nothing_heavy() -> None:
    code = (
        "import sys, diffassemble_research.evaluate as verb\n"
        "try: verb.run(['--help'])\n"
        "finally: assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert "--missing" in done.stdout


def test_a_table_has_all_solvers_of_pictures(
    picture_folders: tuple[Path, Path], asked: list[tuple[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"json": tmp_path / "rows.json", "figure": tmp_path / "drawn.png"}
    data = (str(picture_folders[0]),)
    evaluate.evaluate(EvaluateOptions(data=data, table="time", grid=("2",), size=8, limit=1, model="mine", **files))
    assert asked == [(name, "mine") for name in COMPARED_SOLVERS]
    assert "wrote 5 rows" in capsys.readouterr().out
    assert files["figure"].is_file()


@pytest.mark.parametrize(
    "words", [["--anchor", "largest"], ["--noise", "0.1"], ["--seeds", "2"], ["--pieces", "2", "8"]]
)
def test_what_is_for_broken_objects_is_refused(picture_folders: tuple[Path, Path], words: list[str]) -> None:
    with pytest.raises(InputError, match="are for broken objects, but there are none here"):
        evaluate.run(["--data", str(picture_folders[0]), *words])


@pytest.mark.parametrize("changes", [{"scores": Path("scores.jsonl")}, {"ray": "local"}])
def test_answers_of_other_runs_and_processes_are_not_shown(
    picture_folders: tuple[Path, Path], asked: list[tuple[str, str]], changes: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="leave --scores and --ray out"):
        evaluate_solvers(EvaluateOptions(data=(str(picture_folders[0]),), report=Path("page.html"), **changes))


def test_pipes_are_wide_enough(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table()
    table.add_column("x" * 120)
    show(table)
    assert "x" * 120 in capsys.readouterr().out


def test_places_for_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    options = EvaluateOptions()
    check_places(options, None, tmp_path / "rows.json", tmp_path / "new" / "folder" / "rows.json", tmp_path / "file")
    with pytest.raises(InputError, match="is a folder; pass the name of a file"):
        check_places(options, tmp_path)
    with pytest.raises(InputError, match=r"rows\.json: cannot be written"):
        check_places(options, tmp_path / "file" / "rows.json")


def test_a_folder_without_rights(command: Callable[..., Any], tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    done = command("evaluate", "--table", "time", "--json", locked / "rows.json", rights=False)
    assert done.code == 2
    assert "rows.json: cannot be written" in done.err
