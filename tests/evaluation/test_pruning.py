"""Accuracy by degree, for people."""

from __future__ import annotations

import io

from PIL import Image
from rich.console import Console

from diffassemble.evaluation.pruning import PruningRow, pruning_figure, pruning_table, told_degree


def some_rows() -> list[PruningRow]:
    return [
        PruningRow(graph, degree, grid, 5, 100, 40.0, 80.0 + 10 * degree, 9.0, 700.0, 600.0, 0)
        for graph, degree in (("expander", 0.2), ("dropout", 0.2), ("complete", 1.0), ("expander", 7.0))
        for grid in ("6x6", "12x12", "9x9")
    ]


def test_the_paper_stands_beside_what_it_measured() -> None:
    screen = Console(width=150, file=io.StringIO())
    screen.print(pruning_table(some_rows()))
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    for quoted in ("92.37", "54.07", "91.60", "50.18", "99.51", "97.76"):
        assert text.count(quoted) == 1
    assert pruning_table(some_rows()).row_count == 12


def test_degrees_are_shares_or_numbers() -> None:
    assert [told_degree(degree) for degree in (0.2, 1.0, 16.0)] == ["20 %", "100 %", "16"]


def test_the_figure_is_a_picture() -> None:
    assert Image.open(io.BytesIO(pruning_figure(some_rows()))).format == "PNG"
