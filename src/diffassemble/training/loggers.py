"""Where else the rows of a run's log.csv may go: TensorBoard's files, or Weights & Biases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from diffassemble.core import InputError

LoggerName = Literal["csv", "tensorboard", "wandb"]
Log = Callable[[dict[str, float], int], Any]
"""takes the figures of a row, by their names, and its step"""


def check_logger(name: LoggerName) -> None:
    """Refuse a logger that is not installed."""
    if name != "csv" and find_spec(name) is None:
        raise InputError(f"--logger {name}: is not installed; pip install 'diffassemble[{name}]'")


def make_log(name: LoggerName, folder: Path, done: int) -> Log | None:
    """What hears the rows of a run that has `done` steps behind it; nothing for "csv", as every run writes its log.csv.

    TensorBoard's files are in `folder`/tensorboard. Weights & Biases keeps its own in `folder`/wandb and sends them to
    its server, unless its variable WANDB_MODE is "offline"; a resumed run goes on under the same name there.
    """
    check_logger(name)
    if name == "tensorboard":
        from lightning_fabric.loggers import TensorBoardLogger

        # Points of steps that are to be done again are dropped.
        return TensorBoardLogger(folder, name="", version="tensorboard", purge_step=done + 1).log_metrics
    if name == "wandb":
        import wandb

        identity = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
        return wandb.init(project="diffassemble", name=folder.name, id=identity, dir=folder, resume="allow").log
    return None
