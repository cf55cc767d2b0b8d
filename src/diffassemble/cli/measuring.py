"""A sweep under a progress bar, and what the command line does with its results."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from diffassemble.core import InputError
from diffassemble.evaluation.fragment_benchmark import FragmentRow, FragmentSweep, Solved, run_fragment_sweep
from diffassemble.evaluation.scoring import Score
from diffassemble.evaluation.sweep import Measured, Sweep, run_sweep
from diffassemble.evaluation.tables import write_rows


def measure(
    sweep: Sweep, rows: Path | None = None, heard: Callable[[Score], None] = lambda score: None
) -> list[Measured]:
    """Run a sweep; the bar is on the error stream, if that is a terminal. `heard` hears of every puzzle.

    The file `rows` is written anew with each row, so that a run which is broken off keeps what it has measured.
    """
    results: list[Measured] = []
    with _bar("puzzles") as progress:
        task = progress.add_task("puzzles", total=sweep.total)

        def on_score(score: Score) -> None:
            progress.advance(task)
            heard(score)

        for result in run_sweep(sweep, on_score):
            results.append(result)
            if rows is not None:
                write_rows([measured.row for measured in results], rows)
    return results


def measure_fragments(
    sweep: FragmentSweep, rows: Path | None = None, heard: Callable[[Solved], None] = lambda solved: None
) -> list[FragmentRow]:
    """The same for broken objects."""
    results: list[FragmentRow] = []
    with _bar("objects") as progress:
        task = progress.add_task("objects", total=sweep.total)

        def on_solved(solved: Solved) -> None:
            progress.advance(task)
            heard(solved)

        for found in run_fragment_sweep(sweep, on_solved):
            results += found
            if rows is not None:
                write_rows(results, rows)
    return results


def show(table: Table) -> None:
    """Print a table; output that goes into a file or a pipe has no width of its own."""
    screen = Console()
    (screen if screen.is_terminal else Console(width=150)).print(table)


def check_place(path: Path) -> None:
    """Refuse a file that can't be written, before hours are spent on what it is to hold."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; pass the name of a file")
    there = next(folder for folder in path.absolute().parents if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InputError(f"{path}: cannot be written, {there} does not allow it; pass another file")


def _bar(things: str) -> Progress:
    columns = (TextColumn(things), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
