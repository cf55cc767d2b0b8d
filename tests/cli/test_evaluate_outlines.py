"""The verb `evaluate` on flat pieces: recorded ones, and cut from pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def test_puzzles_and_pictures(command: Command, photo: Path, tmp_path: Path) -> None:
    words = ["--shape", "tabs", "--pieces", "6", "--size", "20"]
    assert command("cut", photo, *words, "--out", tmp_path / "puzzles" / "one").code == 0
    rows = tmp_path / "rows.json"
    done = command(
        "evaluate", "--data", tmp_path / "puzzles", "--solver", "random", "--json", rows, "--missing", "0", "0.5"
    )
    assert done.code == 0, done.err
    read = json.loads(rows.read_text())
    assert [(row["pieces"], row["missing"], row["puzzles"]) for row in read] == [(6, 0.0, 1), (3, 0.5, 1)]
    scores = tmp_path / "scores.jsonl"
    asked = ["evaluate", "--data", photo.parent, *words, "--solver", "random", "--puzzles", "3"]
    rows.unlink()
    done = command(*asked, "--json", rows, "--scores", scores)
    assert done.code == 0, done.err
    (row,) = json.loads(rows.read_text())
    assert (row["pieces"], row["puzzles"], row["shape"]) == (6, 3, "tabs")
    assert len(scores.read_text().splitlines()) == 3
    before = row
    rows.unlink()
    assert command(*asked, "--json", rows, "--scores", scores).code == 0
    (again,) = json.loads(rows.read_text())
    assert {**again, "peak_mb": 0} == {**before, "peak_mb": 0}


def test_wishes_that_do_not_fit(command: Command, photo: Path, tmp_path: Path) -> None:
    puzzle = tmp_path / "puzzle"
    assert command("cut", photo, "--shape", "tabs", "--pieces", "6", "--out", puzzle).code == 0
    for words, says in (
        (["--data", puzzle, "--shape", "torn"], "these are pieces already"),
        (["--data", puzzle, "--pieces", "9"], "these are pieces already"),
        (["--data", puzzle, "--grid", "3"], "--grid is for squares"),
        (["--data", puzzle, photo.parent], "holds no puzzles of flat pieces"),
        (["--data", photo.parent, "--shape", "tabs", "--pieces", "1"], "make no puzzle"),
        (["--data", photo.parent, "--shape", "tabs", "--erode", "-1"], "--erode -1: must be"),
    ):
        done = command("evaluate", *words, "--solver", "random")
        assert done.code == 2, words
        assert says in done.err
