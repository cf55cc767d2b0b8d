"""Examples and notebook run, without data and without network."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diffassemble.cli.progress  # noqa: F401 (loaded once, for the child processes)

EXAMPLES = Path(__file__).parents[2] / "examples"
RESULTS = {
    "01_own_photo.py": ["solved.png"],
    "02_folder_of_pieces.py": ["coffee-solved/assembly.json", "coffee-solved/assembled.png"],
    "03_broken_bowl.py": ["bowl-puzzle/puzzle.json", "bowl-solved/assembled.glb", "bowl-solved/matrices.txt"],
    "04_own_solver.py": ["by-brightness.png"],
    "06_real_pieces.py": ["jigsaw-puzzle/puzzle.json", "jigsaw-solved/plan.png", "jigsaw-solved/assembled.png"],
    "05_tiny_training.py": ["tiny-run/last/model.safetensors"],
}

# It starts a process of its own.
FRESH = "05_tiny_training.py"


def test_all_are_run() -> None:
    scripts = sorted(EXAMPLES.glob("*.py"))
    assert [path.name for path in scripts] == sorted(RESULTS)
    assert all(len(path.read_text().splitlines()) <= 40 for path in scripts)


@pytest.mark.parametrize("name", sorted(set(RESULTS) - {FRESH}))
def test_example(script: Callable[[Path, Path], Any], name: str, tmp_path: Path) -> None:
    done = script(EXAMPLES / name, tmp_path)
    assert done.code == 0, done.err
    assert all((tmp_path / result).stat().st_size > 0 for result in RESULTS[name])


@pytest.mark.slow
def test_as_users_start_it(tmp_path: Path) -> None:
    few = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, str(EXAMPLES / FRESH)]
    done = subprocess.run(words, cwd=tmp_path, env=few, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / result).stat().st_size > 0 for result in RESULTS[FRESH])


@pytest.mark.slow
def test_the_tour_runs(tmp_path: Path) -> None:
    jupytext, nbclient = pytest.importorskip("jupytext"), pytest.importorskip("nbclient")
    notebook = jupytext.read(EXAMPLES / "notebook" / "tour.py")
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    results = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in data for data in results) >= 3 + 4
    assert sum("sure" in data.get("text/html", "") for data in results) == 4
    assert (tmp_path / "bowl-mended" / "assembled.glb").stat().st_size > 0
