"""Results for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from diffassemble.evaluation.benchmark import Row
from diffassemble.evaluation.interval import Interval
from diffassemble.evaluation.sweep import Measured
from diffassemble.files.atomic import write_file

_CAPTION = (
    "Percent of pieces at the right place and turn: absolute as they stand, orientation free at the best turn "
    "of the whole picture; below each its 95 % interval over puzzles. Neighbours: percent of neighbouring pairs. "
    "Perfect: percent of puzzles, orientation free. Seconds per puzzle; most memory of the process so far."
)
_NUMBERS = ("count", "accuracy\nabsolute", "accuracy\norient.\nfree", "neigh-\nbours", "perfect", "cost")


def results_table(results: Sequence[Measured]) -> Table:
    """Two lines per result, absolute and orientation-free accuracy side by side; fits 80 columns."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, caption=_CAPTION, caption_justify="left")
    table.add_column("solver", no_wrap=True)
    table.add_column("puzzles", overflow="fold")
    for heading in _NUMBERS:
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        table.add_row(*_cells(result))
    return table


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows as a JSON list, one row a line, whole or not at all."""
    lines = ",\n".join(f"  {json.dumps(asdict(row), allow_nan=False)}" for row in rows)
    write_file(path, f"[\n{lines}\n]\n".encode())


def _cells(result: Measured) -> list[str]:
    row = result.row
    damage = [f"{row.missing:.0%} missing"] if row.missing else []
    damage += [f"{row.erode} px eroded"] if row.erode else []
    return [
        row.solver,
        f"{row.data}\n{', '.join([row.grid, *damage])}",
        str(row.puzzles),
        _percent(row.accuracy, result.accuracy),
        _percent(row.accuracy_free, result.accuracy_free),
        f"{row.neighbours:.1f}",
        f"{row.perfect:.1f}",
        f"{row.seconds_per_puzzle:.2f} s\n{row.peak_mb:.0f} MB",
    ]


def _percent(value: float, interval: Interval) -> str:
    return f"{value:.1f}\n{interval[0]:.1f}–{interval[1]:.1f}"
