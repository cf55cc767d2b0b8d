"""Puzzles on a real Ray cluster of two processes, where Ray is installed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import skimage.data
import torch
from PIL import Image

from diffassemble.core import Board, InputError, Puzzle, Step
from diffassemble.evaluation.benchmark import Row, evaluate
from diffassemble.evaluation.cluster import on_cluster
from diffassemble.evaluation.journal import Journal
from diffassemble.evaluation.puzzles import Draws
from diffassemble.evaluation.scoring import Score, Scoring, score_here
from diffassemble.kinds import make_solver


@dataclass(frozen=True)
class Chance:
    """Puts pieces down by chance, and notes in a folder which process solved how many, with how many threads.

    The first process in a `deadly` folder is killed in the middle.
    """

    folder: Path
    deadly: bool = False
    name: str = "chance"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        cells = torch.randperm(puzzle.board.cells, generator=generator)[: len(puzzle)]
        yield Step(puzzle.board.poses(cells, cells % 4), 0.5)
        if self.deadly and not (self.folder / "killed").exists():
            (self.folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        with (self.folder / f"{os.getpid()}.threads").open("a") as notes:
            notes.write(f"{torch.get_num_threads()}\n")
        yield Step(puzzle.board.poses(cells, cells % 4), 1.0)


@pytest.fixture(scope="module")
def scoring() -> Iterator[Scoring]:
    """Two processes, which can't import this file and are sent what it holds."""
    cloudpickle = pytest.importorskip("ray.cloudpickle", reason="Ray is an optional part")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with on_cluster("local", 2) as found:
        yield found
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def signs(tmp_path: Path) -> Path:
    folder = tmp_path / "signs"
    folder.mkdir()
    return folder


def measured(row: Row) -> Row:
    """All of a row that does not depend on the machine."""
    return replace(row, seconds_per_puzzle=0.0, peak_mb=0.0)


def timeless(scored: tuple[int, Score]) -> tuple[int, tuple[float, ...]]:
    """The same of a puzzle's number and score."""
    return scored[0], astuple(replace(scored[1], seconds=0.0))


def backwards(scoring: Scoring) -> Scoring:
    """The same scores, the last that arrived first."""
    return lambda solver, draws, numbers: reversed(list(scoring(solver, draws, numbers)))


def test_rows_are_those_of_one_process_in_any_order_of_arrival(
    scoring: Scoring, pictures: list[Path], signs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pictures are found though the other processes stand in another folder.
    monkeypatch.chdir(pictures[0].parent)
    names = [Path(path.name) for path in pictures]
    plain = evaluate(Chance(signs), names, Board(3, 3), puzzles=8, data="noise")
    for scorer in (scoring, backwards(scoring)):
        row = evaluate(Chance(signs), names, Board(3, 3), puzzles=8, data="noise", scoring=scorer)
        assert measured(row) == measured(plain)


def test_a_killed_process_loses_no_puzzle_and_counts_none_twice(
    scoring: Scoring, pictures: list[Path], signs: Path
) -> None:
    draws = Draws(pictures, Board(3, 3), puzzles=8)
    found = list(scoring(Chance(signs, deadly=True), draws, range(8)))
    assert (signs / "killed").exists()
    assert "".join(path.read_text() for path in signs.glob("*.threads")).count("\n") == 8
    plain = score_here(Chance(signs), draws, range(8))
    assert sorted(map(timeless, found)) == sorted(map(timeless, plain))


@pytest.mark.slow
def test_every_process_keeps_to_one_thread(scoring: Scoring, pictures: list[Path], signs: Path) -> None:
    evaluate(Chance(signs), pictures, Board(3, 3), scoring=scoring)
    notes = {path.name: path.read_text() for path in signs.glob("*.threads")}
    assert f"{os.getpid()}.threads" not in notes
    assert set("".join(notes.values()).split()) == {"1"}


@pytest.mark.slow
def test_a_run_that_is_broken_off_goes_on(scoring: Scoring, pictures: list[Path], signs: Path, tmp_path: Path) -> None:
    path, heard = tmp_path / "scores.jsonl", list[Score]()

    def twice(score: Score) -> None:
        heard.append(score)
        if len(heard) == 2:
            raise KeyboardInterrupt

    def run(**more: Any) -> Row:
        return evaluate(
            Chance(signs), pictures, Board(3, 3), puzzles=8, scoring=scoring, journal=Journal(path, {}), **more
        )

    with pytest.raises(KeyboardInterrupt):
        run(report=twice)
    first, second = path.read_text().splitlines(keepends=True)
    path.write_text(first + second[:-20])
    row = run()
    lines = path.read_text().splitlines(keepends=True)
    assert lines[0] == first
    assert len(lines) == row.puzzles == 8
    assert measured(run()) == measured(row) == measured(evaluate(Chance(signs), pictures, Board(3, 3), puzzles=8))
    assert path.read_text() == "".join(lines)


def test_bad_input_is_told_as_in_one_process(scoring: Scoring, pictures: list[Path], signs: Path) -> None:
    pictures[3].write_bytes(b"no picture")
    messages = []
    for more in ({}, {"scoring": scoring}):
        with pytest.raises(InputError) as caught:
            evaluate(Chance(signs), pictures, Board(3, 3), **more)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_what_kills_every_process_is_given_up(
    scoring: Scoring, pictures: list[Path], signs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diffassemble.evaluation.cluster.MOST_DEATHS", 0)
    with pytest.raises(InputError, match=r"noise/0\.png: chance can't solve it on the cluster"):
        evaluate(Chance(signs, deadly=True), pictures[:1], Board(3, 3), scoring=scoring)


@pytest.mark.slow
def test_the_command_sends_real_solvers_to_processes_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is an optional part")
    folder, rows = tmp_path / "photos", tmp_path / "rows.json"
    folder.mkdir()
    for name in ("cat", "coffee"):
        Image.fromarray(getattr(skimage.data, name)()).save(folder / f"{name}.png")
    names = ("gallagher", "diffusion")
    words = ["evaluate", "--data", folder, "--grid", "3", "--limit", "2", "--solver", *names, "--json", rows]
    command = [sys.executable, "-m", "diffassemble", *words, "--scores", tmp_path / "scores.jsonl", "--ray", "local"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not {"INFO", "WARNING"} & set(done.stdout.split())
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 4
    found = [measured(Row(**row)) for row in json.loads(rows.read_text())]
    solvers = [make_solver(name, model="jigsaw", samples=8, steps=20) for name in names]
    plain = [evaluate(solver, sorted(folder.iterdir()), Board(3, 3)) for solver in solvers]
    assert found == [replace(measured(row), data=found[0].data) for row in plain]
