"""Pictures of assemblies: exact where they can be, readable elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.core import Assembly, Board, Puzzle
from diffassemble.rendering.picture import (
    EMPTY_CELL,
    draw_assembly,
    draw_before_after,
    draw_confidence,
    draw_poses,
    draw_table,
)
from diffassemble.squares.cut import crop_to_board, resize_to_board

Make = Callable[..., Puzzle]
Solved = Callable[..., Assembly]


def original(cat: torch.Tensor, board: Board) -> np.ndarray:
    picture = resize_to_board(crop_to_board(cat, board), board, 16)
    return (picture * 255).round().byte().movedim(0, -1).numpy()


@pytest.mark.parametrize(("rows", "cols"), [(4, 4), (3, 5), (5, 2), (7, 9)])
def test_a_right_assembly_is_the_original_pixel_by_pixel(
    cat: torch.Tensor, make_puzzle: Make, solved: Solved, rows: int, cols: int
) -> None:
    assembly = solved(make_puzzle(rows, cols))
    expected = original(cat, Board(rows, cols))
    assert np.array_equal(np.asarray(draw_assembly(assembly)), expected)
    assert np.array_equal(np.asarray(draw_poses(assembly.puzzle, assembly.poses, 16)), expected)


def test_missing_pieces_leave_grey_cells(cat: torch.Tensor, make_puzzle: Make, solved: Solved) -> None:
    assembly = solved(make_puzzle(4, 4, missing=0.25))
    picture = np.asarray(draw_assembly(assembly))
    expected = original(cat, Board(4, 4)).copy()
    filled = set(assembly.puzzle.board.snap(assembly.poses)[0].tolist())
    for cell in set(range(16)) - filled:
        row, col = divmod(cell, 4)
        expected[16 * row : 16 * row + 16, 16 * col : 16 * col + 16] = EMPTY_CELL
    assert np.array_equal(picture, expected)


def test_confidence_tints_from_red_to_blue(make_puzzle: Make) -> None:
    puzzle = make_puzzle(2, 2)
    assert puzzle.truth is not None
    flat = replace(puzzle, pieces=replace(puzzle.pieces, pixels=torch.full_like(puzzle.pieces.pixels, 0.5)))
    sure, doubtful = (draw_poses(flat, puzzle.truth, 16, confidence=torch.full((4,), value)) for value in (1.0, 0.0))
    assert np.asarray(sure)[8, 8, 2] > np.asarray(sure)[8, 8, 0]
    assert np.asarray(doubtful)[8, 8, 0] > np.asarray(doubtful)[8, 8, 2]


@pytest.mark.parametrize(("rows", "cols", "missing"), [(6, 6, 0.0), (3, 5, 0.3), (1, 2, 0.0), (40, 40, 0.0)])
def test_presentable_pictures_of_any_board(
    make_puzzle: Make, solved: Solved, rows: int, cols: int, missing: float
) -> None:
    assembly = solved(make_puzzle(rows, cols, missing=missing))
    pair, tinted = draw_before_after(assembly), draw_confidence(assembly)
    assert 900 < pair.width < 1300
    assert pair.height < 700
    assert 300 < tinted.width < 1000
    assert draw_table(assembly.puzzle, 480).width == 480


def test_the_result_stands_on_the_right(make_puzzle: Make, solved: Solved) -> None:
    assembly = solved(make_puzzle(4, 4))
    pair = draw_before_after(assembly)
    result = draw_assembly(assembly).resize((480, 480), Image.Resampling.LANCZOS)
    inner = pair.crop((pair.width - 20 - 480, pair.height - 20 - 480, pair.width - 20, pair.height - 20))
    assert np.array_equal(np.asarray(inner), np.asarray(result))
