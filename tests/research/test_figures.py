"""Figures show what was measured and what is quoted; footprints have figures and tables of their own."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console
from rich.table import Table

from diffassemble.evaluation.rows import Row
from diffassemble_research import figures
from diffassemble_research.figures import exponent, table_figure
from diffassemble_research.footprints import Footprint, footprint_figure, footprint_table, growth
from diffassemble_research.pruning import PruningRow, pruning_figure, pruning_table
from diffassemble_research.quoted import TABLES, Comparison

Errors = Callable[..., list[Comparison]]
Rows = Callable[..., Row]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are about to become PNGs."""
    seen: list[Figure] = []
    write = figures.png

    def spy(figure: Figure) -> bytes:
        seen.append(figure)
        return write(figure)

    monkeypatch.setattr(figures, "png", spy)
    return seen


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_bars_are_as_long_as_the_figures(accuracies: Comparison, drawn: list[Figure]) -> None:
    content = table_figure(TABLES["4"], [accuracies, replace(accuracies, view="paintings")])
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.format == "PNG"
        assert min(picture.size) > 300
        assert len(picture.getcolors(maxcolors=1 << 24)) > 100
    figure = drawn[0]
    assert figure.get_suptitle() == TABLES["4"].title
    assert len(figure.axes) == 4
    assert [figure.axes[i].get_title("left") for i in (0, 2)] == ["faces (PuzzleCelebA in the paper)", "paintings"]
    for panel, ours, quoted in zip(
        figure.axes, [(71, 81, 33), (72, 82, 94)] * 2, [(96.92, 33.28), ()] * 2, strict=True
    ):
        assert [bar.get_width() for bar in panel.patches][:3] == list(ours)
        diamonds = np.asarray(panel.lines[0].get_xdata(), dtype=float)[:3]
        assert diamonds[np.isfinite(diamonds)].tolist() == list(quoted)
        # What is quoted can be seen.
        assert panel.get_xlim()[1] > max(quoted, default=0)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["diffusion, absolute", "diffusion, orient. free", "gallagher, orient. free", "yu", "huroyan"]


def test_both_axes_of_the_time_figure_are_logarithmic(times: Comparison, drawn: list[Figure]) -> None:
    assert table_figure(TABLES["time"], [times]).startswith(b"\x89PNG")
    panel = drawn[0].axes[0]
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    lines = {str(line.get_label()): line for line in panel.lines}
    quoted_only = [f"{method}, quoted" for method in ("gallagher", "huroyan", "diffusion")]
    assert list(lines) == ["hybrid, ours", "yu, ours", "yu, quoted", *quoted_only]
    assert list(lines["yu, ours"].get_xdata()) == [36, 900]
    assert list(lines["yu, quoted"].get_ydata()) == [0.3, 92.0]
    assert lines["yu, ours"].get_color() == lines["yu, quoted"].get_color()
    assert legend(drawn[0]) == list(lines)


@pytest.mark.parametrize("power", [0.0, 1.0, 1.3, 2.0])
def test_the_power_of_growth_is_found_whatever_small_puzzles_cost(power: float) -> None:
    sizes = [36, 400, 900, 2500, 10_000]
    costs = [99.0, *(0.3 * size**power for size in sizes[1:])]
    assert exponent(sizes, costs) == pytest.approx(power)
    assert exponent([36, 144, 900, 900], [1.0, 2.0, 3.0, 4.0]) is None
    assert exponent([], []) is None


def test_courses_over_missing_pieces(drawn: list[Figure], object_row: Rows, errors: Errors) -> None:
    rows = [
        object_row("diffusion", 70.0 + 10 * share, 13.0, 31.0, missing=share, seeds=5 if share else 1)
        for share in (0.0, 0.1, 0.2, 0.3)
    ]
    assert table_figure(TABLES["missing-3d"], errors("missing-3d", *rows)).startswith(b"\x89PNG")
    lines = {line.get_label(): line for line in drawn[0].axes[0].lines if not line.get_label().startswith("_")}
    assert list(lines["diffusion, quoted"].get_ydata()) == [80.13, 80.32, 80.37, 80.46]
    assert list(lines["diffusion, quoted"].get_xdata()) == pytest.approx([0, 10, 20, 30])
    assert "lstm, quoted" in lines
    assert "diffusion, ours" in legend(drawn[0])


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


def test_every_process_has_its_line_the_paper_a_column_and_every_kind_its_growth() -> None:
    rows = some_rows()
    text = shown(footprint_table(rows))
    assert footprint_table(rows).row_count == 12
    assert "50000" in text  # 900 pieces, complete, quoted
    assert "20000" not in text  # the paper never measured this graph
    for part in ("quoted", "diffusion, complete: time n^2.00, memory n^1.00", "learn, matches + expander: time n^1.00"):
        assert part in text
    assert growth(rows[:1]) == ""
    assert "too few sizes" in shown(footprint_table(rows[:1]))


def test_pruned_networks_are_beside_the_quoted_ones() -> None:
    rows = [
        PruningRow(graph, degree, grid, 5, 100, 40.0, 80.0 + 10 * degree, 9.0, 700.0, 600.0, 0)
        for graph, degree in (("expander", 0.2), ("dropout", 0.2), ("complete", 1.0), ("expander", 7.0))
        for grid in ("6x6", "12x12", "9x9")
    ]
    text = shown(pruning_table(rows))
    assert all(text.count(quoted) == 1 for quoted in ("92.37", "54.07", "91.60", "50.18", "99.51", "97.76"))
    assert all(row in text for row in ("20 % 6x6", " 7 6x6"))
    for content in (footprint_figure(some_rows()), pruning_figure(rows)):
        assert Image.open(io.BytesIO(content)).format == "PNG"
