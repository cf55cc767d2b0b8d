"""What loggers are told is what stands in log.csv; those that are not installed are refused before anything is made."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from diffassemble.core import InputError
from diffassemble.training import loggers
from diffassemble.training.config import Config
from diffassemble.training.jigsaw import JigsawTask
from diffassemble.training.loop import train


def test_tensorboard_hears_every_row(tiny: Callable[..., Config], tmp_path: Path) -> None:
    config = tiny()
    train(config, JigsawTask(config), tmp_path, resume=False, logger="tensorboard")
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    told = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    for name in ("loss", "score"):
        written = [(int(row["step"]), float(row[name])) for row in rows]
        assert [(one.step, pytest.approx(one.value, abs=1e-4)) for one in told.Scalars(name)] == written


def test_refuses_what_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'diffassemble\[wandb\]'"):
        loggers.make_log("wandb", tmp_path, 0)
    assert loggers.make_log("csv", tmp_path, 0) is None
