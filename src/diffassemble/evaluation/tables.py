"""Results for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from diffassemble.evaluation.benchmark import Row
from diffassemble.evaluation.interval import Interval
from diffassemble.evaluation.sweep import Measured
from diffassemble.files.atomic import write_file

_CAPTION = (
    "Percent of pieces at the right place and turn: accuracy as they stand (absolute), orientation free at "
    "the best turn of the whole picture; below, the 95 % interval over puzzles. "
    "Peak MB: the process up to that row."
)
_NUMBERS = (
    *("missing", "erode", "puzzles", "accuracy", "orientation\nfree"),
    *("neighbours", "perfect", "s/puzzle", "peak MB"),
)


def results_table(results: Sequence[Measured]) -> Table:
    """One line per result, absolute and orientation-free accuracy side by side."""
    table = Table(caption=_CAPTION, caption_justify="left", header_style="bold")
    for heading in ("solver", "data", "grid"):
        table.add_column(heading, overflow="fold")
    for heading in _NUMBERS:
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(*_cells(result))
    return table


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows as a JSON list, one row a line, whole or not at all."""
    lines = ",\n".join(f"  {json.dumps(asdict(row), allow_nan=False)}" for row in rows)
    write_file(path, f"[\n{lines}\n]\n".encode())


def _cells(result: Measured) -> list[str]:
    row = result.row
    return [
        row.solver,
        row.data,
        row.grid,
        f"{row.missing:.0%}",
        f"{row.erode} px",
        str(row.puzzles),
        _percent(row.accuracy, result.accuracy),
        _percent(row.accuracy_free, result.accuracy_free),
        f"{row.neighbours:.1f}",
        f"{row.perfect:.1f}",
        f"{row.seconds_per_puzzle:.2f}",
        f"{row.peak_mb:.0f}",
    ]


def _percent(value: float, interval: Interval) -> str:
    return f"{value:.1f}\n{interval[0]:.1f}–{interval[1]:.1f}"
