"""The search on lists never makes a placement worse, keeps one piece a cell, and finds what belongs together."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.squares.search import NOWHERE
from diffassemble.squares.sparse_search import sparse_search, worth

Table = tuple[np.ndarray, np.ndarray, np.ndarray]


def line_up(rows: int, cols: int, strength: float = 3.0) -> tuple[Table, np.ndarray]:
    """The table of pieces 0, 1, … that belong row by row, unturned, and the matings worth trying."""
    pairs, count = [], rows * cols
    for piece in range(count):
        for side, other, inside in ((0, piece + 1, (piece + 1) % cols != 0), (1, piece + cols, piece + cols < count)):
            if inside:
                own, mate = 4 * piece + side, 4 * other + side + 2
                pairs += [(own, mate), (mate, own)]
    sides = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    starts = np.searchsorted(sides[:, 0], np.arange(4 * count + 1))
    return (starts, sides[:, 1].copy(), np.full(len(sides), strength, np.float32)), sides


def nowhere(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.full(count, -1), np.zeros(count, np.int64), np.zeros(count, np.float32)


def shuffled(count: int, cells: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    where = random.permutation(cells)[:count]
    at = np.full(cells, NOWHERE)
    at[where] = np.arange(count)
    return at, random.integers(0, 4, count), where


@pytest.mark.parametrize(("rows", "cols", "lost"), [(4, 4, 0), (5, 5, 7), (1, 6, 0), (2, 1, 0), (1, 1, 0)])
def test_placements_stay_whole_and_never_lose_worth(rows: int, cols: int, lost: int) -> None:
    table, likely = line_up(rows, cols)
    count = rows * cols - lost
    kept = (table[1] < 4 * count) & (np.repeat(np.arange(4 * rows * cols), np.diff(table[0])) < 4 * count)
    owner = np.repeat(np.arange(4 * rows * cols), np.diff(table[0]))[kept]
    table = np.searchsorted(owner, np.arange(4 * count + 1)), table[1][kept], table[2][kept]
    likely = likely[(likely < 4 * count).all(1)]
    random = np.random.default_rng(0)
    at, turn, where = shuffled(count, rows * cols, 0)
    before = worth(at, turn, table, nowhere(count), cols)
    found = sparse_search(at, turn, where, table, nowhere(count), likely, cols, 100, 2.0, 0.0, random)
    assert np.array_equal(at[where], np.arange(count))
    assert (at != NOWHERE).sum() == count
    assert ((turn >= 0) & (turn < 4)).all()
    assert found == pytest.approx(worth(at, turn, table, nowhere(count), cols), abs=1e-3)
    assert found >= before - 1e-4


def test_what_fits_together_is_found_from_any_start() -> None:
    table, likely = line_up(6, 7)
    at, turn, where = shuffled(42, 42, 1)
    found = sparse_search(at, turn, where, table, nowhere(42), likely, 7, 600, 3.0, 0.0, np.random.default_rng(0))
    assert found == pytest.approx(3.0 * (6 * 6 + 5 * 7))


def test_the_same_generator_gives_the_same_answer() -> None:
    table, likely = line_up(4, 4)
    answers = []
    for _ in range(2):
        at, turn, where = shuffled(16, 16, 3)
        sparse_search(at, turn, where, table, nowhere(16), likely, 4, 30, 3.0, 0.0, np.random.default_rng(5))
        answers.append((at, turn, where))
    for one, two in zip(*answers, strict=True):
        assert np.array_equal(one, two)
