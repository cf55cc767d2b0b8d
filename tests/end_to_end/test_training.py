"""Training as users start it: several processes learn what one learns."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import diffassemble.training.jigsaw  # noqa: F401 (loaded once, for the child process)
from diffassemble.training.run_folder import read_checkpoint

# 3x3 puzzles, of which five make up a batch: they can't be shared out evenly.
WORDS = (
    "--model.features 8 --model.width 32 --model.layers 1 --model.heads 2 --model.pose-width 16 --model.time-width 8 "
    "--data.grids 3 3 --data.favourite 3 --data.missing 0 --data.erode 0 --data.held-apart 1 --training.steps 4 "
    "--training.warmup 0 --training.learning-rate 0.0001 --training.pieces 45 --training.precision 32-true"
)


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def test_two_processes_learn_what_one_learns(
    command: Callable[..., Any], picture_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    words = ["train", "jigsaw", *WORDS.split(), "--data.folders", *picture_folders, "--training.devices"]
    alone = command(*words, "1", "--out", tmp_path / "1")
    assert alone.code == 0, alone.err
    fresh = [sys.executable, "-m", "diffassemble", *map(str, words), "2", "--out", str(tmp_path / "2")]
    together = subprocess.run(fresh, capture_output=True, text=True, check=False, timeout=300, env=ENVIRONMENT)
    assert together.returncode == 0, together.stderr
    assert together.stdout.count("weights: ") == 1  # one process speaks for both
    one, two = read_checkpoint(tmp_path / "1"), read_checkpoint(tmp_path / "2")
    assert one is not None
    assert two is not None
    assert one.step == two.step == 4
    for name, value in one.weights.items():
        torch.testing.assert_close(two.weights[name], value, rtol=1e-4, atol=1e-5)
    for name, state in one.optimizer["state"].items():  # moving averages of the gradients
        torch.testing.assert_close(two.optimizer["state"][name]["exp_avg"], state["exp_avg"], rtol=1e-3, atol=1e-6)
    logs = [(tmp_path / folder / "log.csv").read_text().splitlines()[1].split(",") for folder in "12"]
    assert logs[0][2:] == logs[1][2:]  # the same loss and the same scores


@pytest.mark.slow
def test_torchrun_starts_and_resumes_two_processes(picture_folders: tuple[Path, Path], tmp_path: Path) -> None:
    """As on two machines of one process each, but on this one: gloo carries what they tell each other."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    words = ["train", "jigsaw", *WORDS.split(), "--data.folders", *map(str, picture_folders), "--training.nodes", "2"]
    for minutes in (["--training.minutes", "0.0001"], ["--resume"]):
        machines = [_torchrun([*words, "--out", str(tmp_path / "run"), *minutes], rank, port) for rank in range(2)]
        told = [machine.communicate(timeout=300) for machine in machines]
        assert [machine.returncode for machine in machines] == [0, 0], told
        checkpoint = read_checkpoint(tmp_path / "run")
        assert checkpoint is not None
        assert (checkpoint.step == 4) == (minutes == ["--resume"])
    assert (tmp_path / "run" / "last" / "model.safetensors").exists()


def _torchrun(words: list[str], rank: int, port: int) -> subprocess.Popen[str]:
    start = f"--nnodes 2 --node-rank {rank} --nproc-per-node 1 --master-addr 127.0.0.1 --master-port {port}".split()
    command = [sys.executable, "-m", "torch.distributed.run", *start, "-m", "diffassemble", *words]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=ENVIRONMENT, **streams)  # type: ignore[call-overload,no-any-return]
