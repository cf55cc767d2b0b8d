"""The end of border solvers: sides that touch, how sure pieces are, and the turn of the whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from diffassemble.core import Board, Poses, Puzzle
from diffassemble.core.board import SIDES
from diffassemble.squares.baselines.filling import border_confidence, finish, touching_sides
from diffassemble.squares.edges import Borders, border_scores


def answer(puzzle: Puzzle) -> tuple[torch.Tensor, torch.Tensor]:
    assert puzzle.truth is not None
    return puzzle.board.snap(puzzle.truth)


@pytest.mark.parametrize("shape", [(3, 4), (1, 5), (5, 1), (1, 1)])
def test_sides_touch_as_often_as_cells_do(shape: tuple[int, int]) -> None:
    rows, cols = shape
    count = rows * cols
    first, second = touching_sides(Board(rows, cols), torch.arange(count), torch.arange(count) % 4)
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    assert len(first) == len(pairs) == 2 * (rows * (cols - 1) + (rows - 1) * cols)
    assert {(two, one) for one, two in pairs} == pairs


def test_touching_sides_of_the_truth_fit_and_face_each_other(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 5, missing=0.2)
    first, second = touching_sides(puzzle.board, *answer(puzzle))
    scores = border_scores(puzzle.pieces.pixels)
    assert scores[first, second].median() < 3
    assert (scores[first].argmin(1) == second).float().mean() > 0.9


def test_two_pieces_touch_with_the_sides_that_they_show() -> None:
    # Left piece as it lies shows its right side (0); the other, turned once, shows its bottom (1) to the left.
    first, second = touching_sides(Board(1, 2), torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == [(0, SIDES + 1), (SIDES + 1, 0)]


def test_pieces_in_their_places_are_sure_and_others_are_not(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(5, 5)
    cells, turns = answer(puzzle)
    partners = Borders.of(puzzle.pieces.pixels).best(8)
    sure = border_confidence(puzzle.board, cells, turns, partners)
    assert sure.mean() > 0.8
    assert sure.min() >= 0
    assert sure.max() <= 1
    wrong = border_confidence(puzzle.board, cells.roll(1), turns, partners)
    assert wrong.max() < 0.5
    one = cells.argmax()
    turns[one] += 1
    turned = border_confidence(puzzle.board, cells, turns % 4, partners)
    assert turned[one] < 0.1


@pytest.mark.parametrize("count", [1, 2])
def test_pieces_without_neighbours_are_not_sure(count: int) -> None:
    pixels = torch.rand(count, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    cells = torch.tensor([0, 8])[:count]
    sure = border_confidence(Board(3, 3), cells, torch.zeros_like(cells), Borders.of(pixels).best(8))
    assert sure.tolist() == [0.0] * count


@pytest.mark.parametrize(("shape", "by", "allowed"), [((3, 3), 1, (0, 1, 2, 3)), ((2, 4), 2, (0, 2))])
def test_the_whole_is_turned_as_the_uprighter_says(
    cut: Callable[..., Puzzle], shape: tuple[int, int], by: int, allowed: tuple[int, ...]
) -> None:
    puzzle = cut(*shape)
    cells, turns = answer(puzzle)
    partners = Borders.of(puzzle.pieces.pixels).best(8)

    def upright(given: Puzzle, placed: Poses, wholes: tuple[int, ...]) -> int:
        assert wholes == allowed
        assert given is puzzle
        return by

    (alone,) = finish(puzzle, cells, turns, partners, None)
    before, after = finish(puzzle, cells, turns, partners, upright)
    assert torch.equal(alone.poses.translation, before.poses.translation)
    found = puzzle.board.snap(after.poses)
    _, expected_cells, expected_turns = puzzle.board.turned(cells, turns, by)
    assert torch.equal(found[0], expected_cells)
    assert torch.equal(found[1], expected_turns)
    assert alone.done == before.done == after.done == 1
    assert after.confidence is not None
