"""Training as users start it: several processes learn what one learns."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import diffassemble.training.jigsaw  # noqa: F401 (loaded once, for the child process)
from diffassemble.training.checkpoint import read_checkpoint

# 3x3 puzzles, of which five make up a batch: they can't be shared out evenly.
WORDS = (
    "--model.features 8 --model.width 32 --model.layers 1 --model.heads 2 --model.pose-width 16 --model.time-width 8 "
    "--data.grids 3 3 --data.favourite 3 --data.missing 0 --data.erode 0 --data.held-apart 1 --training.steps 4 "
    "--training.warmup 0 --training.learning-rate 0.0001 --training.pieces 45 --training.precision 32-true"
)


def test_two_processes_learn_what_one_learns(
    command: Callable[..., Any], picture_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    words = ["train", "jigsaw", *WORDS.split(), "--data.folders", *picture_folders, "--training.devices"]
    alone = command(*words, "1", "--out", tmp_path / "1")
    assert alone.code == 0, alone.err
    fresh = [sys.executable, "-m", "diffassemble", *map(str, words), "2", "--out", str(tmp_path / "2")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    together = subprocess.run(fresh, capture_output=True, text=True, check=False, timeout=300, env=environment)
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
