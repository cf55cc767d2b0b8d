"""Figures on broken objects: what is drawn is what was measured and quoted."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from diffassemble.evaluation import fragment_figures
from diffassemble.evaluation.fragment_benchmark import FragmentRow
from diffassemble.evaluation.fragment_comparison import compare_fragments
from diffassemble.evaluation.fragment_figures import fragment_figure
from diffassemble.evaluation.fragment_quoted import FRAGMENT_TABLES


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are written from now on."""
    figures: list[Figure] = []
    write = fragment_figures.png

    def spy(figure: Figure) -> bytes:
        figures.append(figure)
        return write(figure)

    monkeypatch.setattr(fragment_figures, "png", spy)
    return figures


def test_bars_of_all_methods(drawn: list[Figure], fragment_row: Callable[..., FragmentRow]) -> None:
    rows = [fragment_row("diffusion", 70.5, 13.2, 31.0), fragment_row("identity", 83.1, 17.6, 4.2)]
    content = fragment_figure("Table 1", compare_fragments(FRAGMENT_TABLES["1"], rows))
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.format == "PNG"
    turns, _, right = drawn[0].axes
    assert [text.get_text() for text in turns.get_yticklabels()][:3] == ["diffusion", "identity", "global"]
    assert [bar.get_width() for bar in turns.patches][:2] == [70.5, 83.1]
    assert [bar.get_width() for bar in right.patches][:2] == [31.0, 4.2]
    diamonds = np.asarray(right.lines[0].get_xdata(), dtype=float)
    assert diamonds[0] == 27.5
    assert np.isnan(diamonds[1])


def test_courses_over_missing_pieces(drawn: list[Figure], fragment_row: Callable[..., FragmentRow]) -> None:
    rows = [
        fragment_row("diffusion", 70.0 + 10 * share, 13.0, 31.0, missing=share, seeds=5 if share else 1)
        for share in (0.0, 0.1, 0.2, 0.3)
    ]
    content = fragment_figure("missing", compare_fragments(FRAGMENT_TABLES["missing-3d"], rows))
    assert content.startswith(b"\x89PNG")
    lines = {line.get_label(): line for line in drawn[0].axes[0].lines if not line.get_label().startswith("_")}
    assert list(lines["diffusion, quoted"].get_ydata()) == [80.13, 80.32, 80.37, 80.46]
    assert list(lines["diffusion, quoted"].get_xdata()) == pytest.approx([0, 10, 20, 30])
    assert "lstm, quoted" in lines
    told = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert "diffusion, ours" in told
