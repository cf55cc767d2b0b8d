"""Unlikeness of sides against plain double loops, and against the truth of photos."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.core.board import SIDES
from diffassemble.squares.edges import prediction_errors, side_lines, squared_differences

TrueSides = Callable[[Board, Tensor, Tensor], tuple[Tensor, Tensor]]


def noise(count: int, size: int) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def plain(pieces: Tensor, measure: Callable[[np.ndarray, np.ndarray], float]) -> np.ndarray:
    """The measure of all pairs of sides, one by one; it sees both lines of both sides, read along one way."""
    lines = side_lines(pieces).double().numpy()
    unlike = np.full((len(lines), len(lines)), np.inf)
    for first in range(len(lines)):
        for second in range(len(lines)):
            if first // SIDES != second // SIDES:
                unlike[first, second] = measure(lines[first], lines[second][:, ::-1])
    return unlike


def assert_close(found: Tensor, expected: np.ndarray) -> None:
    torch.testing.assert_close(found.double(), torch.from_numpy(expected), rtol=1e-4, atol=1e-4)


def test_squared_differences_are_a_plain_double_loop() -> None:
    pieces = noise(3, 6)
    assert_close(squared_differences(pieces), plain(pieces, lambda one, two: float(((one[0] - two[0]) ** 2).sum())))


@pytest.mark.parametrize(("p", "q"), [(0.3, 1 / 16), (1, 1), (2, 1)])
def test_prediction_errors_are_a_plain_double_loop(p: float, q: float) -> None:
    def measure(one: np.ndarray, two: np.ndarray) -> float:
        errors = [2 * one[0] - one[1] - two[0], 2 * two[0] - two[1] - one[0]]
        return float(sum((np.abs(error) ** p).sum() for error in errors) ** (q / p))

    pieces = noise(3, 6)
    assert_close(prediction_errors(pieces, float(p), float(q)), plain(pieces, measure))


@pytest.mark.parametrize("measure", [squared_differences, prediction_errors])
def test_most_true_neighbours_are_the_likest(
    measure: Callable[[Tensor], Tensor], photo_puzzle: Puzzle, true_sides: TrueSides
) -> None:
    assert photo_puzzle.truth is not None
    unlike = measure(photo_puzzle.pieces.pixels)
    first, second = true_sides(photo_puzzle.board, *photo_puzzle.board.snap(photo_puzzle.truth))
    assert (unlike[first].argmin(1) == second).float().mean() > 0.75
    torch.testing.assert_close(unlike, unlike.T)


@pytest.mark.parametrize("measure", [squared_differences, prediction_errors])
def test_flat_pieces_of_one_colour_are_alike(measure: Callable[[Tensor], Tensor]) -> None:
    unlike = measure(torch.full((3, 3, 5, 5), 0.3))
    assert unlike[unlike.isfinite()].max() < 1e-6
    assert int(unlike.isinf().sum()) == 3 * SIDES * SIDES
