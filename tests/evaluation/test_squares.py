"""Puzzles of pictures: protocol, fairness, repeatability; solvers with known scores get them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from diffassemble.core import Board, InputError, Placements, Puzzle, turn_pixels
from diffassemble.evaluation.squares import PictureCell, benchmark_picture, score_placement
from diffassemble.evaluation.sweep import Draws

Rows = Callable[..., list[Any]]


def cut(pictures: list[Path], board: Board, **options: Any) -> list[Puzzle]:
    """The puzzles of a cell, truth included."""
    draws = Draws(PictureCell("noise", pictures, board, **options))
    draws.check()
    return [draws.case(number)[0].puzzle for number in range(len(draws))]


def test_pieces_put_back_by_the_truth_give_the_cropped_and_resized_picture(pictures: list[Path]) -> None:
    board = Board(2, 3)
    puzzle = cut(pictures[:1], board, size=20)[0]
    cells, turns = board.snap(puzzle.truth)
    whole = torch.empty(3, 40, 60)
    for pixels, cell in zip(turn_pixels(puzzle.pieces.pixels, turns), cells.tolist(), strict=True):
        row, col = divmod(cell, 3)
        whole[:, 20 * row : 20 * row + 20, 20 * col : 20 * col + 20] = pixels
    assert not torch.equal(cells, cells.sort().values)
    assert len(set(turns.tolist())) > 1
    # The picture is 90×60, so the 3:2 crop is all of it.
    reference = Image.open(pictures[0]).resize((60, 40), Image.Resampling.LANCZOS)
    levels = torch.frombuffer(bytearray(reference.tobytes()), dtype=torch.uint8).reshape(40, 60, 3)
    assert torch.equal((whole * 255).round().byte(), levels.movedim(-1, 0))
    # Whole levels, as a picture from a file has.
    assert torch.allclose(whole * 255, (whole * 255).round(), atol=1e-4)
    wide = torch.zeros(3, 40, 100)
    wide[:, :, 30:70] = 1
    assert bool((benchmark_picture(wide, Board(4, 4), 10) == 1).all())


def test_missing_and_eroded_pieces(pictures: list[Path]) -> None:
    puzzle = cut(pictures[:1], Board(6, 6), missing=0.3, erode=2)[0]
    assert (len(puzzle), puzzle.pieces.size, puzzle.board) == (25, 28, Board(6, 6))


@pytest.mark.parametrize(
    ("options", "word"),
    [({"erode": -1}, "erode"), ({"size": 3}, "pieces of 3 pixels"), ({"size": 8, "erode": 3}, "less 3 at every side")],
)
def test_bad_options_are_named(pictures: list[Path], options: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        cut(pictures, Board(3, 3), **options)
    with pytest.raises(InputError, match="no pictures"):
        cut([], Board(3, 3))


@pytest.mark.parametrize("board", [Board(3, 3), Board(2, 4)])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_an_oracle_gets_everything(
    oracle: Callable[..., Any], rows: Rows, pictures: list[Path], board: Board, missing: float
) -> None:
    cell = PictureCell("noise", pictures, board, missing)
    (row,) = rows(cell, oracle([cell]))
    assert [row[name] for name in ("accuracy", "accuracy_free", "neighbours", "perfect")] == [100.0] * 4
    assert (row.solver, row.data, row.setting["grid"]) == ("oracle", "noise", f"{board.rows}x{board.cols}")
    assert (row.pieces, row.puzzles) == (board.cells - round(missing * board.cells), len(pictures))
    assert row.peak_mb > 10
    (row,) = rows(cell, oracle([cell], 2))  # the whole turned: right orientation free only
    assert [row[name] for name in ("accuracy", "accuracy_free", "neighbours", "perfect")] == [0.0, 100.0, 100.0, 100.0]


def test_without_truth_nothing_is_scored(pictures: list[Path]) -> None:
    puzzle = cut(pictures[:1], Board(4, 4))[0]
    # The answer is the truth but for two exchanged pieces.
    answer = puzzle.truth[torch.tensor([1, 0, *range(2, 16)])]
    assert score_placement(puzzle, Placements(answer, torch.ones(16)), 1.0)["accuracy"] == 87.5
    with pytest.raises(InputError, match="without its truth"):
        score_placement(puzzle.without_truth(), Placements(answer, torch.ones(16)), 1.0)
