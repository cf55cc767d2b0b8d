"""Cutting pictures."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, InputError, Puzzle, turn_pixels
from diffassemble.core.damage import erode_pixels, surviving
from diffassemble.squares.cut import SMALLEST_PIECE, crop_to_board, cut_picture, resize_to_board, tiles

boards = st.builds(Board, st.integers(1, 6), st.integers(1, 6))


seeds = st.integers(0, 2**31)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(height: int, width: int, seed: int = 0) -> Tensor:
    """A picture of random colours of 8 bits."""
    return torch.randint(0, 256, (3, height, width), generator=seeded(seed)) / 255


def put_back(puzzle: Puzzle) -> Tensor:
    """Every piece turned by its true turn and laid on its true cell; empty cells are NaN."""
    assert puzzle.truth is not None
    cells, turns = puzzle.board.snap(puzzle.truth)
    size = puzzle.pieces.size
    picture = torch.full((3, puzzle.board.rows * size, puzzle.board.cols * size), torch.nan)
    for cell, pixels in zip(cells.tolist(), turn_pixels(puzzle.pieces.pixels, turns), strict=True):
        row, col = divmod(cell, puzzle.board.cols)
        picture[:, row * size : (row + 1) * size, col * size : (col + 1) * size] = pixels
    return picture


@settings(deadline=None)
@given(boards, st.integers(SMALLEST_PIECE, 9), seeds)
def test_the_truth_restores_the_picture_exactly(board: Board, size: int, seed: int) -> None:
    picture = noise(board.rows * size, board.cols * size, seed)
    assert torch.equal(put_back(cut_picture(picture, board, seeded(seed))), picture)
    assert torch.equal(put_back(cut_picture(picture, board, seeded(seed), size=size)), picture)


@settings(deadline=None)
@given(boards, st.integers(24, 60), st.integers(24, 60), seeds)
def test_a_picture_of_any_shape_keeps_its_centre(board: Board, height: int, width: int, seed: int) -> None:
    picture = noise(height, width, seed)
    restored = put_back(cut_picture(picture, board, seeded(seed)))
    size = min(height // board.rows, width // board.cols)
    rows, cols = size * board.rows, size * board.cols
    assert restored.shape == (3, rows, cols)
    # The middle may fall between two pixels, and is rounded when the shape and again when the size is cut.
    tops = range(max(0, (height - rows) // 2 - 1), (height - rows) // 2 + 2)
    lefts = range(max(0, (width - cols) // 2 - 1), (width - cols) // 2 + 2)
    windows = (picture[:, top : top + rows, left : left + cols] for top in tops for left in lefts)
    assert any(torch.equal(restored, window) for window in windows)


@settings(deadline=None)
@given(boards, st.integers(24, 60), st.integers(24, 60))
def test_the_crop_has_the_boards_shape_and_could_not_be_larger(board: Board, height: int, width: int) -> None:
    rows, cols = crop_to_board(noise(height, width), board).shape[-2:]
    assert (rows == height and cols <= width) or (cols == width and rows <= height)
    assert abs(rows * board.cols - cols * board.rows) <= max(board.rows, board.cols) / 2


@settings(deadline=None)
@given(boards, st.integers(1, 5))
def test_tiles_are_the_cells_row_by_row(board: Board, size: int) -> None:
    picture = noise(board.rows * size, board.cols * size)
    for cell, tile in enumerate(tiles(picture, board)):
        row, col = divmod(cell, board.cols)
        assert torch.equal(tile, picture[:, row * size : (row + 1) * size, col * size : (col + 1) * size])


def test_resizing_gives_every_cell_its_size_and_keeps_colours_in_range() -> None:
    board = Board(3, 5)
    stripes = (torch.arange(100) % 2).float().expand(3, 60, 100)  # sharp enough for bicubic weights to overshoot
    for size in (7, 32):
        resized = resize_to_board(stripes, board, size)
        assert resized.shape == (3, 3 * size, 5 * size)
        assert 0 <= resized.min() <= resized.max() <= 1
    flat = torch.full((3, 60, 100), 0.25)
    torch.testing.assert_close(resize_to_board(flat, board, 9), torch.full((3, 27, 45), 0.25))
    assert cut_picture(stripes, board, seeded(0), size=11).pieces.size == 11


@settings(deadline=None)
@given(boards, st.sampled_from((0.0, 0.1, 0.3, 0.5, 0.9)), seeds)
def test_missing_pieces_leave_their_cells_empty(board: Board, missing: float, seed: int) -> None:
    picture = noise(board.rows * 4, board.cols * 4, seed)
    puzzle = cut_picture(picture, board, seeded(seed), missing=missing)
    assert len(puzzle) == max(1, board.cells - round(board.cells * missing))
    assert len(puzzle.names) == len(set(puzzle.names)) == len(puzzle)
    restored = put_back(puzzle)
    empty = restored.isnan()
    assert empty.sum() == (board.cells - len(puzzle)) * 3 * 4 * 4
    assert torch.equal(restored[~empty], picture[~empty])


@pytest.mark.parametrize("erode", [0, 1, 3])
def test_eroded_pieces_are_the_hearts_of_whole_ones(erode: int) -> None:
    whole = cut_picture(noise(30, 40), Board(3, 4), seeded(1)).pieces.pixels
    worn = cut_picture(noise(30, 40), Board(3, 4), seeded(1), erode=erode).pieces.pixels
    assert torch.equal(worn, whole[:, :, erode : 10 - erode, erode : 10 - erode])


def test_pieces_have_no_finer_colours_than_files_of_8_bits() -> None:
    fine = torch.rand(3, 40, 40, generator=seeded(0))
    for size in (None, 9):
        pixels = cut_picture(fine, Board(4, 4), seeded(0), size=size).pieces.pixels * 255
        torch.testing.assert_close(pixels, pixels.round(), rtol=0, atol=1e-4)


def test_the_same_seed_gives_the_same_puzzle() -> None:
    first, again, other = (cut_picture(noise(40, 40), Board(4, 4), seeded(seed)) for seed in (5, 5, 6))
    assert torch.equal(first.pieces.pixels, again.pieces.pixels)
    assert first.truth is not None
    assert again.truth is not None
    assert torch.equal(first.truth.translation, again.truth.translation)
    assert not torch.equal(first.pieces.pixels, other.pieces.pixels)


def test_pieces_are_shuffled_and_turned_evenly() -> None:
    counts = torch.zeros(16, 4)
    generator, rounds = seeded(0), 400
    for _ in range(rounds):
        puzzle = cut_picture(noise(16, 16), Board(4, 4), generator)
        assert puzzle.truth is not None
        cells, turns = puzzle.board.snap(puzzle.truth)
        assert cells.sort().values.tolist() == list(range(16))
        counts[cells[0], turns[0]] += 1
    # The first piece may be any of 16, at any of 4 turns: chi-square with 63 degrees of freedom, five deviations.
    expected = rounds / 64
    assert ((counts - expected) ** 2 / expected).sum() < 63 + 5 * (2 * 63) ** 0.5
    upright = cut_picture(noise(16, 16), Board(4, 4), generator, turn=False)
    assert upright.truth is not None
    assert torch.equal(upright.truth.rotation, torch.eye(2).expand(16, 2, 2))


@pytest.mark.parametrize(
    ("height", "width", "board", "options"),
    [
        (1, 1, Board(1, 1), {}),
        (40, 40, Board(11, 11), {}),
        (40, 15, Board(4, 4), {}),
        (40, 40, Board(5, 5), {"erode": 3}),
        (40, 40, Board(2, 2), {"size": 3}),
        (40, 40, Board(2, 2), {"size": 9, "erode": 3}),
        (9, 9, Board(3, 3), {"size": 32}),
    ],
)
def test_too_small_a_picture_is_refused(height: int, width: int, board: Board, options: dict[str, int]) -> None:
    with pytest.raises(InputError, match=f"a {width}x{height} picture cut .* use a larger picture") as caught:
        cut_picture(noise(height, width), board, seeded(0), **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@settings(deadline=None)
@given(st.integers(0, 4), st.integers(9, 12))
def test_erosion_takes_a_strip_from_every_side(lost: int, size: int) -> None:
    pixels = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    worn = erode_pixels(pixels, lost)
    assert worn.shape == (2, 3, size - 2 * lost, size - 2 * lost)
    assert torch.equal(worn, pixels[:, :, lost : size - lost, lost : size - lost])


@settings(deadline=None)
@given(st.integers(1, 200), st.floats(0, 0.999), st.integers(0, 2**31))
def test_the_share_is_lost_and_nothing_is_kept_twice(count: int, missing: float, seed: int) -> None:
    kept = surviving(count, missing, torch.Generator().manual_seed(seed)).tolist()
    assert len(kept) == max(1, count - round(count * missing))
    assert len(set(kept)) == len(kept)
    assert set(kept) <= set(range(count))


def test_every_piece_is_lost_equally_often() -> None:
    generator = torch.Generator().manual_seed(0)
    kept = torch.cat([surviving(10, 0.3, generator) for _ in range(2000)])
    share = torch.bincount(kept, minlength=10) / 2000
    assert (share - 0.7).abs().max() < 5 * (0.7 * 0.3 / 2000) ** 0.5
