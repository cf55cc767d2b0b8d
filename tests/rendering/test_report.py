"""A report is one page that holds all it shows, and loads nothing."""

from __future__ import annotations

import re
from dataclasses import replace

import skimage.data
import torch

from diffassemble.core import Assembly, Board, Locks
from diffassemble.rendering.report import Pictures, report_html
from diffassemble.squares.cut import cut_picture


def answer() -> Assembly:
    picture = torch.from_numpy(skimage.data.coffee()).movedim(-1, 0).float() / 255
    puzzle = cut_picture(picture, Board(2, 3), torch.Generator().manual_seed(0), size=16)
    sure = torch.tensor([0.9, 0.2, 0.8, 1.0, 0.7, 0.6])
    return Assembly(puzzle, puzzle.truth, sure, (puzzle.truth,), "hybrid", 1.25)


def test_it_is_self_contained_and_tells_what_was_done() -> None:
    page = report_html(Pictures(answer()), [("seed", "7")])
    assert page.startswith("<!DOCTYPE html>")
    sources = re.findall(r'src="([^"]+)"', page)
    assert len(sources) == 3
    assert all(source.startswith("data:image/") for source in sources)
    assert not re.search(r"https?://|<script|<link", page)
    for words in ("2x3", "hybrid", "1.2", "seed", "100.0 % of the pieces right", "torch", "How to cite", "Blender"):
        assert words in page
    assert page.index("piece_001.png") < page.index("piece_005.png")


def test_what_is_odd_is_told() -> None:
    given = answer()
    held = torch.arange(6) < 2
    locked = replace(given, puzzle=replace(given.puzzle, locks=Locks(held, given.poses)), extra=("<b>.png",))
    page = report_html(Pictures(replace(locked, objects=(0, 1, 1, 0, 0, -1))))
    assert "<th>object 2</th>" in page
    assert "<th>left out, fits nowhere</th>" in page
    assert "&lt;b&gt;.png" in page
    assert "<th>locked</th><td>2</td>" in page
