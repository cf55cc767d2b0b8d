"""What a run shows while it lasts."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class Progress:
    """A live bar on a terminal, a plain line now and then in a log file."""

    def __init__(self, steps: int, done: int, enabled: bool) -> None:
        self.console = Console(quiet=not enabled)
        self.steps, self.first, self.enabled = steps, done, enabled
        self.started = self.told = time.monotonic()
        self.mean_loss = float("nan")
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        self.bar = RichProgress(*columns, TimeRemainingColumn(), console=self.console, disable=not enabled)
        self.job = self.bar.add_task("training", total=steps, completed=done)

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.console.is_terminal:
            self.bar.stop()

    def advance(self, done: int, loss: float, pieces: int) -> None:
        """Take note of a finished step."""
        self.mean_loss = loss if self.mean_loss != self.mean_loss else 0.98 * self.mean_loss + 0.02 * loss
        now = time.monotonic()
        rate = (done - self.first) / (now - self.started)
        words = f"loss {self.mean_loss:.4f} · {rate * pieces:.0f} pieces/s"
        self.bar.update(self.job, completed=done, description=words)
        if not self.console.is_terminal and now - self.told > 60:
            self.told = now
            left = (self.steps - done) / rate / 60
            self.console.print(f"step {done}/{self.steps} · {words} · {left:.0f} min left", highlight=False)

    def report(self, scores: dict[str, float]) -> None:
        """Print validation scores."""
        self.console.print(" · ".join(f"{name} {value:.1f}" for name, value in scores.items()), highlight=False)
