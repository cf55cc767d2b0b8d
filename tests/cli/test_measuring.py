"""Results reach the file as they come, and files that can't be written are known beforehand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.table import Table

from diffassemble.cli.measuring import check_place, measure, show
from diffassemble.core import Board, InputError, Puzzle, Step
from diffassemble.evaluation.sweep import Sweep, all_cells


class Watcher:
    """Puts pieces down as they come, and looks at each puzzle how many rows the file has."""

    name = "watcher"

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, list[int]()

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        self.rows.append(len(json.loads(self.path.read_text())) if self.path.exists() else 0)
        numbers = torch.arange(len(puzzle))
        yield Step(puzzle.board.poses(numbers, numbers * 0), 1.0)


def test_every_row_is_written_at_once(picture_folders: tuple[Path, Path], tmp_path: Path) -> None:
    pictures = sorted(picture_folders[0].iterdir())[:2]
    watcher = Watcher(tmp_path / "rows.json")
    cells = all_cells([("a", pictures)], [Board(2, 2), Board(2, 3)])
    results = measure(Sweep([watcher], cells, size=8), watcher.path)
    assert watcher.rows == [0, 0, 1, 1]
    rows = json.loads(watcher.path.read_text())
    assert [row["grid"] for row in rows] == [result.row.grid for result in results] == ["2x2", "2x3"]


def test_without_a_file_nothing_is_written(
    picture_folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pictures = sorted(picture_folders[0].iterdir())[:1]
    assert len(measure(Sweep([Watcher(tmp_path / "none")], all_cells([("a", pictures)], [Board(2, 2)])))) == 1
    assert not list(tmp_path.iterdir())


def test_pipes_are_wide_enough(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table()
    table.add_column("x" * 120)
    show(table)
    assert "x" * 120 in capsys.readouterr().out


def test_places_for_files(tmp_path: Path) -> None:
    check_place(tmp_path / "rows.json")
    check_place(tmp_path / "new" / "folder" / "rows.json")
    (tmp_path / "file").write_text("")
    check_place(tmp_path / "file")
    with pytest.raises(InputError, match="is a folder; pass the name of a file"):
        check_place(tmp_path)
    with pytest.raises(InputError, match=r"rows\.json: cannot be written"):
        check_place(tmp_path / "file" / "rows.json")


def test_a_folder_without_rights(command: Callable[..., Any], tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    done = command("evaluate", "--table", "time", "--json", locked / "rows.json", rights=False)
    assert done.code == 2
    assert "rows.json: cannot be written" in done.err
