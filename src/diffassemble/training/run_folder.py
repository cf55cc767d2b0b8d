"""What a run writes and shows: checkpoint, config.json, log.csv, weights, other loggers, progress."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from torch import Tensor

from diffassemble.core import InputError
from diffassemble.core.limits import LIMITS, check_memory
from diffassemble.io.atomic import write_file
from diffassemble.io.reading import file_size
from diffassemble.network.pretrained import Pretrained
from diffassemble.training.config import Config

FILE = "checkpoint.pt"
BEST, LAST = "best", "last"
QUIET_SECONDS = 60
"""seconds between rows of log.csv, and between lines of progress where there is no terminal"""
LoggerName = Literal["csv", "tensorboard", "wandb"]
Clock = Callable[[], float]
"""seconds since some moment"""
Log = Callable[[dict[str, float], int], Any]
"""takes the figures of a row, by their names, and its step"""


@dataclass(frozen=True)
class Checkpoint:
    """State after `step` steps and `minutes` of training."""

    step: int
    minutes: float
    best: float
    weights: dict[str, Tensor]
    average: dict[str, Tensor]
    optimizer: dict[str, Any]


def write_checkpoint(checkpoint: Checkpoint, folder: Path) -> None:
    """Write beside and rename, so that a kill at any moment leaves the old or the new one, whole."""
    content = io.BytesIO()
    torch.save(vars(checkpoint), content)
    write_file(folder / FILE, content.getbuffer())


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """The last checkpoint of a run, if there is one; only tensors and plain values are read, never code."""
    path = folder / FILE
    if not path.exists():
        return None
    size = file_size(path, "checkpoint", LIMITS.model_bytes)
    check_memory(3 * size, f"{path}: this checkpoint", "use a smaller model")
    try:
        return Checkpoint(**torch.load(path, map_location="cpu", weights_only=True))
    # Other files raise errors of any class.
    except Exception as error:
        raise InputError(f"{path}: is not a checkpoint of this program; train anew with another --out") from error


def check_logger(name: LoggerName) -> None:
    """Refuse a logger that is not installed."""
    if name != "csv" and find_spec(name) is None:
        raise InputError(f"--logger {name}: is not installed; pip install 'diffassemble[{name}]'")


def make_log(name: LoggerName, folder: Path, done: int) -> Log | None:
    """Where the rows of a run with `done` steps behind it go besides; nothing for "csv", as every run has its log.csv.

    TensorBoard's files are in `folder`/tensorboard. Weights & Biases keeps its own in `folder`/wandb and sends them to
    its server, unless its variable WANDB_MODE is "offline"; a resumed run continues under the same name there.
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


class Record:
    """What one process keeps of a run; `best` is the highest score so far, −∞ before the first."""

    def __init__(
        self,
        folder: Path,
        config: Config,
        done: int,
        best: float,
        also: Log | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.folder, self.log, self.best, self._also, self._clock = folder, folder / "log.csv", best, also, clock
        self._saved = self._noted = clock()
        content = json.dumps(asdict(config), indent=2, default=os.fspath) + "\n"
        write_file(folder / "config.json", content.encode())
        # Rows of steps that are to be done again, or were cut short by a kill, are dropped.
        head, *rows = csv.reader(self.log.read_text().splitlines()) if self.log.exists() else [[]]
        whole = [row for row in rows if len(row) == len(head) and row[0].isdecimal()]
        self._rows = [dict(zip(head, row, strict=True)) for row in whole if int(row[0]) <= done]
        if self._rows:
            self._write()
        else:
            self.log.unlink(missing_ok=True)

    def scored(self, network: Pretrained, row: dict[str, str], scores: dict[str, float]) -> None:
        """Note a validation, and keep the network if it is the best so far."""
        if scores["score"] > self.best:
            self.best = scores["score"]
            network.save_pretrained(self.folder / BEST)
        self._note(row | {name: f"{value:.2f}" for name, value in scores.items()})

    def passed(self, row: dict[str, str]) -> None:
        """Note a step that was not validated, if the last row is a minute old."""
        if self._clock() - self._noted >= QUIET_SECONDS:
            self._note(row)

    def _note(self, row: dict[str, str]) -> None:
        self._rows.append(row)
        self._noted = self._clock()
        self._write()
        if self._also is not None:
            self._also({name: float(value) for name, value in row.items() if name != "step"}, int(row["step"]))

    def _write(self) -> None:
        """All rows under one head; what a row lacks stays empty."""
        content = io.StringIO()
        table = csv.DictWriter(content, dict.fromkeys(name for row in self._rows for name in row), restval="")
        table.writeheader()
        table.writerows(self._rows)
        write_file(self.log, content.getvalue().encode())

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint."""
        write_checkpoint(checkpoint, self.folder)
        self._saved = self._clock()

    @property
    def age(self) -> float:
        """Minutes since the last checkpoint."""
        return (self._clock() - self._saved) / 60


class StopSignal:
    """Ctrl-C, or a signal to end, is kept in `signal` until the step at hand is done; a second one ends at once.

    Signals reach the main thread only.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            self._former = {one: signal.signal(one, self._received) for one in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _received(self, number: int, frame: object) -> None:
        self.signal = signal.Signals(number)
        self.__exit__()

    def __exit__(self, *_: object) -> None:
        while self._former:
            signal.signal(*self._former.popitem())


class Progress:
    """A live bar on a terminal, a plain line a minute in a log file: loss, accuracy, speed, time left.

    Counts from step `first` to `steps`, or until `limit` minutes are over; a batch is so many of what. It is shown
    while its `bar` is entered.
    """

    def __init__(
        self,
        console: Console,
        steps: int,
        first: int,
        limit: float,
        batch: tuple[int, str],
        clock: Clock = time.monotonic,
    ) -> None:
        self.console, self.steps, self.first, self.limit, self.batch = console, steps, first, limit, batch
        self._clock = clock
        self.started = self.printed = clock()
        self.mean_loss = self.accuracy = math.nan
        columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.description}"))
        self.bar = Bar(*columns, console=console, disable=not console.is_terminal)
        self.job = self.bar.add_task("", total=steps, completed=first)

    @property
    def minutes(self) -> float:
        """Minutes since the start."""
        return (self._clock() - self.started) / 60

    def advance(self, done: int, loss: float) -> None:
        """Show a finished step."""
        self.mean_loss = loss if math.isnan(self.mean_loss) else 0.98 * self.mean_loss + 0.02 * loss
        rate = (done - self.first) / max(1e-9, 60 * self.minutes)
        left = min((self.steps - done) / rate, 60 * (self.limit - self.minutes))
        number, things = self.batch
        validated = [] if math.isnan(self.accuracy) else [f"validation {self.accuracy:.1f} %"]
        speed = f"{rate * number:.0f} {things}/s", f"{duration(left)} left"
        text = " · ".join([f"loss {self.mean_loss:.4f}", *validated, *speed])
        self.bar.update(self.job, completed=done, description=text)
        now = self._clock()
        if not self.console.is_terminal and now - self.printed > QUIET_SECONDS:
            self.printed = now
            self.console.print(f"step {done}/{self.steps} · {text}", highlight=False, soft_wrap=True)

    def report(self, scores: dict[str, float]) -> None:
        """Print validation scores; the one called "score" stays visible."""
        self.accuracy = scores["score"]
        text = " · ".join(f"{name} {value:.1f}" for name, value in scores.items())
        self.console.print(f"validation: {text}", highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Seconds, minutes, or hours and minutes, as text."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
