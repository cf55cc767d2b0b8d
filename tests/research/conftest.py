"""Rows of our own beside the quoted figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from diffassemble.evaluation.rows import Part, Row
from diffassemble_research.quoted import TABLES, Comparison, compare_errors, compare_grids


def a_row(solver: str, data: str, figures: Mapping[str, float], setting: Mapping[str, Any], **changes: Any) -> Row:
    """A row with the given figures."""
    fields: dict[str, Any] = {
        **{"words": (), "puzzles": 9, "items": 9, "pieces": 8.0, "seed": 0, "seeds": 1, "plain": {}, "deviation": None},
        **{"intervals": {}, "sure": 0, "sure_right": 0, "false_joins": 0},
        **{"seconds_per_puzzle": 0.25, "peak_mb": 812.5, **changes},
    }
    return Row(solver=solver, data=data, figures=figures, setting=setting, **fields)


@pytest.fixture
def measured() -> Callable[..., Row]:
    """A row with the given accuracy, orientation-free accuracy and seconds."""

    def make(solver: str, right: float, free: float, seconds: float = 1.0, side: int = 6) -> Row:
        figures = {"accuracy": right, "accuracy_free": free, "neighbours": 50.0, "perfect": 50.0}
        ends = {"accuracy": (right - 1, right + 1), "accuracy_free": (free - 2, free + 2)}
        setting = {"grid": f"{side}x{side}", "missing": 0.0, "erode": 0}
        more = {"pieces": float(side * side), "intervals": ends, "seconds_per_puzzle": seconds}
        return a_row(solver, "a/val", figures, setting, **more)

    return make


@pytest.fixture
def accuracies(measured: Callable[..., Row]) -> Comparison:
    """A learned and a border solver beside Table 4, at 6x6 and at 7x7, of which the paper says nothing."""
    results = [
        [measured("diffusion", 71.0, 81.0), measured("diffusion", 72.0, 82.0, side=7)],
        [measured("gallagher", 13.0, 33.0), measured("gallagher", 14.0, 94.0, side=7)],
    ]
    return compare_grids(TABLES["4"], "faces", results, {"gallagher", "other"})


@pytest.fixture
def times(measured: Callable[..., Row]) -> Comparison:
    """Two solvers beside the paper's times at 36 and 900 pieces."""
    results = [
        [measured("hybrid", 1.0, 1.0, 0.25), measured("hybrid", 1.0, 1.0, 9.5, side=30)],
        [measured("yu", 1.0, 1.0, 0.5), measured("yu", 1.0, 1.0, 8.75, side=30)],
    ]
    return compare_grids(TABLES["time"], "faces", results)


@pytest.fixture
def object_row() -> Callable[..., Row]:
    """A row about broken objects with the given figures."""

    def make(
        solver: str, r: float, t: float, right: float, *, missing: float = 0.0, anchor: str = "none", seeds: int = 1
    ) -> Row:
        figures = {"rmse_r": r, "rmse_t": t, "part_accuracy": right, "part_accuracy_rest": right - 1}
        figures |= {"all_right": right / 2, "chamfer": 3.25, "geodesic": r + 20}
        spread = {**dict.fromkeys(figures, 1.0), "rmse_r": 1.5, "rmse_t": 0.4, "part_accuracy": 2.5, "geodesic": 1.25}
        parts = (Part("pieces", "2", 5, figures), Part("pieces", "3–4", 4, figures), Part("area", "< 1 %", 7, figures))
        return a_row(
            *(solver, "bad/everyday/val", figures, {"missing": missing, "noise": 0.0, "points": 0, "anchor": anchor}),
            words=(f"{missing:.0%} missing", f"anchor {anchor}"),
            **{"seeds": seeds, "deviation": None if seeds == 1 else spread, "parts": parts, "plain": figures},
            intervals={name: (value - 1, value + 1) for name, value in figures.items()},
            **{"sure": 8, "sure_right": 7, "false_joins": 3},
        )

    return make


@pytest.fixture
def errors() -> Callable[..., list[Comparison]]:
    """Rows beside a table about broken objects."""
    return lambda table, *rows: compare_errors(TABLES[table], rows)
