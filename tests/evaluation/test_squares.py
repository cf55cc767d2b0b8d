"""Puzzles of pictures: protocol, fairness, repeatability; solvers with known scores get them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.core import Board, InputError, Puzzle, turn_pixels
from diffassemble.evaluation.squares import (
    PictureCell,
    PictureRow,
    benchmark_picture,
    bootstrap_interval,
    score_placement,
)
from diffassemble.evaluation.sweep import Draws

JSON_FIELDS = [
    *("solver", "data", "grid", "pieces", "missing", "erode", "puzzles", "accuracy", "accuracy_free"),
    *("neighbours", "perfect", "seconds_per_puzzle", "peak_mb", "seed"),
]
Rows = Callable[..., list[Any]]


def cut(pictures: list[Path], board: Board, limit: int | None = None, seed: int = 0, **options: Any) -> list[Puzzle]:
    """The puzzles of a cell, truth included."""
    draws = Draws(PictureCell("noise", pictures, board, **options), limit, seed=seed)
    draws.check()
    return [draws.case(number)[0].puzzle for number in range(len(draws))]


def test_rows_have_the_promised_fields() -> None:
    assert [field.name for field in fields(PictureRow)] == JSON_FIELDS


def test_pieces_put_back_by_the_truth_give_the_cropped_and_resized_picture(pictures: list[Path]) -> None:
    board = Board(2, 3)
    puzzle = cut(pictures[:1], board, size=20)[0]
    cells, turns = board.snap(puzzle.truth)
    whole = torch.empty(3, 40, 60)
    for pixels, cell in zip(turn_pixels(puzzle.pieces.pixels, turns), cells.tolist(), strict=True):
        row, col = divmod(cell, 3)
        whole[:, 20 * row : 20 * row + 20, 20 * col : 20 * col + 20] = pixels
    # The picture is 90×60, so the 3:2 crop is all of it.
    reference = Image.open(pictures[0]).resize((60, 40), Image.Resampling.LANCZOS)
    levels = torch.frombuffer(bytearray(reference.tobytes()), dtype=torch.uint8).reshape(40, 60, 3)
    assert torch.equal((whole * 255).round().byte(), levels.movedim(-1, 0))
    # Whole levels, as a picture from a file has.
    assert torch.allclose(whole * 255, (whole * 255).round(), atol=1e-4)


def test_the_crop_is_the_centre() -> None:
    picture = torch.zeros(3, 40, 100)
    picture[:, :, 30:70] = 1
    assert bool((benchmark_picture(picture, Board(4, 4), 10) == 1).all())


def test_missing_and_eroded_pieces(pictures: list[Path]) -> None:
    puzzle = cut(pictures[:1], Board(6, 6), missing=0.3, erode=2)[0]
    assert (len(puzzle), puzzle.pieces.size, puzzle.board) == (25, 28, Board(6, 6))


def test_pieces_are_shuffled_and_turned(pictures: list[Path]) -> None:
    puzzle = cut(pictures[:1], Board(6, 6))[0]
    cells, turns = puzzle.board.snap(puzzle.truth)
    assert not torch.equal(cells, cells.sort().values)
    assert set(turns.tolist()) == {0, 1, 2, 3}


def test_the_seed_and_the_picture_decide_and_nothing_else(pictures: list[Path]) -> None:
    board = Board(4, 4)
    first, again, other = (cut(pictures, board, seed=seed) for seed in (0, 0, 1))
    for one, two, three in zip(first, again, other, strict=True):
        assert torch.equal(one.pieces.pixels, two.pieces.pixels)
        assert not torch.equal(one.pieces.pixels, three.pieces.pixels)
    assert len({tuple(board.snap(puzzle.truth)[0].tolist()) for puzzle in first}) == len(pictures)
    for every, some in zip(first[::2], cut(pictures, board, limit=3), strict=True):
        assert torch.equal(every.pieces.pixels, some.pieces.pixels)


def test_pictures_of_the_right_size_are_not_resampled(tmp_path: Path) -> None:
    levels = torch.randint(0, 256, (56, 84, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    Image.fromarray(levels.numpy()).save(tmp_path / "exact.png")
    pieces = cut([tmp_path / "exact.png"], Board(2, 3), size=28)[0].pieces
    assert torch.equal((pieces.pixels * 255).round().flatten().sort().values, levels.float().flatten().sort().values)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"missing": 1.0}, "missing"),
        ({"missing": -0.1}, "missing"),
        ({"erode": -1}, "erode"),
        ({"limit": 0}, "limit 0 leaves no puzzles"),
        ({"size": 3}, "pieces of 3 pixels"),
        ({"size": 8, "erode": 3}, "less 3 at every side"),
        ({"seed": -1}, "seed"),
    ],
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
    assert (row.accuracy, row.accuracy_free, row.neighbours, row.perfect) == (100.0, 100.0, 100.0, 100.0)
    assert (row.solver, row.data, row.grid) == ("oracle", "noise", f"{board.rows}x{board.cols}")
    assert (row.pieces, row.puzzles) == (board.cells - round(missing * board.cells), len(pictures))
    assert row.peak_mb > 10


@pytest.mark.parametrize("turned", [1, 2, 3])
def test_an_oracle_that_turns_the_whole_is_right_orientation_free_only(
    oracle: Callable[..., Any], rows: Rows, pictures: list[Path], turned: int
) -> None:
    cell = PictureCell("noise", pictures, Board(4, 4))
    (row,) = rows(cell, oracle([cell], turned))
    assert (row.accuracy, row.accuracy_free, row.neighbours, row.perfect) == (0.0, 100.0, 100.0, 100.0)


def test_random_answers_score_at_chance(random_solver: Any, rows: Rows, pictures: list[Path]) -> None:
    # 180 answers of 4 pieces each: the share of right ones is 1/16 within five standard errors.
    (row,) = rows(PictureCell("noise", pictures * 30, Board(2, 2), size=8), random_solver)
    assert row.puzzles == 180
    assert row.accuracy == pytest.approx(100 / 16, abs=5 * 100 * (0.25 / 180) ** 0.5 / 4)
    assert row.accuracy_free > row.accuracy


def test_reordered_pieces_score_the_same(pictures: list[Path]) -> None:
    puzzle = cut(pictures[:1], Board(4, 4))[0]
    # The answer is the truth but for two exchanged pieces.
    answer = puzzle.truth[torch.tensor([1, 0, *range(2, 16)])]
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    plain = score_placement(puzzle, answer, 1.0)
    assert plain.accuracy == 87.5
    assert plain == score_placement(puzzle.reordered(order), answer[order], 1.0)
    with pytest.raises(InputError, match="without its truth"):
        score_placement(replace(puzzle, truth=None), answer, 1.0)


def test_intervals_are_near_the_normal_ones_and_repeat() -> None:
    assert bootstrap_interval([80.0] * 20) == (80.0, 80.0)
    values = np.random.default_rng(1).normal(70, 10, size=400).tolist()
    low, high = bootstrap_interval(values)
    half = 1.96 * np.std(values) / np.sqrt(400)
    assert low == pytest.approx(np.mean(values) - half, abs=0.25)
    assert high == pytest.approx(np.mean(values) + half, abs=0.25)
    assert bootstrap_interval(values) == bootstrap_interval(values[::-1]) == (low, high)
