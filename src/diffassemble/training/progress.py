"""What a run shows while it lasts."""

from __future__ import annotations

import math
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

QUIET_SECONDS = 60


class Progress:
    """A live bar on a terminal, a plain line now and then in a log file: loss, accuracy, speed, time left.

    Counts from step `first` to `steps`, or until `limit` minutes are over; a step takes a `batch` of so many of what.
    """

    def __init__(self, console: Console, steps: int, first: int, limit: float, batch: tuple[int, str]) -> None:
        self.console, self.steps, self.first, self.limit, self.batch = console, steps, first, limit, batch
        self.started = self.told = time.monotonic()
        self.mean_loss = math.nan
        self.accuracy = math.nan
        columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.description}"))
        self.bar = Bar(*columns, console=console, disable=not console.is_terminal)
        self.job = self.bar.add_task("", total=steps, completed=first)

    def __enter__(self) -> Progress:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    @property
    def minutes(self) -> float:
        """Minutes since the start."""
        return (time.monotonic() - self.started) / 60

    def advance(self, done: int, loss: float) -> None:
        """Take note of a finished step."""
        self.mean_loss = loss if math.isnan(self.mean_loss) else 0.98 * self.mean_loss + 0.02 * loss
        words = self._words(done)
        self.bar.update(self.job, completed=done, description=words)
        now = time.monotonic()
        if not self.console.is_terminal and now - self.told > QUIET_SECONDS:
            self.told = now
            self.console.print(f"step {done}/{self.steps} · {words}", highlight=False, soft_wrap=True)

    def report(self, scores: dict[str, float]) -> None:
        """Print validation scores; the one called "score" stays in sight."""
        self.accuracy = scores["score"]
        words = " · ".join(f"{name} {value:.1f}" for name, value in scores.items())
        self.console.print(f"validation: {words}", highlight=False, soft_wrap=True)

    def _words(self, done: int) -> str:
        rate = (done - self.first) / max(1e-9, 60 * self.minutes)
        left = min((self.steps - done) / rate, 60 * (self.limit - self.minutes))
        number, things = self.batch
        words = [f"loss {self.mean_loss:.4f}", f"{rate * number:.0f} {things}/s", f"{duration(left)} left"]
        if not math.isnan(self.accuracy):
            words.insert(1, f"validation {self.accuracy:.1f} %")
        return " · ".join(words)


def duration(seconds: float) -> str:
    """Seconds as people say them, to two figures at most."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
