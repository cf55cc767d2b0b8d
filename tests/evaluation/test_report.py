"""The page of a measurement shows every row, and the best and worst answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import skimage.data
import torch
from PIL import Image

from diffassemble.core import Board, Puzzle, Step
from diffassemble.evaluation.report import Album, Remembering, measurement_page
from diffassemble.evaluation.sweep import Sweep, all_cells, run_sweep


class Rowwise:
    """Lays pieces as they come."""

    name = "rowwise"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        order = torch.arange(len(puzzle))
        yield Step(puzzle.board.poses(order, torch.zeros_like(order)), 1.0)


def test_a_page_about_a_sweep(tmp_path: Path) -> None:
    for name in ("coffee", "chelsea", "rocket"):
        Image.fromarray(getattr(skimage.data, name)()).resize((96, 96)).save(tmp_path / f"{name}.png")
    album = Album([Remembering(Rowwise())])
    cells = all_cells([("samples", sorted(tmp_path.glob("*.png")))], [Board(2, 2), Board(3, 3)])
    results = list(run_sweep(Sweep(album.solvers, cells, size=16), album.hear))
    page = measurement_page(results, album, [("seed", "0")])
    assert "Best answer of rowwise" in page
    assert "Worst answer of rowwise" in page
    assert "<td>2x2</td>" in page
    assert "<td>3x3</td>" in page
    assert all(source.startswith("data:image/png") for source in re.findall(r'src="([^"]+)"', page))
    assert album.best["rowwise"][0].accuracy_free >= album.worst["rowwise"][0].accuracy_free
