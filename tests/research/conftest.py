"""Rows of our own beside the quoted figures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diffassemble.evaluation.fragments import Anchor, Figures, Group, ObjectRow, PieceGroup
from diffassemble.evaluation.squares import PictureRow
from diffassemble.evaluation.sweep import Measured
from diffassemble_research.quoted import TABLES, Comparison, compare_errors, compare_grids


@pytest.fixture
def measured() -> Callable[..., Measured]:
    """A result with the given accuracy, orientation-free accuracy and seconds."""

    def make(solver: str, right: float, free: float, seconds: float = 1.0, side: int = 6) -> Measured:
        row = PictureRow(
            *(solver, "a/val", f"{side}x{side}", side * side, 0.0, 0, 9), right, free, 50.0, 50.0, seconds, 100.0, 0
        )
        return Measured(row, {"accuracy": (right - 1, right + 1), "accuracy_free": (free - 2, free + 2)})

    return make


@pytest.fixture
def accuracies(measured: Callable[..., Measured]) -> Comparison:
    """A learned and a border solver beside Table 4, at 6x6 and at 7x7, of which the paper says nothing."""
    results = [
        [measured("diffusion", 71.0, 81.0), measured("diffusion", 72.0, 82.0, side=7)],
        [measured("gallagher", 13.0, 33.0), measured("gallagher", 14.0, 94.0, side=7)],
    ]
    return compare_grids(TABLES["4"], "faces", results, {"gallagher", "other"})


@pytest.fixture
def times(measured: Callable[..., Measured]) -> Comparison:
    """Two solvers beside the paper's times at 36 and 900 pieces."""
    results = [
        [measured("hybrid", 1.0, 1.0, 0.25), measured("hybrid", 1.0, 1.0, 9.5, side=30)],
        [measured("yu", 1.0, 1.0, 0.5), measured("yu", 1.0, 1.0, 8.75, side=30)],
    ]
    return compare_grids(TABLES["time"], "faces", results)


@pytest.fixture
def object_row() -> Callable[..., ObjectRow]:
    """A row with the given figures."""

    def make(
        solver: str, r: float, t: float, right: float, *, missing: float = 0.0, anchor: Anchor = "none", seeds: int = 1
    ) -> ObjectRow:
        figures = Figures(r, t, right, right - 1, right / 2, 3.25, r + 20, r + 10)
        spread = None if seeds == 1 else Figures(1.5, 0.4, 2.5, 1.0, 1.0, 1.0, 1.25, 1.0)
        groups = (Group("2", 5, figures), Group("3–4", 4, figures))
        chips = (PieceGroup("< 1 %", 7, 12.5, 80.5, 9.0, 120.0),)
        return ObjectRow(
            *(solver, "bad/everyday/val", 9, missing, 0.001 if seeds > 1 else 0.0, 0, anchor),
            **vars(figures),
            **{"seconds_per_object": 0.25, "peak_mb": 812.5, "seed": 0, "seeds": seeds},
            **{"plain": figures, "deviation": spread, "classes": groups, "by_pieces": groups},
            **{"by_size": chips, "by_confidence": (), "calibration": ()},
        )

    return make


@pytest.fixture
def errors(object_row: Callable[..., ObjectRow]) -> Callable[..., list[Comparison]]:
    """Rows beside a table about broken objects."""

    def make(table: str, *rows: ObjectRow) -> list[Comparison]:
        return compare_errors(TABLES[table], [Measured(row, {}) for row in rows])

    return make
