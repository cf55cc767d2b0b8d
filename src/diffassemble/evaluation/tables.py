"""Results for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from diffassemble.evaluation.benchmark import Row
from diffassemble.evaluation.comparison import SECONDS, Comparison, Line
from diffassemble.evaluation.footprints import Footprint
from diffassemble.evaluation.fragment_benchmark import FragmentRow
from diffassemble.evaluation.interval import Interval
from diffassemble.evaluation.pruning import PruningRow
from diffassemble.evaluation.sweep import Measured
from diffassemble.files.atomic import write_file

_CAPTION = (
    "Percent of pieces at the right place and turn: absolute as they stand, orientation free at the best turn "
    "of the whole picture; below each its 95 % interval over puzzles. Neighbours: percent of neighbouring pairs. "
    "Perfect: percent of puzzles, orientation free. Seconds per puzzle; most memory of the process so far."
)
_BESIDE = (
    "Ours: measured here, all solvers on the same puzzles. Paper: quoted, from other pictures, puzzles and machines. "
)
_SCORES = (
    "Percent of pieces at the right place and turn: absolute as they stand, orient. free at the best turn of the whole "
    "picture. Solvers that only compare borders can't know which way is up: they have orient. free alone."
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


def comparison_table(comparison: Comparison, *, explained: bool = True) -> Table:
    """Methods down, grids across, ours and the paper's side by side; the best of each column is bold.

    Fits 80 columns with four grids. `explained` tells below what the figures are.
    """
    timed = any(line.score == SECONDS for line in comparison.lines)
    table = Table(
        title=comparison.title,
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        pad_edge=False,
        show_edge=False,
        caption=_BESIDE + ("Seconds a puzzle." if timed else _SCORES) if explained else "",
        caption_justify="left",
    )
    table.add_column("method", no_wrap=True)
    if not timed:
        table.add_column("score", no_wrap=True)
    for board in comparison.boards:
        size = str(board.cells) if timed else f"{board.rows}x{board.cols}"
        for source in ("ours", "paper"):
            table.add_column(f"{size}\n{source}", justify="right", no_wrap=True)
    for line in comparison.lines:
        table.add_row(line.method, *([] if timed else [line.score]), *_beside(line, comparison.lines, timed))
    return table


def write_rows(
    rows: Sequence[Row] | Sequence[FragmentRow] | Sequence[Footprint] | Sequence[PruningRow], path: Path
) -> None:
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


def _beside(line: Line, lines: Sequence[Line], timed: bool) -> list[str]:
    """Ours and the paper's figure for every board; ours rival each other under the same score."""
    cells = []
    for column, (ours, paper) in enumerate(zip(line.ours, line.paper, strict=True)):
        rivals = [other.ours[column] for other in lines if other.score == line.score]
        quoted = [other.paper[column] for other in lines]
        # The paper's figures with the digits that they have there.
        cells.append(_figure(ours, rivals, timed, ".2f" if timed else ".1f"))
        cells.append(_figure(paper, quoted, timed, "g" if timed else ".2f"))
    return cells


def _figure(value: float | None, rivals: Sequence[float | None], timed: bool, digits: str) -> str:
    if value is None:
        return ""
    best = (min if timed else max)(rival for rival in rivals if rival is not None)
    return f"[bold]{value:{digits}}[/bold]" if value == best else f"{value:{digits}}"
