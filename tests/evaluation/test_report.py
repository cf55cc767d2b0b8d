"""The page of a measurement shows every row, and the best and worst answers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from diffassemble.core import Board, Poses
from diffassemble.evaluation.fragments import ObjectCell
from diffassemble.evaluation.report import Album, measurement_page, rank
from diffassemble.evaluation.squares import PictureCell
from diffassemble.evaluation.sweep import Cell, Draws, Sweep, run_sweep


def page(cells: list[Cell], solver: Any) -> tuple[str, Album]:
    album = Album()
    rows = list(run_sweep(Sweep([solver], [Draws(cell) for cell in cells]), album.add))
    text = measurement_page(rows, cells[0].LAYOUT, album, [("seed", "0")])
    assert all(f"{word} answer of {solver.name}" in text for word in ("Best", "Worst"))
    pictures = re.findall(r'src="([^"]+)"', text)
    assert len(pictures) == 3
    assert all(source.startswith("data:image/png") for source in pictures)
    assert rank(album.best[solver.name]) > rank(album.worst[solver.name])
    return text, album


def test_a_page_about_pictures(pictures: list[Path], random_solver: Any) -> None:
    text, _ = page([PictureCell("noise", pictures, Board(side, 2), size=16) for side in (1, 2)], random_solver)
    heads = (f"<th>{name}</th>" for name in ("accuracy free", "precision", "false joins"))
    assert all(part in text for part in ("<td>1x2</td>", "<td>2x2</td>", *heads))


def test_a_page_about_objects(fractures: list[Any], nothing: Any) -> None:
    """A solver that knows the first object only, but for a common motion, is right if its largest piece is in place."""
    cell = ObjectCell("bars", fractures[:2], anchors=("none", "largest"))
    truth, leave = Draws(cell).case(0)[0].puzzle.truth, nothing.answer
    moved = Poses(truth.rotation, truth.translation + 1)
    nothing.answer = lambda puzzle, _: moved if len(puzzle) == len(truth) else leave(puzzle, _)
    text, album = page([cell, replace(cell, points=500)], nothing)
    assert album.best["nothing"].score["all_right"]
    assert album.best["nothing"].scores["none"]["part_accuracy"] == 0
    assert not album.worst["nothing"].score["all_right"]
    for part in ("part accuracy 100.0", "500 points", "<th>rmse r</th>", "<td>area</td>"):
        assert part in text
