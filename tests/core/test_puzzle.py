"""A puzzle in another order is the same puzzle."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from diffassemble.core import Board, ImagePieces, Puzzle


@pytest.fixture
def puzzle() -> Puzzle:
    board = Board(2, 3)
    pixels = torch.rand(5, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    truth = board.poses(torch.tensor([4, 0, 5, 2, 1]), torch.tensor([0, 1, 2, 3, 0]))
    return Puzzle(ImagePieces(pixels), board, tuple("abcde"), truth)


def test_pieces_names_and_truth_move_together(puzzle: Puzzle) -> None:
    order = torch.tensor([3, 1, 4, 0, 2])
    other = puzzle.reordered(order)
    assert len(other) == len(puzzle) == 5
    assert other.names == ("d", "b", "e", "a", "c")
    assert torch.equal(other.pieces.pixels, puzzle.pieces.pixels[order])
    assert torch.equal(other.truth.translation, puzzle.truth.translation[order])
    assert torch.equal(other.truth.rotation, puzzle.truth.rotation[order])


def test_the_order_can_be_undone(puzzle: Puzzle) -> None:
    order = torch.tensor([3, 1, 4, 0, 2])
    back = puzzle.reordered(order).reordered(order.argsort())
    assert back.names == puzzle.names
    assert torch.equal(back.pieces.pixels, puzzle.pieces.pixels)


def test_a_solver_sees_everything_but_the_truth(puzzle: Puzzle) -> None:
    shown = puzzle.without_truth()
    assert shown.truth is None
    assert shown == replace(puzzle, truth=None)
    assert shown.reordered(torch.arange(5)).truth is None
