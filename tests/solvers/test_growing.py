"""A placement's worth is the sum of what it realises; growing always gives a placement, and the true one if it can."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from diffassemble.core import Board, Puzzle
from diffassemble.squares.baselines.filling import touching_sides
from diffassemble.squares.edges import image_matches
from diffassemble.squares.energy import border_gains
from diffassemble.squares.search import NOWHERE, grow, margins, value, worth


def random_terms(count: int, cells: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    gains = random.normal(size=(4 * count, 4 * count)).astype(np.float32)
    return gains + gains.T, random.normal(size=(cells, count, 4)).astype(np.float32)


def random_placement(count: int, cells: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    where = random.permutation(cells)[:count]
    at = np.full(cells, NOWHERE)
    at[where] = np.arange(count)
    return at, random.integers(0, 4, count), where


@pytest.mark.parametrize(("board", "count"), [(Board(3, 4), 12), (Board(3, 4), 7), (Board(1, 5), 4), (Board(4, 1), 4)])
def test_worth_is_the_sum_over_touching_sides_and_places(board: Board, count: int) -> None:
    gains, unary = random_terms(count, board.cells)
    at, turn, where = random_placement(count, board.cells)
    first, second = touching_sides(board, torch.from_numpy(where), torch.from_numpy(turn))
    expected = gains[first, second].sum() / 2 + unary[where, np.arange(count), turn].sum()
    assert worth(at, turn, gains, unary, board.cols) == pytest.approx(float(expected), abs=1e-4)


def test_the_value_of_a_piece_is_what_the_whole_loses_without_it() -> None:
    board = Board(3, 4)
    gains, unary = random_terms(10, board.cells)
    at, turn, where = random_placement(10, board.cells)
    whole = worth(at, turn, gains, unary, board.cols)
    for piece in range(10):
        without = at.copy()
        without[where[piece]] = NOWHERE
        found = value(piece, turn[piece], where[piece], at, turn, gains, unary, board.cols)
        assert found == pytest.approx(whole - worth(without, turn, gains, unary, board.cols), abs=1e-4)


@pytest.mark.parametrize(("board", "count"), [(Board(3, 4), 12), (Board(4, 4), 9), (Board(1, 6), 3), (Board(2, 2), 1)])
def test_growing_puts_every_piece_onto_a_cell_of_its_own_and_moves_none_that_lies(board: Board, count: int) -> None:
    gains, unary = random_terms(count, board.cells)
    at, turn, where = random_placement(count, board.cells)
    fixed, fixed_turn = where.copy(), turn.copy()
    for piece in range(count // 2):
        at[where[piece]] = where[piece] = NOWHERE
    grow(at, turn, where, gains, unary, board.cols)
    assert np.array_equal(at[where], np.arange(count))
    assert (at != NOWHERE).sum() == count
    assert np.array_equal(where[count // 2 :], fixed[count // 2 :])
    assert np.array_equal(turn[count // 2 :], fixed_turn[count // 2 :])


def test_a_photo_grows_from_one_piece(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 5, name="astronaut")
    board = puzzle.board
    assert puzzle.truth is not None
    cells, turns = (part.numpy() for part in board.snap(puzzle.truth))
    gains = border_gains(image_matches(puzzle.pieces.pixels, board.pitch, keep=12), 20).numpy()
    at, where, turn = np.full(20, NOWHERE), np.full(20, NOWHERE), turns.copy()
    at[cells[3]], where[3] = 3, cells[3]
    grow(at, turn, where, gains, np.zeros((20, 20, 4), np.float32), board.cols)
    assert np.array_equal(where, cells)
    assert np.array_equal(turn, turns)


def test_pieces_that_fit_nowhere_stay_apart_when_there_is_room() -> None:
    gains, unary = np.full((8, 8), -5, np.float32), np.zeros((9, 2, 4), np.float32)
    at, turn, where = np.full(9, NOWHERE), np.zeros(2, np.int64), np.array([4, NOWHERE])
    at[4] = 0
    grow(at, turn, where, gains, unary, 3)
    assert where[1] in (0, 2, 6, 8)


def test_margins_are_against_the_best_other_piece_or_turn() -> None:
    gains, unary = np.zeros((8, 8), np.float32), np.zeros((2, 2, 4), np.float32)
    unary[0, 0, 1], unary[0, 0, 2], unary[0, 1, 0], unary[1, 1, 3] = 5.0, 3.0, 4.0, 2.0
    margin = margins(np.array([0, 1]), np.array([1, 3]), np.array([0, 1]), gains, unary, 2)
    assert margin.tolist() == [1.0, 2.0]
