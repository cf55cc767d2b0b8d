"""The search never makes a placement worse, keeps one piece a cell, and finds what growing alone does not."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.squares.search import NOWHERE, search, worth


def line_up(rows: int, cols: int, count: int, strength: float = 3.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gains of pieces 0, 1, … that belong row by row, unturned, and the matings worth trying."""
    gains = np.full((4 * count, 4 * count), -strength, np.float32)
    pairs = []
    for piece in range(count):
        for side, other, inside in ((0, piece + 1, (piece + 1) % cols != 0), (1, piece + cols, piece + cols < count)):
            if inside and other < count:
                own, mate = 4 * piece + side, 4 * other + side + 2
                gains[own, mate] = gains[mate, own] = strength
                pairs += [(own, mate), (mate, own)]
    return gains, np.array(pairs).reshape(-1, 2), np.zeros((rows * cols, count, 4), np.float32)


def shuffled(count: int, cells: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    where = random.permutation(cells)[:count]
    at = np.full(cells, NOWHERE)
    at[where] = np.arange(count)
    return at, random.integers(0, 4, count), where


@pytest.mark.parametrize(
    ("rows", "cols", "count"), [(4, 4, 16), (3, 5, 15), (5, 5, 18), (1, 6, 6), (2, 1, 2), (1, 1, 1)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_placements_stay_whole_and_never_lose_worth(rows: int, cols: int, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    gains = random.normal(size=(4 * count, 4 * count)).astype(np.float32)
    gains += gains.T
    unary = random.normal(size=(rows * cols, count, 4)).astype(np.float32)
    likely = random.integers(0, 4 * count, (5, 2))
    at, turn, where = shuffled(count, rows * cols, seed)
    before = worth(at, turn, gains, unary, cols)
    found = search(at, turn, where, gains, unary, likely, cols, 200, 2.0, 0.0, random)
    assert np.array_equal(at[where], np.arange(count))
    assert (at != NOWHERE).sum() == count
    assert ((turn >= 0) & (turn < 4)).all()
    assert found == pytest.approx(worth(at, turn, gains, unary, cols), abs=1e-3)
    assert found >= before - 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_what_fits_together_is_found_from_any_start(seed: int) -> None:
    gains, likely, unary = line_up(5, 5, 25)
    at, turn, where = shuffled(25, 25, seed)
    found = search(at, turn, where, gains, unary, likely, 5, 1500, 3.0, 0.0, np.random.default_rng(seed))
    assert found == pytest.approx(3.0 * 40)  # 40 borders within a 5×5 board, all of them true


def test_without_likely_matings_it_still_searches() -> None:
    gains, _, unary = line_up(3, 3, 9)
    at, turn, where = shuffled(9, 9, 0)
    search(at, turn, where, gains, unary, np.zeros((0, 2), np.int64), 3, 500, 3.0, 0.0, np.random.default_rng(0))
    assert worth(at, turn, gains, unary, 3) == pytest.approx(3.0 * 12)


def test_the_same_generator_gives_the_same_answer() -> None:
    gains, likely, unary = line_up(4, 4, 13)
    answers = []
    for _ in range(2):
        at, turn, where = shuffled(13, 16, 3)
        search(at, turn, where, gains, unary, likely, 4, 50, 3.0, 0.0, np.random.default_rng(5))
        answers.append((at, turn, where))
    for one, two in zip(*answers, strict=True):
        assert np.array_equal(one, two)
