"""The notebook runs from its first cell to its last, and shows pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "tour.py"


@pytest.mark.slow
def test_the_tour_runs(tmp_path: Path) -> None:
    jupytext, nbclient = pytest.importorskip("jupytext"), pytest.importorskip("nbclient")
    notebook = jupytext.read(NOTEBOOK)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    results = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in data for data in results) >= 3 + 4
    assert sum("sure" in data.get("text/html", "") for data in results) == 4
    assert (tmp_path / "bowl-mended" / "assembled.glb").stat().st_size > 0
