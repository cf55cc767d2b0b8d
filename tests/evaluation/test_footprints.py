"""Memory and time by pieces, and accuracy by degree, for people."""

from __future__ import annotations

import io

from PIL import Image
from rich.console import Console
from rich.table import Table

from diffassemble.evaluation.footprints import (
    Footprint,
    PruningRow,
    footprint_figure,
    footprint_table,
    growth,
    pruning_figure,
    pruning_table,
)


def some_rows() -> list[Footprint]:
    return [
        Footprint(work, graph, pieces, 0.01 * pieces**power, 500.0 + pieces, float(pieces), right)
        for work, right in (("diffusion", 99.0), ("learn", None))
        for graph, power in (("complete", 2.0), ("matches + expander", 1.0))
        for pieces in (36, 400, 900)
    ]


def shown(table: Table) -> str:
    screen = Console(width=150, file=io.StringIO())
    screen.print(table)
    return " ".join(screen.file.getvalue().split())  # type: ignore[attr-defined]


def test_every_process_has_its_line_and_the_paper_a_column_of_its_own() -> None:
    text = shown(footprint_table(some_rows()))
    assert footprint_table(some_rows()).row_count == 12
    assert "50000" in text  # 900 pieces, complete, quoted
    assert "20000" not in text  # the paper never measured this graph
    assert "quoted" in text


def test_growth_is_told_for_every_kind() -> None:
    told = growth(some_rows())
    assert "diffusion, complete: time n^2.00, memory n^1.00" in told
    assert "learn, matches + expander: time n^1.00" in told
    assert growth(some_rows()[:1]) == ""
    assert "too few sizes" in shown(footprint_table(some_rows()[:1]))


def pruned_rows() -> list[PruningRow]:
    return [
        PruningRow(graph, degree, grid, 5, 100, 40.0, 80.0 + 10 * degree, 9.0, 700.0, 600.0, 0)
        for graph, degree in (("expander", 0.2), ("dropout", 0.2), ("complete", 1.0), ("expander", 7.0))
        for grid in ("6x6", "12x12", "9x9")
    ]


def test_the_paper_stands_beside_what_it_measured() -> None:
    text = shown(pruning_table(pruned_rows()))
    for quoted in ("92.37", "54.07", "91.60", "50.18", "99.51", "97.76"):
        assert text.count(quoted) == 1
    assert "20 % 6x6" in text
    assert " 7 6x6" in text
    assert pruning_table(pruned_rows()).row_count == 12


def test_figures_are_pictures() -> None:
    for content in (footprint_figure(some_rows()), pruning_figure(pruned_rows())):
        assert Image.open(io.BytesIO(content)).format == "PNG"
