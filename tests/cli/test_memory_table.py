"""`evaluate --table memory`: what is measured, and what is left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from diffassemble.cli import memory_table
from diffassemble.cli.evaluate_options import EvaluateOptions
from diffassemble.cli.footprint import COMPLETE, PAPER_SPARSE, SPARSE, measure
from diffassemble.cli.memory_table import errands, evaluate_memory
from diffassemble.core import InputError


def test_large_puzzles_are_measured_on_sparse_graphs_alone() -> None:
    found = [
        (e.work, e.graph, e.side) for e in errands(EvaluateOptions(grid=("60", "6"), solver=("diffusion", "hybrid")))
    ]
    assert found == [
        *[("diffusion", graph, 6) for graph in (COMPLETE, PAPER_SPARSE, SPARSE)],
        *[("hybrid", graph, 6) for graph in (COMPLETE, SPARSE)],
        *[("learn", graph, 6) for graph in (COMPLETE, PAPER_SPARSE, SPARSE)],
        *[(work, SPARSE, 60) for work in ("diffusion", "hybrid", "learn")],
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid": ("4x5",)}, "square grids, not 4x5"),
        ({"solver": ("yu",)}, "diffusion and hybrid, not 'yu'"),
        ({"data": ("a", "b")}, "table memory takes one folder, not 2"),
    ],
)
def test_what_cannot_be_measured_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(errands(EvaluateOptions(**changes)))


def test_rows_and_figure_are_written(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory_table, "send", measure)  # processes of their own would take their time to start
    files = {"json": tmp_path / "rows.json", "figure": tmp_path / "figure.png"}
    evaluate_memory(EvaluateOptions(grid=("2",), model=str(tiny_model), size=16, steps=1, samples=1, **files))
    found = json.loads(files["json"].read_text())
    assert [row["work"] for row in found] == ["diffusion"] * 3 + ["learn"] * 3
    assert all(row["pieces"] == 4 and row["peak_mb"] > 50 for row in found)
    assert Image.open(files["figure"]).format == "PNG"
    assert "diffusion, complete, 4 pieces" in capsys.readouterr().out
