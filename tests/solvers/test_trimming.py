"""The frame holds what belongs together, and the rest is filled in."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch

from diffassemble.core import Board, Puzzle
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.squares.baselines.candidates import Candidates
from diffassemble.squares.baselines.filling import Placement, place, trim
from diffassemble.squares.edges import Borders
from diffassemble.squares.forest import Forest, FramedForest


def grown(puzzle: Puzzle) -> tuple[Forest, Candidates, Borders]:
    borders = Borders.of(puzzle.pieces.pixels)
    candidates = Candidates.of(borders.best(8))
    framed = FramedForest.of(puzzle.board, np.zeros(len(puzzle), np.int64))
    framed.join(candidates.probable(0.5))
    return framed.forest, candidates, borders


def right(puzzle: Puzzle, cells: torch.Tensor, turns: torch.Tensor) -> float:
    assert puzzle.truth is not None
    return direct_comparison_free(puzzle.board, cells, turns, *puzzle.board.snap(puzzle.truth))


@pytest.mark.parametrize("shape", [(5, 5), (4, 7), (7, 4)])
def test_a_whole_tree_is_the_answer(cut: Callable[..., Puzzle], shape: tuple[int, int]) -> None:
    puzzle = cut(*shape)
    forest, candidates, borders = grown(puzzle)
    assert forest.trees == 1
    trimmed = trim(forest, puzzle.board, candidates, borders)
    assert right(puzzle, trimmed[0].cells, trimmed[0].turns) == 100
    found = place(trimmed, puzzle.board, candidates, borders, math.inf)
    assert torch.equal(found.cells, trimmed[0].cells)


def test_worth_is_highest_for_the_truth(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(5, 5)
    assert puzzle.truth is not None
    _, candidates, _ = grown(puzzle)
    cells, turns = puzzle.board.snap(puzzle.truth)
    best = Placement.of(puzzle.board, cells, turns, candidates).worth
    assert 0.5 * 80 < best <= 80  # forty pairs, each seen from both sides
    for seed in range(5):
        other = cells[torch.randperm(25, generator=torch.Generator().manual_seed(seed))]
        assert Placement.of(puzzle.board, other, turns, candidates).worth < 0.2 * best
    without = cells.clone()
    without[:5] = -1
    assert 0 < Placement.of(puzzle.board, without, turns, candidates).worth < best


def test_of_several_frames_the_one_is_found_that_can_be_filled(cut: Callable[..., Puzzle]) -> None:
    """The outer pieces on one side are torn off the tree: the frame could lie in two ways."""
    puzzle = cut(6, 6, name="astronaut")
    assert puzzle.truth is not None
    borders = Borders.of(puzzle.pieces.pixels)
    candidates = Candidates.of(borders.best(8))
    cells, turns = (value.numpy() for value in puzzle.board.snap(puzzle.truth))
    inner = np.flatnonzero(cells % 6 > 0)
    forest = Forest.of(36)
    forest.label[inner], forest.turn[:] = inner[0], turns
    forest.size[inner[0]] = len(inner)
    forest.place[inner] = np.stack([cells[inner] % 6, cells[inner] // 6], 1)
    trimmed = trim(forest, puzzle.board, candidates, borders)
    assert len(trimmed) > 1
    found = place(trimmed, puzzle.board, candidates, borders, math.inf)
    assert right(puzzle, found.cells, found.turns) > 95
    # Without time, the first frame must do.
    hasty = place(trimmed, puzzle.board, candidates, borders, time.monotonic() - 1)
    assert sorted(hasty.cells.tolist()) == list(range(36))


def test_pieces_that_hang_on_by_chance_have_little_say(cut: Callable[..., Puzzle]) -> None:
    """A true tree of 5 × 5 with three false pieces beside it, on a board of 5 × 5."""
    puzzle = cut(5, 5, name="astronaut")
    forest, _, borders = grown(puzzle)
    assert forest.trees == 1
    more = Forest.of(28)
    more.label[:25], more.turn[:25], more.place[:25] = forest.label, forest.turn, forest.place
    more.label[25:] = forest.label[0]
    more.size[forest.label[0]] = 28
    more.place[25:] = forest.place.max(0) + np.array([[1, 0], [2, 0], [3, 0]])
    extra = Puzzle(
        type(puzzle.pieces)(
            torch.cat([puzzle.pieces.pixels, torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))])
        ),
        Board(6, 5),
        ("",) * 28,
    )
    lists = Candidates.of(Borders.of(extra.pieces.pixels).best(8))
    cells = trim(more, Board(5, 5), lists, borders)[0].cells
    assert (cells[:25] >= 0).all()
    assert (cells[25:] == -1).all()


def test_only_one_frame_is_tried_if_pieces_are_missing(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(6, 6, missing=0.2)
    forest, candidates, borders = grown(puzzle)
    trimmed = trim(forest, puzzle.board, candidates, borders)
    assert len(trimmed) == 1
    found = place(trimmed, puzzle.board, candidates, borders, math.inf)
    assert len(found.cells.unique()) == len(puzzle)
    assert found.cells.min() >= 0
