"""The verb `evaluate` on broken objects: which there are, what is measured, and what a run leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from diffassemble.cli.sweep import kind_of_data, make_row, parse_rows
from diffassemble.core import InputError, Solver
from diffassemble.evaluation.sweep import Journal
from diffassemble.network import pretrained
from diffassemble_research import evaluate
from diffassemble_research.evaluate import PaperOptions as EvaluateOptions
from diffassemble_research.quoted import TABLES
from diffassemble_research.tables import table_models

SQUARES = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
TRIANGLES = np.concatenate([SQUARES[:, [0, 1, 2]], SQUARES[:, [0, 2, 3]]]).astype(np.uint16)


def packed(path: Path, **fractures: int) -> None:
    """Bars cut across into so many slabs each, in the packed form of Breaking Bad."""
    arrays = {}
    for name, count in fractures.items():
        ends = np.linspace(-0.5, 0.5, count + 1) ** 3 * 4
        boxes = [
            np.array([[x, y, z] for x in (low, high) for y in (-0.2, 0.2) for z in (-0.1, 0.1)])
            for low, high in pairwise(ends)
        ]
        arrays[f"{name}/v"] = np.round(np.concatenate(boxes) * 65000).astype(np.int16)
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


def rows(*words: str | Path) -> list[dict[str, Any]]:
    Path("rows.json").unlink(missing_ok=True)
    evaluate.run([str(word) for word in (*words, "--json", "rows.json")])
    return json.loads(Path("rows.json").read_text())


def classes(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for part in row["parts"] if part["by"] == "class"]


@pytest.mark.usefixtures("no_models")
def test_rows_and_tables(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--solver identity random --missing 0.3 --seeds 2 --anchor none largest --seed 3"
    found = rows("--data", broken, *options.split())
    assert [(row["missing"], row["solver"], row["anchor"]) for row in found] == [
        (0.3, solver, anchor) for solver in ("identity", "random") for anchor in ("none", "largest")
    ]
    for row in found:
        assert (row["data"], row["items"], row["seeds"], row["seed"]) == ("bad/everyday/val", 3, 2, 3)
        assert [(group["name"], group["items"]) for group in row["classes"]] == [("Bar", 4), ("Rod", 2)]
        assert row["rmse_r"] == pytest.approx(sum(group["figures"]["rmse_r"] for group in row["classes"]) / 2)
        assert row["deviation"]["rmse_r"] > 0
    text = capsys.readouterr().out
    assert "wrote 4 rows to rows.json" in text
    for part in ("anchor largest", "30% missing", "plain: means", "9–20", "≥ 4 %"):
        assert part in " ".join(text.split())


@pytest.mark.usefixtures("no_models")
def test_a_page_shows_tables_and_answers(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--data", str(broken), "--solver", "identity", "--limit", "2", "--report", "page.html"]
    evaluate.run(words)
    assert capsys.readouterr().out.endswith("wrote page.html\n")
    page = Path("page.html").read_text()
    for part in ("<td>identity</td>", "Best answer of identity", "Worst answer of identity", "data:image/png"):
        assert part in page
    assert "http" not in page


@pytest.mark.usefixtures("no_models")
def test_fractures_can_be_chosen(broken: Path) -> None:
    assert rows("--data", broken, "--solver", "identity", "--pieces", "2", "3")[0]["items"] == 2
    assert rows("--data", broken, "--solver", "identity", "--split", "train")[0]["items"] == 1
    assert rows("--data", broken, "--solver", "identity", "--limit", "1")[0]["items"] == 1


@pytest.mark.usefixtures("no_models")
def test_solids_that_are_made_and_broken_here() -> None:
    (row,) = rows("--data", "solids=2", "--solver", "identity", "--pieces", "2", "3")
    assert (row["data"], row["items"], [part["name"] for part in classes(row)]) == (
        *("solids", 2, ["BeerBottle", "Bottle"]),
    )
    with pytest.raises(InputError, match=r"'many' is no number of solids"):
        rows("--data", "solids=many", "--solver", "identity")


@pytest.mark.usefixtures("no_models")
def test_noise_and_clouds_make_rows_of_their_own(broken: Path) -> None:
    damage = ["--noise", "0", "0.001", "--points", "0", "1000", "--limit", "1"]
    found = rows("--data", broken, "--solver", "identity", *damage)
    assert [(row["points"], row["noise"]) for row in found] == [(0, 0.0), (0, 0.001), (1000, 0.0), (1000, 0.001)]
    # What is scored is the clean object, of which this solver sees nothing anyhow.
    assert len({row["rmse_r"] for row in found}) == 1


@pytest.mark.usefixtures("no_models")
def test_table_1_without_weights_has_chance_rows_and_says_what_lacks(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate.run(["--table", "1", "--data", str(broken)])
    text = capsys.readouterr().out
    assert "dgl is left out, for want of weights; pass --rows dgl=FOLDER" in text
    assert "diffusion is left out" in text
    for part in ("Table 1", "73.3", "27.5", "puzzlefusion++", "3 fractures of bad/everyday/val, anchor none"):
        assert part in " ".join(text.split())
    assert text.endswith("drew table-1.png\n")
    with Image.open("table-1.png") as picture:
        assert picture.format == "PNG"


@pytest.mark.usefixtures("no_models")
def test_the_table_of_missing_pieces_takes_larger_fractures(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--table", "missing-3d", "--solver", "identity", "--seeds", "2", "--json", "rows.json"]
    evaluate.run([*words, "--data", str(broken), "--figure", "drawn.png"])
    found = json.loads(Path("rows.json").read_text())
    assert [(row["missing"], row["items"]) for row in found] == [(0.0, 1), (0.1, 1), (0.2, 1), (0.3, 1)]
    text = capsys.readouterr().out
    for part in ("30% missing", "10.43", "88.26", "±"):
        assert part in text
    assert Path("drawn.png").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--missing", "1"], "--missing 1: must be"),
        (["--points", "-5"], "points -5"),
        (["--seeds", "0"], "seeds 0"),
        (["--pieces", "30", "40"], "no fractures of 30 to 40 pieces"),
        (["--subset", "artifact"], "artifact"),
        (["--grid", "6"], "are for pictures"),
        (["--rows", "dgl"], "NAME=FOLDER"),
        (["--solver", "magic"], "no solver 'magic'"),
        (["--solver", "gallagher"], "no solver 'gallagher' for fragments"),
        (["--table", "1", "--missing", "0.3"], "leave --missing, --noise, --wear and --points out"),
    ],
)
@pytest.mark.usefixtures("no_models")
def test_bad_wishes_write_nothing(broken: Path, tmp_path: Path, words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate.run(["--data", str(broken), "--solver", "identity", *words])
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("no_models")
def test_a_table_needs_data() -> None:
    with pytest.raises(InputError, match="no broken objects for table 1; pass --data DIR"):
        evaluate.run(["--table", "1"])


def test_kinds_are_not_mixed(broken: Path, picture_folders: tuple[Path, Path]) -> None:
    assert kind_of_data([str(broken)]) == "fragments"
    assert kind_of_data([str(picture_folders[0])]) == kind_of_data([]) == "squares"
    with pytest.raises(InputError, match="holds no fractures, but others do"):
        kind_of_data([str(broken), str(picture_folders[0])])


def untimed(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, **dict.fromkeys(("seconds_per_puzzle", "peak_mb"), 0)} for row in found]


@pytest.mark.usefixtures("no_models")
def test_a_run_that_is_killed_goes_on_to_the_same_rows(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--data", broken, "--solver", "identity", "random", "--missing", "0", "0.3", "--anchor", "none", "largest"]
    plain = rows(*words)
    note, noted = Journal.note, 0

    def killed(journal: Journal, *entry: Any) -> None:
        nonlocal noted
        noted += 1
        if noted == 8:
            with journal.path.open("a") as file:
                file.write('{"puzzle": {"cat')
            raise KeyboardInterrupt
        note(journal, *entry)

    monkeypatch.setattr(Journal, "note", killed)
    with pytest.raises(KeyboardInterrupt):
        rows(*words, "--scores", "scores.jsonl")
    monkeypatch.setattr(Journal, "note", note)
    before = Path("scores.jsonl").read_text()
    assert untimed(rows(*words, "--scores", "scores.jsonl")) == untimed(plain)
    after = Path("scores.jsonl").read_text()
    assert after.startswith(before[: before.rindex("\n") + 1])
    assert len(after.splitlines()) == 2 * (3 + 5 * 3)
    # Nothing is left to do, and an anchor of which nobody asked before is known all the same.
    (alone,) = rows("--data", broken, "--solver", "random", "--anchor", "largest", "--scores", "scores.jsonl")
    assert Path("scores.jsonl").read_text() == after
    known = [row for row in plain if (row["solver"], row["anchor"], row["missing"]) == ("random", "largest", 0)]
    assert untimed([alone]) == untimed(known)


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
        found.append(untimed(json.loads(out.read_text())))
    assert done.stderr == ""
    assert found[0] == found[1]
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 4


METHODS = ("identity", "random", "dgl", "diffusion")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that stands for the bundled weights."""
    monkeypatch.setattr(pretrained, "BUNDLED", tmp_path)
    return tmp_path


def chosen(**options: Any) -> dict[str, str]:
    """The models of the rows of a table whose methods are METHODS."""
    return table_models(EvaluateOptions(table="1", **options), replace(TABLES["1"], methods=METHODS))


@pytest.mark.usefixtures("shelf")
def test_rows_without_weights_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(chosen()) == ["identity", "random"]
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["dgl", "diffusion"]


def test_bundled_weights_are_the_row_of_diffusion(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shelf / "fragments").mkdir()
    (shelf / "fragments" / "model.safetensors").write_bytes(b"")
    assert chosen()["diffusion"] == "fragments"
    assert capsys.readouterr().out == "dgl is left out, for want of weights; pass --rows dgl=FOLDER\n"


@pytest.mark.usefixtures("shelf")
def test_weights_that_are_told_make_rows(capsys: pytest.CaptureFixture[str]) -> None:
    models = chosen(rows=("dgl=runs/dgl", "mine=runs/mine"), model="runs/best")
    assert list(models.items())[2:] == [("dgl", "runs/dgl"), ("diffusion", "runs/best"), ("mine", "runs/mine")]
    # Solvers that are asked for are never left out.
    assert chosen(rows=("dgl=runs/dgl",), solver=("mend", "dgl")) == {"mend": "fragments", "dgl": "runs/dgl"}
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("text", ["dgl", "=runs/dgl", "dgl=", ""])
def test_rows_are_names_with_folders(text: str) -> None:
    assert parse_rows(["a=b", "c=d=e"]) == {"a": "b", "c": "d=e"}
    with pytest.raises(InputError, match="NAME=FOLDER"):
        parse_rows([text])
    with pytest.raises(InputError, match="two rows 'a'"):
        parse_rows(["a=b", "a=c"])


def test_a_row_goes_by_its_own_name(tiny_model: Path) -> None:
    options = EvaluateOptions(samples=1, steps=2, budget=1.0, rows=(f"gcn={tiny_model}",))
    row = make_row("squares", "gcn", str(tiny_model), options)
    assert isinstance(row, Solver)
    assert row.name == "gcn"
    assert make_row("fragments", "identity", "nothing", options).name == "identity"
    with pytest.raises(InputError, match="no solver 'magic'"):
        make_row("fragments", "magic", "nothing", options)
