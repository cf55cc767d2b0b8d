"""The linear program finds the places in which the matches hold that deserve it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from diffassemble.core import Board
from diffassemble.squares.baselines.filling import touching_sides
from diffassemble.squares.baselines.yu import inconsistency
from diffassemble.squares.forest import Forest

QUARTERS = [np.linalg.matrix_power(np.array([[0, -1], [1, 0]]), quarter) for quarter in range(4)]


def true_matches(board: Board, seed: int) -> np.ndarray:
    """Every pair of sides that touches, once, of pieces that lie anywhere at any turn."""
    generator = torch.Generator().manual_seed(seed)
    cells = torch.randperm(board.cells, generator=generator)
    turns = torch.randint(0, 4, (board.cells,), generator=generator)
    pairs = torch.stack(touching_sides(board, cells, turns), 1).numpy()
    return pairs[pairs[:, 0] < pairs[:, 1]]


def false_matches(board: Board, count: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 4 * board.cells, count)
    second = (first + 4 * generator.integers(1, board.cells, count)) % (4 * board.cells)
    return np.stack([first, second], 1)


@pytest.mark.parametrize("shape", [(4, 5), (1, 6), (5, 1)])
def test_true_matches_hold(shape: tuple[int, int]) -> None:
    board = Board(*shape)
    sides = true_matches(board, seed=1)
    assert inconsistency(Forest.of(board.cells), sides, np.ones(len(sides))).max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_false_matches_give_way_to_true_ones(seed: int) -> None:
    board = Board(5, 5)
    right, wrong = true_matches(board, seed), false_matches(board, 8, seed)
    sides = np.concatenate([right, wrong])
    weight = np.repeat([1.0, 0.3], [len(right), len(wrong)])
    missed = inconsistency(Forest.of(board.cells), sides, weight)
    assert missed[: len(right)].max() < 1e-6
    # One turn of the whole can hide one false match (its four copies then stand apart), but not several.
    assert (missed[len(right) :] > 0.1).sum() >= len(wrong) - 1


@pytest.mark.parametrize("seed", range(4))
def test_two_unknowns_a_piece_are_as_good_as_the_four_copies_of_the_paper(seed: int) -> None:
    """The least cost over four copies of every piece, one a turn, is four times that over one place a piece."""
    board = Board(2, 3)
    sides = np.concatenate([true_matches(board, seed), false_matches(board, 5, seed)])
    weight = np.random.default_rng(seed).random(len(sides)) + 0.1
    rows, goal = [], []
    for (a, b), copy in ((match, copy) for match in sides.tolist() for copy in range(4)):
        # The second piece's copy is turned by `copy`, the first's so that their sides face each other.
        first = (copy + b + 2 - a) % 4 + 4 * (a // 4)
        second = copy + 4 * (b // 4)
        look = QUARTERS[(b + copy) % 4][:, 0]
        for axis in range(2):
            row = np.zeros(8 * board.cells)
            row[2 * first + axis] += 1
            row[2 * second + axis] -= 1
            rows.append(row)
            goal.append(look[axis])
    slack = np.eye(len(rows))
    cost = np.repeat(weight, 8)
    full = linprog(
        np.concatenate([np.zeros(8 * board.cells), cost, cost]),
        A_eq=np.concatenate([np.array(rows), -slack, slack], 1),
        b_eq=goal,
        bounds=[(None, None)] * (8 * board.cells) + [(0, None)] * (2 * len(rows)),
    )
    assert full.fun == pytest.approx(4 * reduced_cost(board.cells, sides, weight), rel=1e-6)


def reduced_cost(count: int, sides: np.ndarray, weight: np.ndarray) -> float:
    """The least Σ w (|ex| + |ey|) over places p, by e = R^(b + 2 − a) p_i − p_j − u_b."""
    rows, goal = np.zeros((2 * len(sides), 2 * count)), np.zeros(2 * len(sides))
    for number, (a, b) in enumerate(sides.tolist()):
        place = slice(2 * number, 2 * number + 2)
        rows[place, 2 * (a // 4) : 2 * (a // 4) + 2] += QUARTERS[(b + 2 - a) % 4]
        rows[place, 2 * (b // 4) : 2 * (b // 4) + 2] -= np.eye(2)
        goal[place] = QUARTERS[b % 4][:, 0]
    slack, cost = np.eye(len(rows)), np.repeat(weight, 2)
    solved = linprog(
        np.concatenate([np.zeros(2 * count), cost, cost]),
        A_eq=np.concatenate([rows, -slack, slack], 1),
        b_eq=goal,
        bounds=[(None, None)] * (2 * count) + [(0, None)] * (2 * len(rows)),
    )
    return float(solved.fun)


def test_trees_are_rigid() -> None:
    """A match that would have to tear a tree does not hold, whatever its weight."""
    forest = Forest.of(4)
    forest.grow(np.array([[0, 4 + 2], [4, 8 + 2]]), 0, 2)  # a row of three
    torn, free = [0 + 1, 8 + 3], [8, 12 + 2]
    missed = inconsistency(forest, np.array([torn, free]), np.array([100.0, 1.0]))
    assert missed[0] > 0.5
    assert missed[1] < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_joining_true_matches_first_changes_nothing(seed: int) -> None:
    board = Board(4, 4)
    sides = true_matches(board, seed)
    forest = Forest.of(board.cells)
    forest.grow(sides, 0, 9)
    assert forest.trees < board.cells
    assert inconsistency(forest, sides, np.ones(len(sides))).max() < 1e-6


def test_without_time_nothing_holds() -> None:
    sides = true_matches(Board(6, 6), seed=0)
    assert np.isinf(inconsistency(Forest.of(36), sides, np.ones(len(sides)), budget=0.0)).all()
