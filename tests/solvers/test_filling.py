"""Filling gives every piece a cell of its own, the best-surrounded cells first, and the right ones on photos."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.core.board import SIDES
from diffassemble.squares.baselines.filling import fill_board
from diffassemble.squares.edges import Borders


def truth_of(puzzle: Puzzle) -> tuple[Tensor, Tensor]:
    assert puzzle.truth is not None
    return puzzle.board.snap(puzzle.truth)


def without(cells: Tensor, pieces: list[int]) -> Tensor:
    kept = cells.clone()
    kept[pieces] = -1
    return kept


@pytest.mark.parametrize("name", ["astronaut", "coffee", "cat"])
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_loose_pieces_of_a_photo_find_their_places(cut: Callable[..., Puzzle], name: str, share: float) -> None:
    puzzle = cut(6, 8, name=name)
    cells, turns = truth_of(puzzle)
    loose = torch.rand(48, generator=torch.Generator().manual_seed(1)) < share
    found = fill_board(puzzle.board, cells.masked_fill(loose, -1), turns, Borders.of(puzzle.pieces.pixels))
    right = (found[0] == cells) & (found[1] == turns)
    assert right[~loose].all()
    assert right[loose].float().mean() > 0.8  # a greedy choice errs where borders mislead


def test_the_turns_of_loose_pieces_are_not_looked_at(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 4)
    cells, turns = truth_of(puzzle)
    borders, kept = Borders.of(puzzle.pieces.pixels), without(cells, [2, 7, 9])
    other = turns.clone()
    other[[2, 7, 9]] += 1
    one, two = fill_board(puzzle.board, kept, turns, borders), fill_board(puzzle.board, kept, other, borders)
    assert torch.equal(one[0], two[0])
    assert torch.equal(one[1], two[1])


def cost(borders: Borders, board: Board, cells: Tensor, turns: Tensor, piece: int) -> tuple[int, float]:
    """How many neighbours a piece has, and the sum of its scores with them."""
    at = {int(cell): index for index, cell in enumerate(cells) if cell >= 0}
    row, col = divmod(int(cells[piece]), board.cols)
    count, total = 0, 0.0
    for way, (down, right) in enumerate([(0, 1), (1, 0), (0, -1), (-1, 0)]):
        inside = 0 <= row + down < board.rows and 0 <= col + right < board.cols
        other = at.get((row + down) * board.cols + col + right) if inside else None
        if other is not None:
            mine, theirs = (way - int(turns[piece])) % SIDES, (way + 2 - int(turns[other])) % SIDES
            pair = torch.tensor([SIDES * piece + mine]), torch.tensor([SIDES * other + theirs])
            count, total = count + 1, total + float(borders.scores(*pair))
    return count, total


def test_one_loose_piece_takes_the_best_of_the_best_surrounded_cells() -> None:
    board, generator = Board(3, 4), torch.Generator().manual_seed(0)
    borders = Borders.of(torch.rand(9, 3, 6, 6, generator=generator))
    for _ in range(10):
        cells = torch.randperm(board.cells, generator=generator)[:9]
        turns = torch.randint(0, 4, (9,), generator=generator)
        loose = without(cells, [4])
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


def test_without_time_the_rest_is_put_down_as_it_comes(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(12, 12)
    cells, turns = truth_of(puzzle)
    borders, loose = Borders.of(puzzle.pieces.pixels), torch.full_like(cells, -1)
    began = time.monotonic()
    found, _ = fill_board(puzzle.board, loose, turns, borders, budget=0.0)
    assert time.monotonic() - began < 1
    assert sorted(found.tolist()) == list(range(144))
