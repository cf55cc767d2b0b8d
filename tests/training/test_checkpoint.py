"""Checkpoints are whole or not there, and hold no code."""

from __future__ import annotations

import os
import pickle
import signal
import time
from pathlib import Path

import pytest
import torch

from diffassemble.core import InputError
from diffassemble.training.run_folder import FILE, Checkpoint, read_checkpoint, write_checkpoint


def checkpoint(step: int, size: int = 4) -> Checkpoint:
    weights = {"a": torch.full((size,), float(step))}
    return Checkpoint(
        step, 1.5, 87.5, weights, weights, {"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": []}
    )


def test_read_back(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path) is None
    write_checkpoint(checkpoint(3), tmp_path)
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert (found.step, found.minutes, found.best) == (3, 1.5, 87.5)
    assert found.weights["a"].tolist() == [3.0] * 4
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_kill_at_any_moment_leaves_a_whole_one(tmp_path: Path) -> None:
    write_checkpoint(checkpoint(0), tmp_path)
    seen = set()
    for _ in range(8):
        child = os.fork()
        if child == 0:
            for step in range(1, 10_000):
                write_checkpoint(checkpoint(step, size=200_000), tmp_path)
        time.sleep(0.02 + 0.1 * float(torch.rand(())))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = read_checkpoint(tmp_path)
        assert found is not None
        assert (found.weights["a"] == found.step).all()
        seen.add(found.step)
        assert len(list(tmp_path.iterdir())) <= 2  # what a kill leaves behind does not pile up
    assert seen != {0}


def test_a_full_disk_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(checkpoint(1), tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_checkpoint(checkpoint(2), tmp_path)
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 1
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch trapped",)


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense" * 50, pickle.dumps(Trap(), protocol=2), pickle.dumps([1, 2], protocol=2)],
    ids=["empty", "nonsense", "trap", "list"],
)
def test_other_files_are_refused_and_never_run(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InputError, match=r"checkpoint\.pt: is not a checkpoint"):
        read_checkpoint(tmp_path)
    assert not (tmp_path / "trapped").exists()


def test_checkpoints_of_other_programs_are_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "model": {}}, tmp_path / FILE)
    with pytest.raises(InputError, match="is not a checkpoint of this program"):
        read_checkpoint(tmp_path)
