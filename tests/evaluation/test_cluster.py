"""Puzzles on a real Ray cluster of two workers, where Ray is installed; clear words where it is not."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from diffassemble.evaluation.benchmark import evaluate
from diffassemble.evaluation.cluster import on_cluster
from diffassemble.puzzle import Board, InputError, Puzzle, Step

with_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is an optional part")


@dataclass(frozen=True)
class Killed:
    """Puts pieces down by chance; the first process that sees a puzzle is killed in the middle of it."""

    folder: Path
    name: str = "killed"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        cells = torch.randperm(puzzle.board.cells, generator=generator)[: len(puzzle)]
        yield Step(puzzle.board.poses(cells, cells % 4), 0.5)
        sign = self.folder / "once"
        if self.folder.exists() and not sign.exists():
            sign.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield Step(puzzle.board.poses(cells, cells % 4), 1.0)


def test_without_ray_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'pip install "diffassemble\[cluster\]"'):
        on_cluster("local")


@with_ray
def test_a_killed_worker_loses_no_puzzle_and_counts_none_twice(pictures: list[Path], tmp_path: Path) -> None:
    (tmp_path / "signs").mkdir()
    row = evaluate(Killed(tmp_path / "signs"), pictures, Board(3, 3), puzzles=8, scoring=on_cluster("local"))
    assert (tmp_path / "signs" / "once").exists()
    plain = evaluate(Killed(tmp_path / "nowhere"), pictures, Board(3, 3), puzzles=8)
    assert replace(row, seconds_per_puzzle=0.0, peak_mb=0.0) == replace(plain, seconds_per_puzzle=0.0, peak_mb=0.0)


@with_ray
def test_an_address_that_does_not_answer_is_told() -> None:
    with pytest.raises(InputError, match=r"--ray 127\.0\.0\.1:1: no cluster answers there"):
        on_cluster("127.0.0.1:1")
