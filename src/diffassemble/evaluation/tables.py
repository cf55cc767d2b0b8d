"""Results for people and for machines: every table is made here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from diffassemble.core import InputError
from diffassemble.evaluation.sweep import Measured
from diffassemble.io.atomic import write_file
from diffassemble.io.pictures import is_our_picture
from diffassemble.io.reading import parse_json

# Columns that only our tables have.
_ROW_NAMES = {"peak_mb", "solving_peak_mb", "sure_right"}
_GROUPS = (
    "Percent of pieces at their place, RMSE of Euler angles in degrees below: by pieces that the object broke into, "
    "by the piece's share of the object's area, and by how sure the solver was of it."
)


def make_table(
    headings: Sequence[str], lines: Sequence[Sequence[str]], *, caption: str = "", words: int = 2, title: str = ""
) -> Table:
    """A table that fits narrow terminals; the first `words` columns are words, the others numbers."""
    table = Table(
        title=title or None,
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        pad_edge=False,
        show_edge=not title,
        caption=caption,
        caption_justify="left",
    )
    for number, heading in enumerate(headings):
        # What was measured may take several lines, numbers and names may not.
        folds = heading in ("puzzles", "objects")
        table.add_column(
            heading,
            justify="left" if number < words else "right",
            no_wrap=not folds,
            overflow="fold" if folds else "ellipsis",
        )
    for line in lines:
        table.add_row(*line)
    return table


def results_table(results: Sequence[Measured]) -> Table:
    """Two lines per row; fits 80 columns."""
    row = results[0].row
    lines = [result.row.cells(result.intervals) for result in results]
    return make_table(row.HEADINGS, lines, caption=row.CAPTION)


def groups_table(rows: Sequence[Any]) -> Table:
    """Where the solvers are good and where not."""
    found = [row.groups() for row in rows]
    columns = list(
        dict.fromkeys(key for kind in ("pieces", "area", "sure") for one in found for key in one if key[0] == kind)
    )
    lines = []
    for row, groups in zip(rows, found, strict=True):
        means = (groups.get(column) for column in columns)
        texts = ("" if one is None else f"{one['part_accuracy']:.1f}\n{one['rmse_r']:.1f}°" for one in means)
        lines.append([row.solver, row.describe(), *texts])
    return make_table(["solver", "objects", *map("\n".join, columns)], lines, caption=_GROUPS)


def is_our_output(content: bytes) -> bool:
    """Whether a file holds what `evaluate` writes: a figure, a page, or the rows of a table."""
    if is_our_picture(content):
        return True
    if content[:9].lower() == b"<!doctype":
        return b'<meta name="generator" content="diffassemble">' in content[:2000]
    try:
        rows = parse_json(content, "", "")
    except InputError:
        return False
    return (
        isinstance(rows, list) and bool(rows) and all(isinstance(row, dict) and row.keys() & _ROW_NAMES for row in rows)
    )


def write_rows(rows: Sequence[Any], path: Path) -> None:
    """Write rows, each a dataclass, as a JSON list, one row a line, whole or not at all."""
    lines = ",\n".join(f"  {json.dumps(asdict(row), allow_nan=False)}" for row in rows)
    write_file(path, f"[\n{lines}\n]\n".encode())
