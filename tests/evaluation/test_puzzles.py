"""Benchmark puzzles: protocol, fairness, repeatability."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from diffassemble.core import Board, InputError, Puzzle, turn_pixels
from diffassemble.evaluation.puzzles import benchmark_picture, benchmark_puzzles, puzzle_count


def cut(pictures: list[Path], board: Board, **options: float) -> list[Puzzle]:
    return [puzzle for puzzle, _ in benchmark_puzzles(pictures, board, **options)]  # type: ignore[arg-type]


def test_pieces_put_back_by_the_truth_give_the_cropped_and_resized_picture(pictures: list[Path]) -> None:
    board = Board(2, 3)
    puzzle = cut(pictures[:1], board, size=20)[0]
    assert puzzle.truth is not None
    cells, turns = board.snap(puzzle.truth)
    whole = torch.empty(3, 40, 60)
    for pixels, cell in zip(turn_pixels(puzzle.pieces.pixels, turns), cells.tolist(), strict=True):
        row, col = divmod(cell, 3)
        whole[:, 20 * row : 20 * row + 20, 20 * col : 20 * col + 20] = pixels
    # The picture is 90×60, so the 3:2 crop is all of it.
    reference = Image.open(pictures[0]).resize((60, 40), Image.Resampling.LANCZOS)
    levels = torch.frombuffer(bytearray(reference.tobytes()), dtype=torch.uint8).reshape(40, 60, 3)
    assert torch.equal((whole * 255).round().byte(), levels.movedim(-1, 0))


def test_the_crop_is_the_centre() -> None:
    picture = torch.zeros(3, 40, 100)
    picture[:, :, 30:70] = 1
    assert bool((benchmark_picture(picture, Board(4, 4), 10) == 1).all())


def test_colours_are_whole_levels(pictures: list[Path]) -> None:
    levels = cut(pictures[:1], Board(3, 3), size=17)[0].pieces.pixels * 255
    assert torch.allclose(levels, levels.round(), atol=1e-4)


def test_missing_and_eroded_pieces(pictures: list[Path]) -> None:
    puzzle = cut(pictures[:1], Board(6, 6), missing=0.3, erode=2)[0]
    assert len(puzzle) == 25
    assert puzzle.pieces.size == 28
    assert puzzle.board == Board(6, 6)


def test_pieces_are_shuffled_and_turned(pictures: list[Path]) -> None:
    puzzle = cut(pictures[:1], Board(6, 6))[0]
    assert puzzle.truth is not None
    cells, turns = puzzle.board.snap(puzzle.truth)
    assert not torch.equal(cells, cells.sort().values)
    assert set(turns.tolist()) == {0, 1, 2, 3}


def test_the_seed_and_the_picture_decide_and_nothing_else(pictures: list[Path]) -> None:
    board = Board(4, 4)
    first, again, other = (
        cut(pictures, board, seed=0),
        cut(pictures, board, seed=0),
        cut(pictures, board, seed=1),
    )
    for one, two, three in zip(first, again, other, strict=True):
        assert torch.equal(one.pieces.pixels, two.pieces.pixels)
        assert not torch.equal(one.pieces.pixels, three.pieces.pixels)
    orders = {tuple(puzzle.board.snap(puzzle.truth)[0].tolist()) for puzzle in first if puzzle.truth}
    assert len(orders) == len(pictures)


def test_a_limit_spreads_over_the_list_and_keeps_the_puzzles(pictures: list[Path]) -> None:
    board = Board(3, 3)
    full, part = cut(pictures, board), cut(pictures, board, limit=3)
    for every, some in zip(full[::2], part, strict=True):
        assert torch.equal(every.pieces.pixels, some.pieces.pixels)
    assert len(cut(pictures, board, limit=100)) == len(pictures)


def test_too_few_pictures_are_cut_again_with_the_next_seeds(pictures: list[Path]) -> None:
    board = Board(3, 3)
    many = cut(pictures, board, seed=4, puzzles=15)
    rounds = [*cut(pictures, board, seed=4), *cut(pictures, board, seed=5), *cut(pictures, board, seed=6, limit=3)]
    for one, two in zip(many, rounds, strict=True):
        assert torch.equal(one.pieces.pixels, two.pieces.pixels)


def test_no_picture_is_left_out_where_there_are_enough(pictures: list[Path]) -> None:
    assert len(cut(pictures, Board(3, 3), puzzles=2)) == len(pictures)


def test_a_limit_of_pictures_holds_for_further_seeds_too(pictures: list[Path]) -> None:
    board = Board(3, 3)
    some = cut(pictures, board, limit=2, puzzles=4)
    rounds = [*cut(pictures, board, seed=0, limit=2), *cut(pictures, board, seed=1, limit=2)]
    for one, two in zip(some, rounds, strict=True):
        assert torch.equal(one.pieces.pixels, two.pieces.pixels)


@pytest.mark.parametrize(("limit", "puzzles"), [(None, None), (2, None), (9, None), (None, 3), (None, 14), (4, 5)])
def test_the_number_of_puzzles_is_known_beforehand(
    pictures: list[Path], limit: int | None, puzzles: int | None
) -> None:
    drawn = list(benchmark_puzzles(pictures, Board(2, 2), size=8, limit=limit, puzzles=puzzles))
    assert len(drawn) == puzzle_count(len(pictures), limit, puzzles)


def test_pictures_of_the_right_size_are_not_resampled(tmp_path: Path) -> None:
    levels = torch.randint(0, 256, (56, 84, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    Image.fromarray(levels.numpy()).save(tmp_path / "exact.png")
    pieces = cut([tmp_path / "exact.png"], Board(2, 3), size=28)[0].pieces
    assert pieces.size == 28
    assert torch.equal((pieces.pixels * 255).round().flatten().sort().values, levels.float().flatten().sort().values)


def test_solving_draws_do_not_repeat_the_cutting_draws(pictures: list[Path]) -> None:
    puzzle, generator = next(iter(benchmark_puzzles(pictures, Board(5, 5))))
    assert puzzle.truth is not None
    guess = torch.randperm(25, generator=generator)
    assert not torch.equal(guess, puzzle.board.snap(puzzle.truth)[0])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"missing": 1.0}, "missing"),
        ({"missing": -0.1}, "missing"),
        ({"erode": -1}, "erode"),
        ({"limit": 0}, "limit"),
        ({"puzzles": 0}, "puzzles 0"),
        ({"size": 3}, "pieces of 3 pixels"),
        ({"size": 8, "erode": 3}, "less 3 at every side"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_named(pictures: list[Path], options: dict[str, float], word: str) -> None:
    with pytest.raises(InputError, match=word):
        cut(pictures, Board(3, 3), **options)


def test_no_pictures_is_an_error() -> None:
    with pytest.raises(InputError, match="no pictures"):
        cut([], Board(3, 3))
