"""A disk that is full while each kind of output is written: one line that names the file, and the earlier file intact.

The disk is a tmpfs of a few kilobytes, which root alone may mount; elsewhere these tests are skipped.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.borders.conftest import Given

pytestmark = pytest.mark.slow
Command = Callable[..., Any]
TRAINING = (
    "--model.features 8 --model.width 32 --model.layers 1 --model.heads 2 --model.pose-width 16 --model.time-width 8 "
    "--data.grids 2 2 --data.favourite 2 --data.missing 0 --data.erode 0 --data.held-apart 1 --training.steps 2 "
    "--training.warmup 0 --training.pieces 8 --training.precision 32-true"
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """A disk of so many kilobytes."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(kilobytes: int) -> Path:
        words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(folder)]
        if subprocess.run(words, capture_output=True, check=False).returncode:
            pytest.skip("only root may mount a small disk")
        return folder

    yield mount
    subprocess.run(["umount", str(folder)], capture_output=True, check=False)


def _fill(folder: Path) -> None:
    """Leave no room at all."""
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


KINDS = {
    "cut": "cut PHOTO --grid 2 --overwrite --out OUT",
    "fracture": "fracture SOLID --pieces 3 --overwrite --out OUT",
    "solve": "solve SQUARES --solver random --overwrite --out OUT",
    "rows": "evaluate --data PICTURES --solver random --grid 2 --overwrite --json OUT",
    "report": "evaluate --data PICTURES --solver random --grid 2 --overwrite --report OUT",
    "scores": "evaluate --data PICTURES --solver random --grid 2 --puzzles 60 --scores OUT",
}


@pytest.mark.parametrize("kind", KINDS)
def test_full(kind: str, command: Command, given: Given, small_disk: Callable[[int], Path]) -> None:
    disk = small_disk(20_000)
    words = given.words(KINDS[kind], OUT=disk / "out.html" if kind == "report" else disk / "out")
    assert command(*words).code == 0
    before = _contents(disk)
    _fill(disk)
    more = ["--seed", "100"]  # other cases, so that there is something new to write
    done = command(*words, *more)
    assert done.code == 2, done.err
    lines = [line for line in done.err.splitlines() if not line.startswith("diffassemble: note")]
    assert len(lines) == 1, done.err
    assert str(disk) in lines[0]
    assert "No space left" in lines[0]
    (disk / "filler").unlink()
    after = _contents(disk)
    if kind == "scores":  # grows line by line
        assert after["out"].startswith(before["out"])
    else:
        assert after == before


def test_checkpoints(command: Command, given: Given, small_disk: Callable[[int], Path]) -> None:
    disk = small_disk(20_000)
    words = ["train", "jigsaw", *TRAINING.split(), "--data.folders", given.folder / "pictures", "--out", disk / "run"]
    assert command(*words).code == 0
    before = _contents(disk)
    _fill(disk)
    done = command(*words[:-2], "--out", disk / "run", "--resume", "--training.steps", "4")
    assert done.code == 2, done.err
    assert str(disk / "run") in done.err
    assert "No space left" in done.err.splitlines()[-1]
    (disk / "filler").unlink()
    after = _contents(disk)
    assert after["run/checkpoint.pt"] == before["run/checkpoint.pt"]
    assert not [name for name in after if name.endswith(".part")]
    assert command(*words[:-2], "--out", disk / "run", "--resume", "--training.steps", "4").code == 0


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "filler"
    }
