"""Figures show every measured method, and what the paper says."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from diffassemble.evaluation import figures
from diffassemble.evaluation.comparison import Comparison
from diffassemble.evaluation.figures import accuracy_figure, time_figure


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


def test_bars_are_as_high_as_the_figures(accuracies: Comparison, drawn: list[Figure]) -> None:
    content = accuracy_figure("Table 4", [accuracies, replace(accuracies, title="paintings")])
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.format == "PNG"
        assert picture.width > picture.height > 300
        assert len(picture.getcolors(maxcolors=1 << 24)) > 100
    figure = drawn[0]
    assert figure.get_suptitle() == "Table 4"
    assert [panel.get_title() for panel in figure.axes] == ["faces (PuzzleCelebA in the paper)", "paintings"]
    for panel in figure.axes:
        assert [bar.get_height() for bar in panel.patches] == [71.0, 72.0, 81.0, 82.0, 33.0, 94.0]
        diamonds = np.concatenate([line.get_ydata() for line in panel.lines])
        assert diamonds[np.isfinite(diamonds)].tolist() == [96.92, 33.28]
        assert [label.get_text() for label in panel.get_xticklabels()] == ["6x6", "7x7"]
    assert legend(figure)[:2] == ["diffusion", "gallagher"]
    assert "yu" not in legend(figure)


def test_both_axes_of_the_time_figure_are_logarithmic(times: Comparison, drawn: list[Figure]) -> None:
    assert time_figure("seconds", times).startswith(b"\x89PNG")
    panel = drawn[0].axes[0]
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    lines = {str(line.get_label()): line for line in panel.lines}
    quoted_only = [f"{method}, quoted" for method in ("gallagher", "huroyan", "diffusion")]
    assert list(lines) == ["hybrid, ours", "yu, ours", "yu, quoted", *quoted_only]
    assert list(lines["yu, ours"].get_xdata()) == [36, 900]
    assert list(lines["yu, quoted"].get_ydata()) == [0.3, 92.0]
    assert lines["yu, ours"].get_color() == lines["yu, quoted"].get_color()
    assert legend(drawn[0]) == list(lines)


def test_one_grid_and_no_quoted_figure_can_be_drawn(accuracies: Comparison, times: Comparison) -> None:
    alone = replace(accuracies.lines[0], ours=(50.0,), paper=(None,), intervals=((45.0, 55.0),))
    assert accuracy_figure("", [Comparison("", accuracies.boards[:1], (alone,))])
    assert time_figure("", Comparison("", times.boards[:1], (replace(alone, ours=(0.1,)),)))
