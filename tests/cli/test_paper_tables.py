"""The tables of the paper: whose pictures stand where, and what a run leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import skimage.data
from PIL import Image

import diffassemble.cli.inputs  # noqa: F401 (loaded once, for all child processes)
from diffassemble.cli.paper_tables import TIMED_PICTURES, plan_table
from diffassemble.core import Board, InputError
from diffassemble.evaluation.benchmark import Row
from diffassemble.evaluation.sweep import Measured

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `faces`, `paintings` and `large` of one small photo each."""
    root = tmp_path_factory.mktemp("photos")
    for folder, pixels in {"faces": skimage.data.astronaut(), "paintings": skimage.data.coffee()}.items():
        (root / folder).mkdir()
        Image.fromarray(pixels).resize((128, 96)).save(root / folder / "0.png")
    (root / "large").mkdir()
    Image.fromarray(skimage.data.chelsea()).resize((200, 128)).save(root / "large" / "0.png")
    return root


def words(photos: Path) -> list[str]:
    return [f"faces={photos / 'faces'}", f"faces:8={photos / 'large'}", f"paintings={photos / 'paintings'}"]


def test_large_grids_may_have_pictures_of_their_own(photos: Path) -> None:
    plan = plan_table("3", words(photos), [])
    assert [(cell.board.rows, cell.data.split("/")[-1]) for cell in plan.cells] == [
        *[(6, "faces"), (8, "large"), (10, "large"), (12, "large")],
        *[(6, "paintings"), (8, "paintings"), (10, "paintings"), (12, "paintings")],
    ]
    assert all(cell.missing == 0 for cell in plan.cells)


def test_table_4_takes_pieces_away_and_grids_can_be_chosen(photos: Path) -> None:
    plan = plan_table("4", words(photos), [Board(7, 9), Board(9, 7), Board(2, 2)])
    assert {cell.missing for cell in plan.cells} == {0.3}
    assert [cell.data.split("/")[-1] for cell in plan.cells[:3]] == ["faces", "faces", "faces"]
    assert plan.usual_limit is None


def test_results_go_to_their_columns(photos: Path) -> None:
    boards = [Board(2, 2), Board(3, 3)]
    plan = plan_table("3", words(photos), boards)
    results = []
    for number, cell in enumerate(plan.cells):
        for solver, right in (("diffusion", 10.0 + number), ("gallagher", 20.0 + number)):
            row = Row(solver, cell.data, "", 4, 0.0, 0, 1, right, right + 50, 0.0, 0.0, 1.0, 1.0, 0)
            results.append(Measured(row, (0.0, 1.0), (0.0, 1.0)))
    faces, paintings = plan.compare(results, {"gallagher"})
    assert [line.ours for line in faces.lines[:3]] == [(10.0, 11.0), (60.0, 61.0), (70.0, 71.0)]
    assert [line.ours for line in paintings.lines[:3]] == [(12.0, 13.0), (62.0, 63.0), (72.0, 73.0)]
    assert plan.draw([faces, paintings]).startswith(b"\x89PNG")


def test_times_are_taken_on_samples_or_on_one_folder(photos: Path) -> None:
    plan = plan_table("time", [], [])
    assert [cell.board.cells for cell in plan.cells] == [36, 144, 400, 625, 900]
    assert all(path.is_file() for cell in plan.cells for path in cell.pictures)
    assert plan.usual_limit == len(plan.cells[0].pictures) == TIMED_PICTURES
    assert plan_table("time", [str(photos / "large")], []).cells[0].data.endswith("/large")


@pytest.mark.parametrize(
    ("table", "data", "message"),
    [
        ("5", [], "no table '5'; use one of: 3, 4, time"),
        ("3", [], "table 3 has no pictures for faces 6x6; pass --data faces=DIR"),
        ("3", ["faces=F"], "table 3 has no pictures for paintings 6x6; pass --data paintings=DIR"),
        ("3", ["faces:8=F", "paintings=F"], "table 3 has no pictures for faces 6x6; pass --data faces=DIR"),
        ("4", ["F"], "table 4 must know what the pictures are; write faces=DIR or paintings=DIR"),
        ("4", ["cats=F"], "cats=.*: table 4 must know what the pictures are"),
        ("4", ["faces:=F"], "'' is not the size of a grid; write faces:8=DIR"),
        ("4", ["faces:big=F"], "'big' is not the size of a grid"),
        ("4", ["faces=F", "faces=F"], "two folders of faces for the same grids"),
        ("4", ["faces=nowhere"], "nowhere does not exist"),
        ("4", ["celeba-hq=F"], "CelebAMask-HQ"),
        ("time", ["F", "F"], "table time takes one folder, not 2"),
        ("time", ["faces=nowhere"], "faces=nowhere does not exist"),
    ],
)
def test_bad_wishes(photos: Path, table: str, data: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_table(table, [text.replace("F", str(photos / "faces")) for text in data], [])


def test_a_whole_table(command: Command, photos: Path, tmp_path: Path) -> None:
    out, drawn = tmp_path / "rows.json", tmp_path / "figures" / "table.png"
    options = ["--grid", "3", "8", "--solver", "gallagher", "--size", "16", "--puzzles", "2", "--seed", "3"]
    done = command("evaluate", "--table", "3", "--data", *words(photos), *options, "--json", out, "--figure", drawn)
    assert (done.code, done.err) == (0, "")
    rows = json.loads(out.read_text())
    assert [(row["data"].split("/")[-1], row["grid"], row["puzzles"]) for row in rows] == [
        *[("faces", "3x3", 2), ("large", "8x8", 2), ("paintings", "3x3", 2), ("paintings", "8x8", 2)]
    ]
    assert all(row["solver"] == "gallagher" and row["missing"] == 0 and row["seed"] == 3 for row in rows)
    for part in ("faces (PuzzleCelebA", "paintings (PuzzleWikiArts", "55.18", "61.63", "orient. free", "not measured"):
        assert part in done.out
    with Image.open(drawn) as picture:
        assert picture.format == "PNG"


def test_the_table_of_times_writes_where_it_stands(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command("evaluate", "--table", "time", "--solver", "gallagher", "--grid", "6", "2x3", "--size", "12")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("drew table-time.png\nwrote 2 rows to table-time.json\n")
    rows = json.loads(Path("table-time.json").read_text())
    assert [(row["data"], row["pieces"], row["puzzles"]) for row in rows] == [("samples", 36, 3), ("samples", 6, 3)]
    assert all(row["seconds_per_puzzle"] > 0 for row in rows)
    assert Path("table-time.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("bad", [["--table", "7"], ["--table", "4", "--data", "faces=nowhere"], ["--table", "3"]])
def test_one_line_and_nothing_else(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command("evaluate", *bad)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("diffassemble: ")
    assert done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
