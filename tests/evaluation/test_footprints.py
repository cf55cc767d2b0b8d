"""Memory and time by pieces, for people."""

from __future__ import annotations

import io

from PIL import Image
from rich.console import Console

from diffassemble.evaluation.footprints import Footprint, footprint_figure, footprint_table, growth


def some_rows() -> list[Footprint]:
    return [
        Footprint(work, graph, pieces, 0.01 * pieces**power, 500.0 + pieces, float(pieces), right)
        for work, right in (("diffusion", 99.0), ("learn", None))
        for graph, power in (("complete", 2.0), ("matches + expander", 1.0))
        for pieces in (36, 400, 900)
    ]


def shown(rows: list[Footprint]) -> str:
    screen = Console(width=150, file=io.StringIO())
    screen.print(footprint_table(rows))
    return " ".join(screen.file.getvalue().split())  # type: ignore[attr-defined]


def test_every_process_has_its_line_and_the_paper_a_column_of_its_own() -> None:
    text = shown(some_rows())
    assert footprint_table(some_rows()).row_count == 12
    assert "50000" in text  # 900 pieces, complete, quoted
    assert "20000" not in text  # the paper never measured this graph
    assert "quoted" in text


def test_growth_is_told_for_every_kind() -> None:
    told = growth(some_rows())
    assert "diffusion, complete: time n^2.00, memory n^1.00" in told
    assert "learn, matches + expander: time n^1.00" in told
    assert growth(some_rows()[:1]) == ""
    assert "too few sizes" in shown(some_rows()[:1])


def test_the_figure_is_a_picture() -> None:
    assert Image.open(io.BytesIO(footprint_figure(some_rows()))).format == "PNG"
