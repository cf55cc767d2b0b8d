"""What a run shows: everything worth knowing, on terminals and in log files."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from diffassemble.training import run_folder as module
from diffassemble.training.run_folder import Progress, duration


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, to be changed by the test."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def log_of(
    steps: int,
    first: int,
    limit: float,
    clock: list[float],
    seconds: float,
    batch: tuple[int, str] = (100, "pieces"),
) -> str:
    """The lines in a log file after ten steps that took `seconds` each."""
    console = Console(file=io.StringIO(), width=200)
    with Progress(console, steps, first, limit, batch) as progress:
        for step in range(first + 1, first + 11):
            clock[0] += seconds
            progress.advance(step, 2.0)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_line_a_minute_in_a_log_file(clock: list[float]) -> None:
    lines = log_of(1000, 0, 600.0, clock, 20.0).splitlines()
    assert lines[0] == "step 4/1000 · loss 2.0000 · 5 pieces/s · 5 h 32 min left"
    assert len(lines) == 2


def test_time_left_is_that_of_this_call(clock: list[float]) -> None:
    assert "25 min left" in log_of(1000, 900, 600.0, clock, 16.0)  # steps run out first
    assert "· 4 min left" in log_of(1000, 0, 5.0, clock, 16.0)  # minutes run out first


def test_speed_counts_only_the_steps_of_this_call(clock: list[float]) -> None:
    assert "5 pieces/s" in log_of(1000, 900, 600.0, clock, 20.0)


def test_speed_is_told_in_what_a_batch_is_made_of(clock: list[float]) -> None:
    assert "2 pictures/s" in log_of(1000, 0, 600.0, clock, 8.0, (16, "pictures"))


def test_a_live_bar_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    with Progress(console, 10, 0, 600.0, batch=(100, "pieces")) as progress:
        progress.advance(1, 1.25)
        progress.report({"score": 87.25, "faces 6x6": 90.0})
        progress.advance(2, 1.25)
        progress.bar.refresh()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "━" in text
    for words in ("2/10", "loss 1.2500", "validation 87.2 %", "pieces/s", "left"):
        assert words in text
    assert "validation: score 87.2 · faces 6x6 90.0" in text


def test_the_loss_is_smoothed(clock: list[float]) -> None:
    with Progress(Console(file=io.StringIO()), 10, 0, 600.0, batch=(1, "pieces")) as progress:
        clock[0] += 1
        progress.advance(1, 2.0)
        assert progress.mean_loss == 2.0
        progress.advance(2, 1.0)
        assert progress.mean_loss == pytest.approx(1.98)


def test_other_processes_are_silent(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(Console(quiet=True), 10, 0, 600.0, batch=(1, "pieces")) as progress:
        clock[0] += 100
        progress.advance(1, 2.0)
        progress.report({"score": 1.0})
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3.0, "0 s"),
        (59.4, "59 s"),
        (60.0, "1 min"),
        (3570.0, "1 h 00 min"),
        (3540.0, "59 min"),
        (9000.0, "2 h 30 min"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
