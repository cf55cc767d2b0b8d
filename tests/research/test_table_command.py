"""The tables of the paper: which pictures belong to which columns, and what a run leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import skimage.data
from PIL import Image

import diffassemble.cli.progress  # noqa: F401 (loaded once, for all child processes)
from diffassemble.cli.main import main
from diffassemble.core import Board, InputError
from diffassemble.evaluation.squares import PictureCell
from diffassemble_research import footprints, pruning
from diffassemble_research.evaluate import PaperOptions as EvaluateOptions
from diffassemble_research.evaluate import evaluate
from diffassemble_research.figures import table_figure
from diffassemble_research.footprints import (
    COMPLETE,
    GRAPHS,
    LEARN,
    PAPER_SPARSE,
    SPARSE,
    Job,
    evaluate_memory,
    jobs,
    measure,
    measure_apart,
)
from diffassemble_research.pruning import evaluate_pruning, variants
from diffassemble_research.quoted import TABLES
from diffassemble_research.tables import SAMPLES, compare, table_cells

Command = Callable[..., Any]
BOARDS = [Board(6, 6), Board(4, 4)]


def cells(table: str, data: Sequence[str], boards: Sequence[Board] = ()) -> list[PictureCell]:
    return table_cells(TABLES[table], EvaluateOptions(table=table, data=tuple(data)), list(boards))


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
    found = cells("3", words(photos))
    assert [(cell.board.rows, cell.data.split("/")[-1]) for cell in found] == [
        *[(6, "faces"), (8, "large"), (10, "large"), (12, "large")],
        *[(6, "paintings"), (8, "paintings"), (10, "paintings"), (12, "paintings")],
    ]
    assert all(cell.missing == 0 for cell in found)
    found = cells("4", words(photos), [Board(7, 9), Board(9, 7), Board(2, 2)])
    assert {cell.missing for cell in found} == {0.3}
    assert [cell.data.split("/")[-1] for cell in found[:3]] == ["faces", "faces", "faces"]


def test_results_go_to_their_columns(photos: Path, measured: Callable[..., Any]) -> None:
    found = cells("3", words(photos), [Board(2, 2), Board(3, 3)])
    firsts = {"diffusion": 10.0, "gallagher": 20.0}
    results = [measured(name, i + one, i + one + 50) for i in range(len(found)) for name, one in firsts.items()]
    faces, paintings = compare(TABLES["3"], results, len(found))
    assert [line.ours for line in faces.lines[:3]] == [(10.0, 11.0), (60.0, 61.0), (70.0, 71.0)]
    assert [line.ours for line in paintings.lines[:3]] == [(12.0, 13.0), (62.0, 63.0), (72.0, 73.0)]
    assert table_figure(TABLES["3"], [faces, paintings]).startswith(b"\x89PNG")


def test_times_are_taken_on_samples_or_on_one_folder(photos: Path) -> None:
    found = cells("time", [])
    assert [cell.board.cells for cell in found] == [36, 144, 400, 625, 900]
    assert all(path.is_file() for cell in found for path in cell.pictures)
    assert len(found[0].pictures) == len(SAMPLES)
    assert cells("time", [str(photos / "large")])[0].data.endswith("/large")


@pytest.mark.parametrize(
    ("table", "data", "message"),
    [
        ("5", [], "no table '5'; use one of: 1, 2, 3, 4, missing-3d, time, pairs, memory, pruning"),
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
        evaluate(EvaluateOptions(table=table, data=tuple(text.replace("F", str(photos / "faces")) for text in data)))


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
    assert Image.open(drawn).format == "PNG"


def test_the_table_of_times_writes_where_it_stands(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command("evaluate", "--table", "time", "--solver", "gallagher", "--grid", "6", "2x3", "--size", "12")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("drew table-time.png\n")
    assert "wrote 2 rows to table-time.json\n" in done.out
    rows = json.loads(Path("table-time.json").read_text())
    assert [(row["data"], row["pieces"], row["puzzles"]) for row in rows] == [("samples", 36, 3), ("samples", 6, 3)]
    assert all(row["seconds_per_puzzle"] > 0 for row in rows)
    assert Path("table-time.png").read_bytes().startswith(b"\x89PNG")


def test_large_puzzles_are_measured_on_sparse_graphs_alone() -> None:
    found = [(e.work, e.graph, e.side) for e in jobs(EvaluateOptions(grid=("60", "6"), solver=("diffusion", "hybrid")))]
    assert found == [
        *[("diffusion", graph, 6) for graph in (COMPLETE, PAPER_SPARSE, SPARSE)],
        *[("hybrid", graph, 6) for graph in (COMPLETE, SPARSE)],
        *[("learn", graph, 6) for graph in (COMPLETE, PAPER_SPARSE, SPARSE)],
        *[(work, SPARSE, 60) for work in ("diffusion", "hybrid", "learn")],
    ]
    for changes, message in (
        ({"grid": ("4x5",)}, "square grids, not 4x5"),
        ({"solver": ("yu",)}, "diffusion and hybrid, not 'yu'"),
        ({"data": ("a", "b")}, "table memory takes one folder, not 2"),
    ):
        with pytest.raises(InputError, match=message):
            list(jobs(EvaluateOptions(**changes)))


def test_rows_and_figure_are_written(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(footprints, "measure_apart", measure)  # processes of their own would take their time to start
    files = {"json": tmp_path / "rows.json", "figure": tmp_path / "figure.png"}
    evaluate_memory(EvaluateOptions(grid=("2",), model=str(tiny_model), size=16, steps=1, samples=1, **files))
    found = json.loads(files["json"].read_text())
    assert [row["work"] for row in found] == ["diffusion"] * 3 + ["learn"] * 3
    assert all(row["pieces"] == 4 and row["peak_mb"] > 50 for row in found)
    assert Image.open(files["figure"]).format == "PNG"
    assert "diffusion, complete, 4 pieces" in capsys.readouterr().out


@pytest.fixture
def job(picture_folders: tuple[Path, Path], tiny_model: Path) -> Job:
    picture = next(iter(sorted(picture_folders[0].iterdir())))
    return Job("diffusion", "complete", str(picture), 4, 12, str(tiny_model), 1, 2, 0)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("work", ["diffusion", "hybrid", LEARN])
def test_every_work_runs_on_every_graph(job: Job, work: str, graph: str) -> None:
    found = measure(replace(job, work=work, graph=graph))
    assert (found.work, found.graph, found.pieces) == (work, graph, 16)
    assert found.seconds > 0
    assert found.peak_mb >= found.added_mb >= 0
    known = work != LEARN and "virtual_nodes" not in GRAPHS[graph]
    assert (found.accuracy_free is not None) == known


@pytest.mark.slow
def test_a_fresh_process_sends_back_its_row(job: Job) -> None:
    found = measure_apart(job)
    assert found.pieces == 16
    assert 50 < found.peak_mb < 3000


def test_expanders_and_dropout_at_every_degree_and_the_complete_graph_once() -> None:
    found = [(variant.graph, variant.degree) for variant in variants([0.2, 1.0, 7.0], BOARDS)]
    assert found == [("expander", 0.2), ("dropout", 0.2), ("complete", 1.0), ("expander", 7.0)]
    for degree, message in ((0.0, "degree 0 is neither"), (36.0, "36 is more than 36 pieces allow; give at most 35")):
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

    monkeypatch.setattr(pruning, "_run", run_here)  # processes of their own would take their time to start
    data = tuple(map(str, picture_folders))
    files = {"json": tmp_path / "pruning.json", "figure": tmp_path / "pruning.png"}
    small = {"grid": ("2",), "limit": 1, "training_steps": 1, "steps": 1}
    options = EvaluateOptions(table="pruning", data=data, degree=(0.6, 1.0), **small, **files)
    evaluate_pruning(options)
    found = json.loads(files["json"].read_text())
    assert [(row["graph"], row["degree"]) for row in found] == [("expander", 0.6), ("dropout", 0.6), ("complete", 1.0)]
    assert Image.open(files["figure"]).format == "PNG"
    assert [words[0] for words in asked] == ["train", "evaluate"] * 3
    evaluate_pruning(replace(options, overwrite=True))
    assert [words[0] for words in asked[6:]] == ["evaluate"] * 3


def test_a_process_tells_its_seconds_and_memory_or_why_it_failed() -> None:
    seconds, peak = pruning._run(["--help"])
    assert 0 < seconds < 60
    assert peak > 5
    with pytest.raises(InputError, match="diffassemble train nothing: "):
        pruning._run(["train", "nothing"])
    with pytest.raises(InputError, match=r"^solving: was ended by SIGILL$"):
        footprints.run_apart(["-c", "import os, signal; os.kill(os.getpid(), signal.SIGILL)"], "solving")
