"""On lists of likely pairs, placements are worth what they are worth on whole matrices; growing always gives one."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.core import Board
from diffassemble.squares import search as growing
from diffassemble.squares.search import NOWHERE
from diffassemble.squares.sparse_search import UNLISTED, gain_between, grow, margins, value, worth

Table = tuple[np.ndarray, np.ndarray, np.ndarray]


def listed(count: int, share: float, seed: int = 0) -> tuple[Table, np.ndarray]:
    """Random symmetric gains, of which a share is listed, and the same as a matrix."""
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(4 * count, 4 * count)).astype(np.float32)
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    chosen = np.triu(random.random(matrix.shape) < share)
    matrix = np.where(chosen | chosen.T, matrix, np.float32(UNLISTED))
    rows, partner = np.nonzero(matrix != UNLISTED)
    return (np.searchsorted(rows, np.arange(4 * count + 1)), partner, matrix[rows, partner]), matrix


def some_homes(count: int, cells: int, seed: int = 0) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """A cell and turn for most pieces, and the same as a whole array."""
    random = np.random.default_rng(seed)
    homes = random.integers(-1, cells, count), random.integers(0, 4, count), random.random(count).astype(np.float32)
    unary = np.zeros((cells, count, 4), np.float32)
    for piece, (cell, turn, pull) in enumerate(zip(*homes, strict=True)):
        if cell != NOWHERE:
            unary[cell, piece, turn] = pull
    return homes, unary


def random_placement(count: int, cells: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    where = random.permutation(cells)[:count]
    at = np.full(cells, NOWHERE)
    at[where] = np.arange(count)
    return at, random.integers(0, 4, count), where


BOARDS = [(Board(3, 4), 12), (Board(3, 4), 7), (Board(1, 5), 4), (Board(4, 1), 4), (Board(1, 1), 1)]


@pytest.mark.parametrize(("board", "count"), BOARDS)
def test_worth_and_values_are_those_of_whole_matrices(board: Board, count: int) -> None:
    table, matrix = listed(count, 0.3)
    homes, unary = some_homes(count, board.cells)
    at, turn, where = random_placement(count, board.cells)
    expected = growing.worth(at, turn, matrix, unary, board.cols)
    assert worth(at, turn, table, homes, board.cols) == pytest.approx(expected, abs=1e-3)
    for piece in range(count):
        place = piece, turn[piece], where[piece], at, turn
        expected = growing.value(*place, matrix, unary, board.cols)
        assert value(*place, table, homes, board.cols) == pytest.approx(expected, abs=1e-4)


def test_pairs_that_are_not_listed_cost_the_most() -> None:
    table, matrix = listed(3, 0.4)
    for one in range(12):
        for other in range(12):
            assert gain_between(table, one, other) == pytest.approx(float(matrix[one, other]))


@pytest.mark.parametrize(("board", "count"), BOARDS)
@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("lost", [0.5, 1.0])
def test_growing_puts_every_piece_onto_a_cell_of_its_own_and_moves_none_that_lies(
    board: Board, count: int, share: float, lost: float
) -> None:
    table, _ = listed(count, share)
    homes, _ = some_homes(count, board.cells)
    at, turn, where = random_placement(count, board.cells)
    fixed, fixed_turn = where.copy(), turn.copy()
    loose = int(lost * count)
    for piece in range(loose):
        at[where[piece]] = where[piece] = NOWHERE
    grow(at, turn, where, table, homes, board.cols)
    assert np.array_equal(at[where], np.arange(count))
    assert (at != NOWHERE).sum() == count
    assert np.array_equal(where[loose:], fixed[loose:])
    assert np.array_equal(turn[loose:], fixed_turn[loose:])
    assert ((turn >= 0) & (turn < 4)).all()


def test_margins_compare_with_the_best_likely_rival() -> None:
    board, count = Board(3, 3), 9
    table, matrix = listed(count, 1.0)
    homes, unary = some_homes(count, board.cells)
    at, turn, where = random_placement(count, board.cells)
    expected = growing.margins(at, turn, where, matrix, unary, board.cols)
    np.testing.assert_allclose(margins(at, turn, where, table, homes, board.cols), expected, atol=1e-4)
