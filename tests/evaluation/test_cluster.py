"""Cases on a real Ray cluster of two processes, where Ray is installed; what can't be joined is told soon."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import Board, InputError, Poses, Puzzle, Step
from diffassemble.evaluation import cluster
from diffassemble.evaluation.cluster import ClusterConfig, joined, on_cluster
from diffassemble.evaluation.squares import PictureCell
from diffassemble.evaluation.sweep import Cell, Draws, Scoring, score_here

Rows = Callable[..., list[Any]]
with_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is an optional part")


@dataclass(frozen=True)
class Chance:
    """Puts pieces down by chance, and notes in a folder which process solved how many, with how many threads.

    The first process in a `deadly` folder is killed in the middle.
    """

    folder: Path
    deadly: bool = False
    name: str = "chance"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        if puzzle.lattice is None:
            poses = Poses(torch.eye(3).repeat(len(puzzle), 1, 1), torch.randn(len(puzzle), 3, generator=generator))
        else:
            cells = torch.randperm(puzzle.board.cells, generator=generator)[: len(puzzle)]
            poses = puzzle.board.poses(cells, cells % 4)
        yield Step(poses, 0.5)
        if self.deadly and not (self.folder / "killed").exists():
            (self.folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        with (self.folder / f"{os.getpid()}.threads").open("a") as notes:
            notes.write(f"{torch.get_num_threads()}\n")
        yield Step(poses, 1.0)


@pytest.fixture(scope="module")
def scoring() -> Iterator[Scoring]:
    """Two processes, which can't import this file and are sent what it holds."""
    cloudpickle = pytest.importorskip("ray.cloudpickle", reason="Ray is an optional part")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    # Ray lets others go first, so that its processes may take minutes to start beside other tests.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    with on_cluster("local", 2) as found:
        yield found
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def signs(tmp_path: Path) -> Path:
    folder = tmp_path / "signs"
    folder.mkdir()
    return folder


def test_rows_are_those_of_one_process_and_every_other_keeps_to_one_thread(
    scoring: Scoring, cell: Cell, signs: Path, rows: Rows, untimed: Any
) -> None:
    found = rows(cell, Chance(signs), puzzles=8, scoring=scoring)
    notes = {path.name: path.read_text() for path in signs.glob("*.threads")}
    assert f"{os.getpid()}.threads" not in notes
    assert set("".join(notes.values()).split()) == {"1"}
    assert untimed(found) == untimed(rows(cell, Chance(signs), puzzles=8))


def test_files_are_found_in_other_processes_and_bad_input_is_reported_as_in_one(
    scoring: Scoring, pictures: list[Path], signs: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pictures[0].parent)
    cell = PictureCell("noise", [Path(path.name) for path in pictures], Board(2, 2))
    (row,) = rows(cell, Chance(signs), scoring=scoring)
    assert row.puzzles == len(pictures)
    pictures[3].write_bytes(b"no picture")
    messages = []
    for more in ({}, {"scoring": scoring}):
        with pytest.raises(InputError) as caught:
            rows(cell, Chance(signs), **more)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_killed_process_loses_no_case_and_counts_none_twice(scoring: Scoring, cell: Cell, signs: Path) -> None:
    draws = Draws(cell, puzzles=8)
    found = list(scoring(Chance(signs, deadly=True), draws, range(8)))
    assert (signs / "killed").exists()
    assert "".join(path.read_text() for path in signs.glob("*.threads")).count("\n") == 8
    both = [found, list(score_here(Chance(signs), draws, range(8)))]
    plain = [
        {number: {view: replace(one, seconds=0.0) for view, one in score.items()} for number, score, _ in scored}
        for scored in both
    ]
    assert plain[0] == plain[1]
    assert len(found) == 8


def test_what_kills_every_process_is_given_up(
    scoring: Scoring, pictures: list[Path], signs: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONFIG", ClusterConfig(deaths=0))
    with pytest.raises(InputError, match=r"noise/0\.png: chance can't solve it on the cluster"):
        rows(PictureCell("noise", pictures[:1], Board(3, 3)), Chance(signs, deadly=True), scoring=scoring)


def descendants(process: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    found = set()
    for folder in Path(f"/proc/{process}/task").iterdir():
        for child in map(int, (folder / "children").read_text().split()):
            found |= {child} | descendants(child)
    return found


def running(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def refused(address: str) -> str:
    """What is told of an address that can't be joined."""
    with pytest.raises(InputError) as caught, joined(address):
        pass
    return str(caught.value)


def test_without_ray_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert 'pip install "diffassemble[cluster]"' in refused("local")


@with_ray
def test_what_listens_but_is_not_ray_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONFIG", ClusterConfig(join=1.0))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert refused(address).startswith(f"--ray {address}: no cluster answers there (no answer by Ray within")


@with_ray
@pytest.mark.parametrize("address", ["hello", "host:", ":6379", "host:99999", "ray://host:10001", ""])
def test_what_is_no_address_is_told(address: str) -> None:
    assert "an address is HOST:PORT, auto or local" in refused(address)


@with_ray
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up where Linux lists them")
@pytest.mark.slow
def test_a_cluster_that_is_joined_hides_no_silent_address_and_leaves_no_process(
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = descendants(os.getpid())
    with joined("local", 1) as ray:
        started = descendants(os.getpid()) - before
        assert started
        assert ray.cluster_resources()["CPU"] == 1
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
        join = "import sys; from diffassemble.evaluation.cluster import joined\nwith joined(sys.argv[1]): print('in')"
        address = ray.get_runtime_context().gcs_address
        told = subprocess.run([sys.executable, "-c", join, address], capture_output=True, text=True)
        assert (told.stdout, told.stderr) == ("in\n", "")
        assert refused("127.0.0.1:1").startswith("--ray 127.0.0.1:1: no cluster answers there (")
    deadline = time.monotonic() + 600  # a loaded machine takes its time
    while any(map(running, started)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(running, started))
    assert capfd.readouterr() == ("", "")
