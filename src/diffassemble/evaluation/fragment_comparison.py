"""Our figures on broken objects beside the quoted ones, never in one column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diffassemble.evaluation.fragment_benchmark import FragmentRow
from diffassemble.evaluation.fragment_quoted import FragmentTable, QuotedFigures


@dataclass(frozen=True)
class FragmentLine:
    """A method: what we measured, if we did, and what is quoted of it, if anything is."""

    method: str
    ours: FragmentRow | None
    quoted: QuotedFigures | None


@dataclass(frozen=True)
class FragmentComparison:
    """All methods with the same share of pieces missing, seen with the same anchor."""

    title: str
    data: str
    anchor: str
    missing: float
    digits: int
    lines: tuple[FragmentLine, ...]


def compare_fragments(table: FragmentTable, rows: Sequence[FragmentRow]) -> list[FragmentComparison]:
    """One comparison for each collection, anchor and missing share: our rows, then methods that are only quoted."""
    kinds = dict.fromkeys((row.data, row.anchor, row.missing) for row in rows)
    return [
        _compare(table, [row for row in rows if (row.data, row.anchor, row.missing) == kind], *kind) for kind in kinds
    ]


def _compare(
    table: FragmentTable, rows: Sequence[FragmentRow], data: str, anchor: str, missing: float
) -> FragmentComparison:
    lines = [FragmentLine(row.solver, row, table.figures(row.solver, missing)) for row in rows]
    ours = {row.solver for row in rows}
    lines += [
        FragmentLine(entry.method, None, entry)
        for entry in table.quoted
        if entry.missing == missing and entry.method not in ours
    ]
    return FragmentComparison(table.title, data, anchor, missing, table.digits, tuple(lines))
