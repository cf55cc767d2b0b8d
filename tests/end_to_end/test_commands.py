"""From a photo to a scored, drawn answer, by the commands that users type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import skimage.data
import torch
from manifold3d import Manifold
from PIL import Image

import diffassemble as da
import diffassemble.cli.progress  # (loaded once, for the child processes)
from diffassemble.fragments.breaking import fracture, mesh_of
from diffassemble.io.atomic import write_file
from diffassemble.io.meshes import mesh_bytes

Command = Callable[..., Any]


def fresh(*words: str | Path) -> str:
    """Run a command in a fresh process that must go well, and give what it prints."""
    command = [sys.executable, "-m", "diffassemble", *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr in ("", "compiling the search, once; about 10 s\n")
    return done.stdout


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("photos") / "coffee.jpg"
    Image.fromarray(skimage.data.coffee()).save(path, quality=95)
    return path


def test_cut_solve_and_read_back(command: Command, photo: Path, tiny_model: Path, tmp_path: Path) -> None:
    puzzle, solved = tmp_path / "puzzle", tmp_path / "solved"
    words = ["--grid", "3x4", "--size", "32", "--missing", "0.2", "--erode", "1"]
    assert command("cut", photo, *words, "--out", puzzle).code == 0
    (puzzle / "truth.json").rename(tmp_path / "truth.json")  # withheld
    printed = fresh("solve", puzzle, "--model", tiny_model, "--samples", "2", "--steps", "3", "--out", solved)
    assert "score" not in printed
    (tmp_path / "truth.json").rename(puzzle / "truth.json")

    given = da.read_puzzle(puzzle)
    assembly = da.read_assembly(solved, given)
    cells, _ = given.board.snap(assembly.poses)
    assert len(given) == len(cells.unique()) == 10  # two cells stay empty
    assert given.truth is not None
    same = da.solve(given, model=str(tiny_model), samples=2, steps=3)
    da.write_assembly(same, tmp_path / "again")
    for name in ("assembly.json", "assembled.png", "steps.gif"):
        assert (tmp_path / "again" / name).read_bytes() == (solved / name).read_bytes()
    da.render(assembly, tmp_path / "solved.png")
    assert (tmp_path / "solved.png").read_bytes() == (solved / "assembled.png").read_bytes()
    with Image.open(tmp_path / "solved.png") as picture:
        assert picture.size == (4 * 30, 3 * 30)


def test_a_broken_block_and_a_marble(tmp_path: Path) -> None:
    halves = fracture(mesh_of(Manifold.cube((1.0, 0.8, 0.5), True)), 2, torch.Generator().manual_seed(5))
    marble = mesh_of(Manifold.sphere(0.1, 48), 1.0, torch.zeros(3))
    for name, mesh in zip(("a.ply", "b.ply", "marble.ply"), (*halves, marble), strict=True):
        write_file(tmp_path / "heap" / name, mesh_bytes(mesh, ".ply"))
    printed = fresh("solve", tmp_path / "heap", "--out", tmp_path / "out").splitlines()
    assert {"sure: a.ply, b.ply", "unplaced, no break found: marble.ply"} <= set(printed)
    pieces = json.loads((tmp_path / "out" / "assembly.json").read_text())["pieces"]
    assert [(one["group"], one["note"]) for one in pieces] == [*[("sure", "")] * 2, ("unplaced", "no break found")]
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<figure>") == 1
    assert "<th>unplaced, no break found</th><td>marble.ply</td>" in page


def test_the_five_lines_of_python(photo: Path, tiny_model: Path, tmp_path: Path) -> None:
    puzzle = da.cut_image(photo, rows=2, cols=3, seed=0)
    assembly = da.solve(puzzle, model=str(tiny_model), steps=2)
    da.render(assembly, tmp_path / "solved.png")
    with Image.open(tmp_path / "solved.png") as picture:
        assert picture.size == (3 * 200, 2 * 200)
    reordered = da.solve(puzzle.reordered(torch.arange(5, -1, -1)), model=str(tiny_model), steps=2)
    assert torch.equal(reordered.poses.translation.flip(0), assembly.poses.translation)
