"""What border solvers share: candidates, filling, trimming, confidence."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.core.board import SIDES
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.squares.edges import Borders
from diffassemble.squares.forest import Forest, FramedForest
from diffassemble.squares.gallagher import (
    Candidates,
    RatedPlacement,
    fill_board,
    on_cycles,
    place,
    touching_sides,
    trim,
    turn_between,
)


def pixels(count: int) -> torch.Tensor:
    return torch.rand(count, 3, 8, 8, generator=torch.Generator().manual_seed(count))


def candidates(count: int, keep: int = 100) -> Candidates:
    return Candidates.of(Borders.of(pixels(count)).best(keep))


@pytest.mark.parametrize("seed", range(3))
def test_ratios_by_their_definition(border_scores: Callable[[Tensor], Tensor], seed: int) -> None:
    """Score of the pair over the best score that either side has with anybody else, among possible pairs."""
    given, scores = candidates(5), border_scores(pixels(5)).numpy().astype(float)
    forbidden = np.random.default_rng(seed).random(scores.shape) < 0.5
    forbidden |= forbidden.T
    rows = np.arange(20)[:, None]
    found = given.best(~forbidden[rows, given.side])
    listed = np.where(forbidden, np.inf, scores)
    seen = set()
    for (a, b), ratio in zip(found.sides.tolist(), found.ratio, strict=True):
        assert listed[a].min() == pytest.approx(listed[a, b], rel=1e-4)
        others = [np.delete(listed[a], b).min(), np.delete(listed[b], a).min()]
        if np.isfinite(others).all():
            assert ratio == pytest.approx((listed[a, b] + 0.02) / (min(others) + 0.02), rel=1e-3)
        seen |= {(a, b), (b, a)}
    best = {(a, int(listed[a].argmin())) for a in range(20) if np.isfinite(listed[a]).any()}
    assert best <= seen


def test_the_turn_between_two_pieces_makes_their_sides_face_each_other() -> None:
    sides = np.array(list(itertools.product(range(4), repeat=2)))
    # Turned like this, the first side looks the opposite way of the second.
    assert ((sides[:, 0] + turn_between(sides) - sides[:, 1]) % 4 == 2).all()


def test_edges_on_cycles_are_those_without_which_nothing_falls_apart() -> None:
    # A triangle, a tail of it, and two pieces joined twice.
    first, second = np.array([0, 1, 2, 2, 5, 6]), np.array([1, 2, 0, 3, 6, 5])
    assert on_cycles(first, second).tolist() == [True, True, True, False, True, True]
    assert on_cycles(first[:0], second[:0]).shape == (0,)


def cost(borders: Borders, board: Board, cells: Tensor, turns: Tensor, piece: int) -> tuple[int, float]:
    """How many neighbours a piece has, and the sum of its scores with them."""
    first, second = touching_sides(board, cells, turns)
    own = first // SIDES == piece
    return int(own.sum()), float(borders.scores(first[own], second[own]).diagonal().sum())


def test_one_loose_piece_takes_the_best_of_the_best_surrounded_cells() -> None:
    board, generator = Board(3, 4), torch.Generator().manual_seed(0)
    borders = Borders.of(torch.rand(9, 3, 6, 6, generator=generator))
    for _ in range(10):
        cells = torch.randperm(board.cells, generator=generator)[:9]
        turns = torch.randint(0, 4, (9,), generator=generator)
        loose = cells.masked_fill(torch.arange(9) == 4, -1)
        found_cells, found_turns = fill_board(board, loose, turns, borders)
        choices = {}
        for cell in set(range(board.cells)) - set(loose.tolist()):
            for turn in range(4):
                tried_cells, tried_turns = loose.clone(), turns.clone()
                tried_cells[4], tried_turns[4] = cell, turn
                count, total = cost(borders, board, tried_cells, tried_turns, 4)
                choices[cell, turn] = (-count, total)
        assert (int(found_cells[4]), int(found_turns[4])) == min(choices, key=choices.__getitem__)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 4),
    cols=st.integers(1, 4),
    seed=st.integers(0, 999),
    kind=st.sampled_from(["noise", "flat", "twins"]),
)
def test_every_piece_gets_a_cell_and_those_that_had_one_keep_it(rows: int, cols: int, seed: int, kind: str) -> None:
    board, generator = Board(rows, cols), torch.Generator().manual_seed(seed)
    count = int(torch.randint(1, board.cells + 1, (1,), generator=generator))
    pixels = torch.rand(count, 3, 4, 4, generator=generator)
    pixels = {"noise": pixels, "flat": torch.zeros_like(pixels), "twins": pixels[:1].expand_as(pixels)}[kind]
    cells = torch.randperm(board.cells, generator=generator)[:count]
    turns = torch.randint(0, 4, (count,), generator=generator)
    had = torch.rand(count, generator=generator) < 0.5
    given_cells = cells.masked_fill(~had, -1)
    found, found_turns = fill_board(board, given_cells, turns, Borders.of(pixels))
    assert torch.equal(found[had], cells[had])
    assert torch.equal(found_turns[had], turns[had])
    assert len(found.unique()) == count
    assert 0 <= int(found.min()) <= int(found.max()) < board.cells
    assert 0 <= int(found_turns.min()) <= int(found_turns.max()) < 4
    assert torch.equal(given_cells, cells.masked_fill(~had, -1))


def grown(puzzle: Puzzle) -> tuple[Forest, Candidates, Borders]:
    borders = Borders.of(puzzle.pieces.pixels)
    candidates = Candidates.of(borders.best(8))
    framed = FramedForest.of(puzzle.board, np.zeros(len(puzzle), np.int64))
    framed.join(candidates.probable(0.5))
    return framed.forest, candidates, borders


def right(puzzle: Puzzle, cells: torch.Tensor, turns: torch.Tensor) -> float:
    return direct_comparison_free(puzzle.board, cells, turns, *puzzle.board.snap(puzzle.truth))


def test_the_fit_is_highest_for_the_truth(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(5, 5)
    _, candidates, _ = grown(puzzle)
    cells, turns = puzzle.board.snap(puzzle.truth)
    best = RatedPlacement.of(puzzle.board, cells, turns, candidates).fit
    assert 0.5 * 80 < best <= 80  # forty pairs, each seen from both sides
    for seed in range(5):
        other = cells[torch.randperm(25, generator=torch.Generator().manual_seed(seed))]
        assert RatedPlacement.of(puzzle.board, other, turns, candidates).fit < 0.2 * best
    fewer = cells.masked_fill(torch.arange(25) < 5, -1)
    assert 0 < RatedPlacement.of(puzzle.board, fewer, turns, candidates).fit < best


def test_of_several_frames_the_one_is_found_that_can_be_filled(cut: Callable[..., Puzzle]) -> None:
    """The outer pieces on one side are torn off the tree: the frame could lie in two ways."""
    puzzle = cut(6, 6, name="astronaut")
    borders = Borders.of(puzzle.pieces.pixels)
    candidates = Candidates.of(borders.best(8))
    cells, turns = (value.numpy() for value in puzzle.board.snap(puzzle.truth))
    inner = np.flatnonzero(cells % 6 > 0)
    forest = Forest.of(36, turns)
    forest.label[inner], forest.size[inner[0]] = inner[0], len(inner)
    forest.frame[inner, :2, 3] = np.stack([cells[inner] % 6, cells[inner] // 6], 1)
    trimmed = trim(forest, puzzle.board, candidates, borders)
    assert len(trimmed) > 1
    found = place(trimmed, puzzle.board, candidates, borders, math.inf)
    assert right(puzzle, found.cells, found.turns) > 95
    # Without time, the first frame must do.
    hasty = place(trimmed, puzzle.board, candidates, borders, time.monotonic() - 1)
    assert sorted(hasty.cells.tolist()) == list(range(36))


def test_only_one_frame_is_tried_if_pieces_are_missing(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(6, 6, missing=0.2)
    forest, candidates, borders = grown(puzzle)
    trimmed = trim(forest, puzzle.board, candidates, borders)
    assert len(trimmed) == 1
    found = place(trimmed, puzzle.board, candidates, borders, math.inf)
    assert len(found.cells.unique()) == len(puzzle)
    assert found.cells.min() >= 0


@pytest.mark.parametrize("shape", [(3, 4), (1, 5), (5, 1), (1, 1)])
def test_sides_touch_as_often_as_cells_do(shape: tuple[int, int]) -> None:
    rows, cols = shape
    count = rows * cols
    first, second = touching_sides(Board(rows, cols), torch.arange(count), torch.arange(count) % 4)
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    assert len(first) == len(pairs) == 2 * (rows * (cols - 1) + (rows - 1) * cols)
    assert {(two, one) for one, two in pairs} == pairs


def test_two_pieces_touch_with_the_sides_that_they_show() -> None:
    # Left piece as it lies shows its right side (0); the other, turned once, shows its bottom (1) to the left.
    first, second = touching_sides(Board(1, 2), torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == [(0, SIDES + 1), (SIDES + 1, 0)]
