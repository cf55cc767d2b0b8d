"""The page of a measurement on broken objects shows every row, and the best and worst answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from diffassemble.core import Poses, Puzzle
from diffassemble.evaluation.fragment_benchmark import FragmentSweep, run_fragment_sweep
from diffassemble.evaluation.fragment_puzzles import Damage, benchmark_cases
from diffassemble.evaluation.fragment_report import FragmentAlbum, fragment_page


def test_a_page_about_a_sweep(fractures: list[Any], fragment_solver: Callable[..., Any]) -> None:
    """A solver that knows the first object only has that one as its best, and another as its worst."""
    first = next(case for case, _ in benchmark_cases(fractures, Damage())).puzzle
    known = fragment_solver(
        "half",
        lambda puzzle, generator: first.truth if len(puzzle) == len(first) else Poses.identity(len(puzzle), 3),
    )
    album = FragmentAlbum()
    sweep = FragmentSweep([known], [("bars", fractures[:2])], [Damage(), Damage(points=500)], anchors=("none",))
    rows = [row for found in run_fragment_sweep(sweep, album.hear) for row in found]
    assert album.best["half"].score.right.all()
    assert not album.worst["half"].score.right.all()
    page = fragment_page(rows, album, [("seed", "0")])
    for part in ("Best answer of half", "Worst answer of half", "500 points", "<th>rmse r</th>", "<td>area</td>"):
        assert part in page
    pictures = re.findall(r'src="([^"]+)"', page)
    assert len(pictures) == 3
    assert all(source.startswith("data:image/png") for source in pictures)


def test_the_largest_piece_is_an_anchor_if_asked_for(fractures: list[Any], fragment_solver: Callable[..., Any]) -> None:
    """An answer that is right but for a common motion counts as right only then."""

    def shift(puzzle: Puzzle, generator: torch.Generator) -> Poses:
        return Poses(truth.rotation, truth.translation + 1)

    truth = next(case for case, _ in benchmark_cases(fractures, Damage())).puzzle.truth
    for anchors, right in ((("none",), 0), (("none", "largest"), len(truth))):
        album = FragmentAlbum()
        sweep = FragmentSweep([fragment_solver("moved", shift)], [("bars", fractures[:1])], anchors=anchors)
        list(run_fragment_sweep(sweep, album.hear))
        assert int(album.best["moved"].score.right.sum()) == right
