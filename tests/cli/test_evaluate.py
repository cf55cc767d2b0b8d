"""The verb `evaluate` on pictures, flat pieces and broken objects: what is measured, and what a run leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.table import Table

from diffassemble.assembly.kind import SolverOptions
from diffassemble.cli import sweep
from diffassemble.cli.arguments import NotUnderstood
from diffassemble.cli.progress import show
from diffassemble.cli.sweep import check_places, kind_of_data, make_row, parse_rows
from diffassemble.core import InputError, Solver
from diffassemble.core.solver import ChanceSolver
from diffassemble.kinds.squares import COMPARED_SOLVERS, as_listed
from diffassemble.network import pretrained
from diffassemble_research import evaluate
from diffassemble_research.evaluate import PaperOptions as EvaluateOptions
from diffassemble_research.quoted import TABLES
from diffassemble_research.tables import table_models

SQUARES = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
TRIANGLES = np.concatenate([SQUARES[:, [0, 1, 2]], SQUARES[:, [0, 2, 3]]]).astype(np.uint16)
Command = Callable[..., Any]


def packed(path: Path, **fractures: int) -> None:
    """Bars cut across into so many slabs each, in the packed form of Breaking Bad."""
    arrays = {}
    for name, count in fractures.items():
        ends = np.linspace(-0.5, 0.5, count + 1) ** 3 * 4
        corners = [(x, y, z) for pair in pairwise(ends) for x in pair for y in (-0.2, 0.2) for z in (-0.1, 0.1)]
        arrays[f"{name}/v"] = np.round(np.array(corners) * 65000).astype(np.int16)
        arrays[f"{name}/f"] = np.tile(TRIANGLES, (count, 1))
        arrays[f"{name}/vo"], arrays[f"{name}/fo"] = 8 * np.arange(count + 1), 12 * np.arange(count + 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bars and a rod, held out, and one to train on."""
    root = tmp_path_factory.mktemp("collections") / "bad"
    packed(root / "everyday" / "Bar" / "one.npz", fractured_0=2, fractured_1=3)
    packed(root / "everyday" / "Rod" / "two.npz", mode_0=9)
    packed(root / "everyday" / "Rod" / "three.npz", mode_0=4)
    (root / "val_objects.txt").write_text("everyday/Bar/one.npz\neveryday/Rod/two.npz\n")
    return root


@pytest.fixture
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No weights come with the package, and files are written to a place of their own."""
    monkeypatch.setattr(pretrained, "BUNDLED", tmp_path / "shelf")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The names and models of the solvers that are asked for from now on; all answer by chance."""
    found: list[tuple[str, str]] = []

    def make_solver(kind: str, name: str, options: SolverOptions) -> ChanceSolver:
        found.append((name, options.model))
        return ChanceSolver(name, as_listed)

    monkeypatch.setattr(sweep, "make_solver", make_solver)
    return found


def rows(*words: str | Path) -> list[dict[str, Any]]:
    """The rows that a run writes."""
    Path("rows.json").unlink(missing_ok=True)
    evaluate.run([str(word) for word in (*words, "--json", "rows.json")])
    found: list[dict[str, Any]] = json.loads(Path("rows.json").read_text())
    return found


def parts(row: dict[str, Any], by: str = "class") -> list[dict[str, Any]]:
    return [part for part in row["parts"] if part["by"] == by]


def test_every_option_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        evaluate.run(["--help"])
    text = capsys.readouterr().out
    assert all(f"--{field.name.replace('_', '-')}" in text for field in fields(EvaluateOptions))
    assert "largest piece stands at its true pose" in " ".join(text.replace("│", " ").split())


# Pictures.


@pytest.mark.usefixtures("no_models")
def test_rows_and_table_of_pictures(
    picture_folders: tuple[Path, Path], asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--grid 2 2x3 --solver one two --missing 0 0.34 --limit 3 --seed 5 --model mine --rows two=other"
    found = rows("--data", picture_folders[0], *words.split())
    assert [(row["grid"], row["missing"], row["solver"]) for row in found] == [
        (grid, missing, solver) for grid in ("2x2", "2x3") for missing in (0.0, 0.34) for solver in ("one", "two")
    ]
    assert {(row["puzzles"], row["seed"]) for row in found} == {(3, 5)}
    assert asked == [("one", "mine"), ("diffusion", "other")]
    text = capsys.readouterr().out
    assert "wrote 8 rows" in text
    asked.clear()
    files = {"json": Path("time.json"), "figure": Path("drawn.png")}
    data = (str(picture_folders[0]),)
    evaluate.evaluate(EvaluateOptions(data=data, table="time", grid=("2",), size=8, limit=1, model="mine", **files))
    assert asked == [(name, "mine") for name in COMPARED_SOLVERS]
    assert "wrote 5 rows" in capsys.readouterr().out
    assert files["figure"].is_file()


@pytest.mark.usefixtures("asked", "no_models")
def test_bad_options_are_named_and_nothing_is_written(
    picture_folders: tuple[Path, Path], broken: Path, tmp_path: Path
) -> None:
    out = ["--json", str(tmp_path / "rows.json")]
    for folder, words, message in (
        (picture_folders[0], "--data nowhere", "nowhere does not exist"),
        (picture_folders[0], "--grid 6by6", "6by6"),
        (picture_folders[0], "--missing 0 1", "--missing 0 1: must be"),
        (picture_folders[0], "--puzzles 0", "puzzles 0"),
        (picture_folders[0], "--size 3", "pieces of 3 pixels"),
        (picture_folders[0], "--json .", "is a folder"),
        (picture_folders[0], "--figure x.png", "pass --table too"),
        (picture_folders[0], "--table 5", "no table '5'; use one of: 1, 2, 3, 4, missing-3d, time, pairs"),
        (picture_folders[0], "--table 4 --missing 0.3", "leave --missing and --erode out"),
        (picture_folders[0], "--table time --figure x.jpg", "ends in .png"),
        (picture_folders[0], "--data celeba-hq=nowhere", "CelebAMask-HQ"),
        (picture_folders[0], "--anchor largest", "are for broken objects, but there are none here"),
        (picture_folders[0], "--scores s.jsonl --report page.html", "leave --scores and --ray out"),
        (picture_folders[0], "--ray local --report page.html", "leave --scores and --ray out"),
        (broken, "--missing 1", "--missing 1: must be"),
        (broken, "--points -5", "points -5"),
        (broken, "--pieces 30 40", "no fractures of 30 to 40 pieces"),
        (broken, "--subset artifact", "artifact"),
        (broken, "--grid 6", "are for pictures"),
        (broken, "--rows dgl", "NAME=FOLDER"),
        (broken, "--table 1 --missing 0.3", "leave --missing, --noise, --wear and --points out"),
    ):
        with pytest.raises(InputError, match=message.replace("(", r"\(")):
            evaluate.run(["--data", str(folder), *out, *words.split()])
    for bad in ("--anchor smallest", "--split test", "--pieces few", "--points many", "--colour red", "--seed 1.5"):
        with pytest.raises(NotUnderstood):
            evaluate.run(bad.split())
    for none, message in (([], "pass --data DIR"), (["--table", "1"], "no broken objects for table 1; pass --data")):
        with pytest.raises(InputError, match=message):
            evaluate.run(none)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("asked", "no_models")
def test_rows_measured_before_a_fault_are_kept(picture_folders: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "0.png").write_bytes(b"not a picture")
    with pytest.raises(InputError, match=r"broken/0\.png"):
        rows("--data", picture_folders[0], tmp_path / "broken", "--grid", "2")
    assert [row["puzzles"] for row in json.loads(Path("rows.json").read_text())] == [6]


def test_places_for_files_and_tables(command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    check_places(EvaluateOptions(), None, tmp_path / "rows.json", tmp_path / "new" / "rows.json", tmp_path / "file")
    for place, message in (
        (".", "is a folder; pass the name of a file"),
        ("file/x.json", r"x\.json: cannot be written"),
    ):
        with pytest.raises(InputError, match=message):
            check_places(EvaluateOptions(), tmp_path / place)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    done = command("evaluate", "--table", "time", "--json", locked / "rows.json", rights=False)
    assert done.code == 2
    assert "rows.json: cannot be written" in done.err
    table = Table()
    table.add_column("x" * 120)
    show(table)  # pipes are wide enough
    assert "x" * 120 in capsys.readouterr().out


# Flat pieces.


def test_flat_pieces_recorded_or_cut(command: Command, photo: Path, tmp_path: Path) -> None:
    words, out = ["--shape", "tabs", "--pieces", "6", "--size", "20"], tmp_path / "rows.json"
    puzzle = tmp_path / "puzzles" / "one"
    assert command("cut", photo, *words, "--out", puzzle).code == 0
    asked = ["evaluate", "--solver", "random", "--json", out, "--overwrite", "--data"]
    assert command(*asked, puzzle.parent, "--missing", "0", "0.5").code == 0
    found = json.loads(out.read_text())
    assert [(row["pieces"], row["missing"], row["puzzles"]) for row in found] == [(6, 0.0, 1), (3, 0.5, 1)]
    runs = []
    for _ in range(2):
        assert command(*asked, photo.parent, *words, "--puzzles", "3", "--scores", tmp_path / "scores").code == 0
        runs.append({**json.loads(out.read_text())[0], "peak_mb": 0})
    assert runs[0] == runs[1]
    assert (runs[0]["pieces"], runs[0]["puzzles"], runs[0]["shape"]) == (6, 3, "tabs")
    assert len((tmp_path / "scores").read_text().splitlines()) == 3
    for given, message in (
        ([puzzle, "--shape", "torn"], "these are pieces already"),
        ([puzzle, "--pieces", "9"], "these are pieces already"),
        ([puzzle, "--grid", "3"], "--grid is for squares"),
        ([puzzle, photo.parent], "holds no puzzles of flat pieces"),
        ([photo.parent, "--shape", "tabs", "--pieces", "1"], "make no puzzle"),
        ([photo.parent, "--shape", "tabs", "--erode", "-1"], "--erode -1: must be"),
    ):
        done = command("evaluate", "--solver", "random", "--data", *given)
        assert done.code == 2, given
        assert message in done.err


# Broken objects.


@pytest.mark.usefixtures("no_models")
def test_rows_tables_and_page_of_objects(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--solver identity random --missing 0.3 --seeds 2 --anchor none largest --seed 3 --report page.html"
    found = rows("--data", broken, *options.split())
    assert [(row["missing"], row["solver"], row["anchor"]) for row in found] == [
        (0.3, solver, anchor) for solver in ("identity", "random") for anchor in ("none", "largest")
    ]
    for row in found:
        assert (row["data"], row["items"], row["seeds"], row["seed"]) == ("bad/everyday/val", 3, 2, 3)
        assert [(group["name"], group["count"]) for group in parts(row)] == [("Bar", 4), ("Rod", 2)]
        assert row["rmse_r"] == pytest.approx(sum(group["figures"]["rmse_r"] for group in parts(row)) / 2)
        assert row["deviation"]["rmse_r"] > 0
    text = capsys.readouterr().out
    assert "wrote 4 rows to rows.json" in text
    assert text.endswith("wrote page.html\n")
    for part in ("anchor largest", "30% missing", "9–20"):
        assert part in " ".join(text.split())
    page = Path("page.html").read_text()
    for part in ("<td>identity</td>", "Best answer of identity", "Worst answer of identity", "data:image/png"):
        assert part in page
    assert "http" not in page


@pytest.mark.usefixtures("no_models")
def test_objects_and_damages_can_be_chosen(broken: Path) -> None:
    one = ["--data", broken, "--solver", "identity"]
    for words, count in (("--pieces 2 3", 2), ("--split train", 1), ("--limit 1", 1)):
        assert rows(*one, *words.split())[0]["items"] == count
    found = rows(*one, *["--noise", "0", "0.001", "--points", "0", "1000", "--limit", "1"])
    assert [(row["points"], row["noise"]) for row in found] == [(0, 0.0), (0, 0.001), (1000, 0.0), (1000, 0.001)]
    # What is scored is the clean object, of which this solver sees nothing anyhow.
    assert len({row["rmse_r"] for row in found}) == 1
    (row,) = rows("--data", "solids=2", "--solver", "identity", "--pieces", "2", "3")
    assert (row["data"], row["items"], len(parts(row))) == ("solids", 2, 2)
    with pytest.raises(InputError, match=r"'many' is no number of solids"):
        rows("--data", "solids=many", "--solver", "identity")


@pytest.mark.usefixtures("no_models")
def test_tables_of_objects(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without weights there are the rows of chance, and a line on what is left out; quoted figures are beside."""
    evaluate.run(["--table", "1", "--data", str(broken)])
    text = capsys.readouterr().out
    left_out = ("dgl is left out, for want of weights; pass --rows dgl=FOLDER", "diffusion is left out")
    for part in (
        *left_out,
        "Table 1",
        "73.3",
        "27.5",
        "puzzlefusion++",
        "3 fractures of bad/everyday/val, anchor none",
    ):
        assert part in " ".join(text.split())
    assert text.endswith("drew table-1.png\n")
    with Image.open("table-1.png") as picture:
        assert picture.format == "PNG"
    words = ["--table", "missing-3d", "--solver", "identity", "--seeds", "2", "--figure", "drawn.png"]
    found = rows(*words, "--data", broken)
    assert [(row["missing"], row["items"]) for row in found] == [(0.0, 1), (0.1, 1), (0.2, 1), (0.3, 1)]
    text = capsys.readouterr().out
    assert all(part in text for part in ("30% missing", "10.43", "88.26", "±"))
    assert Path("drawn.png").is_file()


def test_kinds_are_not_mixed(broken: Path, picture_folders: tuple[Path, Path]) -> None:
    assert kind_of_data([str(broken)]) == "fragments"
    assert kind_of_data([str(picture_folders[0])]) == kind_of_data([]) == "squares"
    with pytest.raises(InputError, match="holds no fractures, but others do"):
        kind_of_data([str(broken), str(picture_folders[0])])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pictures", "objects"])
def test_the_command_sends_real_solvers_to_processes_of_its_own(
    kind: str, picture_folders: tuple[Path, Path], broken: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ray", reason="Ray is an optional part")
    data, names = {
        "pictures": ([picture_folders[0], "--grid", "3"], ["gallagher", "diffusion"]),
        "objects": ([broken], ["identity", "mend"]),
    }[kind]
    found = []
    for number, more in enumerate(([], ["--scores", tmp_path / "scores.jsonl", "--ray", "local"])):
        out = tmp_path / f"rows {number}.json"
        words = ["evaluate", "--data", *data, "--limit", "2", "--solver", *names, "--json", out, *more]
        command = [sys.executable, "-m", "diffassemble", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert not {"INFO", "WARNING"} & set(done.stdout.split())
        untimed = dict.fromkeys(("seconds_per_puzzle", "peak_mb"), 0)
        found.append([{**row, **untimed} for row in json.loads(out.read_text())])
    assert done.stderr == ""
    assert found[0] == found[1]
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 4


# Rows.


def test_rows_and_their_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tiny_model: Path
) -> None:
    monkeypatch.setattr(pretrained, "BUNDLED", tmp_path)
    table = replace(TABLES["1"], methods=("identity", "random", "dgl", "diffusion"))

    def chosen(**options: Any) -> dict[str, str]:
        return table_models(EvaluateOptions(table="1", **options), table)

    assert list(chosen()) == ["identity", "random"]
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["dgl", "diffusion"]
    models = chosen(rows=("dgl=runs/dgl", "mine=runs/mine"), model="runs/best")
    assert list(models.items())[2:] == [("dgl", "runs/dgl"), ("diffusion", "runs/best"), ("mine", "runs/mine")]
    # Solvers that are asked for are never left out.
    assert chosen(rows=("dgl=runs/dgl",), solver=("mend", "dgl")) == {"mend": "fragments", "dgl": "runs/dgl"}
    assert capsys.readouterr().out == ""
    (tmp_path / "fragments").mkdir()
    (tmp_path / "fragments" / "model.safetensors").write_bytes(b"")
    assert chosen()["diffusion"] == "fragments"
    assert capsys.readouterr().out == "dgl is left out, for want of weights; pass --rows dgl=FOLDER\n"
    assert parse_rows(["a=b", "c=d=e"]) == {"a": "b", "c": "d=e"}
    for texts, message in ((["dgl"], "NAME=FOLDER"), (["=x"], "NAME=FOLDER"), (["a=b", "a=c"], "two rows 'a'")):
        with pytest.raises(InputError, match=message):
            parse_rows(texts)
    options = EvaluateOptions(samples=1, steps=2, budget=1.0, rows=(f"gcn={tiny_model}",))
    row = make_row("squares", "gcn", str(tiny_model), options)
    assert isinstance(row, Solver)
    assert row.name == "gcn"
    assert make_row("fragments", "identity", "nothing", options).name == "identity"
    for kind, name in (("fragments", "magic"), ("fragments", "gallagher")):
        with pytest.raises(InputError, match=f"no solver '{name}' for fragments"):
            make_row(kind, name, "nothing", options)
