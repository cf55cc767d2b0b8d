"""Metrics against hand-made cases, closed forms, chance and invariances."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diffassemble.core import Board
from diffassemble.evaluation.metrics import direct_comparison, direct_comparison_free, neighbour_accuracy, perfect

METRICS = (direct_comparison, direct_comparison_free, neighbour_accuracy)


def random_placement(board: Board, seed: int, pieces: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    cells = torch.randperm(board.cells, generator=generator)[: pieces or board.cells]
    return cells, torch.randint(0, 4, (len(cells),), generator=generator)


boards = st.builds(Board, st.integers(1, 5), st.integers(1, 5))
seeds = st.integers(0, 2**31)


@given(boards, seeds, st.integers(1, 25))
def test_the_truth_scores_a_hundred(board: Board, seed: int, pieces: int) -> None:
    truth = random_placement(board, seed, min(pieces, board.cells))
    assert [metric(board, *truth, *truth) for metric in METRICS] == [100.0, 100.0, 100.0]
    assert perfect(board, *truth, *truth)


def test_a_piece_needs_both_its_place_and_its_turn() -> None:
    board, cells, zeros = Board(2, 2), torch.arange(4), torch.zeros(4, dtype=torch.long)
    swapped = torch.tensor([1, 0, 2, 3])
    assert direct_comparison(board, cells, torch.tensor([0, 1, 0, 0]), cells, zeros) == 75.0
    assert direct_comparison(board, swapped, zeros, cells, zeros) == 50.0
    assert direct_comparison(board, swapped, torch.tensor([0, 0, 3, 0]), cells, zeros) == 25.0


def test_two_swapped_pieces_break_all_neighbours_of_a_two_by_two_but_one() -> None:
    # 0 1      1 0
    # 2 3  →   2 3: of the pairs 01, 23, 02, 13 only 23 still lies as it should.
    board, cells, zeros = Board(2, 2), torch.arange(4), torch.zeros(4, dtype=torch.long)
    swapped = torch.tensor([1, 0, 2, 3])
    assert neighbour_accuracy(board, swapped, zeros, cells, zeros) == 25.0


def test_a_turned_piece_loses_all_its_neighbours() -> None:
    # The middle of a 3×3 has 4 of the 12 pairs.
    board, cells, zeros = Board(3, 3), torch.arange(9), torch.zeros(9, dtype=torch.long)
    turned = zeros.clone()
    turned[4] = 2
    assert neighbour_accuracy(board, cells, turned, cells, zeros) == pytest.approx(100 * 8 / 12)


def test_a_shifted_assembly_keeps_its_neighbours() -> None:
    # Two columns of three are given; the answer has them one column too far right.
    board, zeros = Board(3, 3), torch.zeros(6, dtype=torch.long)
    true_cells = torch.tensor([0, 1, 3, 4, 6, 7])
    answer = (board, true_cells + 1, zeros, true_cells, zeros)
    assert direct_comparison(*answer) == 0.0
    assert direct_comparison_free(*answer) == 0.0
    assert neighbour_accuracy(*answer) == 100.0
    assert not perfect(*answer)


def test_a_row_cut_in_two_halves_keeps_the_pairs_within_them() -> None:
    # 0 1 2 3 → 2 3 0 1: the pairs 01 and 23 live on, 12 does not.
    board, zeros = Board(1, 4), torch.zeros(4, dtype=torch.long)
    cut = torch.tensor([2, 3, 0, 1])
    assert neighbour_accuracy(board, cut, zeros, torch.arange(4), zeros) == pytest.approx(200 / 3)


def test_only_pairs_of_given_pieces_count() -> None:
    # Given are cells 0, 1 and 8 of a 3×3: one pair. Piece 8 is wrong, the pair is right.
    board, zeros = Board(3, 3), torch.zeros(3, dtype=torch.long)
    answer = (board, torch.tensor([0, 1, 5]), zeros, torch.tensor([0, 1, 8]), zeros)
    assert neighbour_accuracy(*answer) == 100.0
    assert direct_comparison(*answer) == pytest.approx(200 / 3)


def test_pieces_on_one_cell_are_no_neighbours() -> None:
    board, zeros = Board(2, 2), torch.zeros(4, dtype=torch.long)
    heap = torch.zeros(4, dtype=torch.long)
    assert neighbour_accuracy(board, heap, zeros, torch.arange(4), zeros) == 0.0
    assert direct_comparison(board, heap, zeros, torch.arange(4), zeros) == 25.0


def test_a_lone_piece_has_no_neighbours_to_miss() -> None:
    board, cell, turn = Board(2, 2), torch.tensor([0]), torch.tensor([0])
    assert neighbour_accuracy(board, torch.tensor([3]), turn, cell, turn) == 100.0


@given(st.integers(2, 5), seeds, st.integers(1, 3))
def test_turning_a_square_whole_costs_absolute_accuracy_only(side: int, seed: int, by: int) -> None:
    board = Board(side, side)
    truth = random_placement(board, seed)
    _, *turned = board.turned(*truth, by)
    assert direct_comparison(board, *turned, *truth) == 0.0
    assert direct_comparison_free(board, *turned, *truth) == 100.0
    assert neighbour_accuracy(board, *turned, *truth) == 100.0
    assert perfect(board, *turned, *truth)


@given(seeds)
def test_free_scores_do_not_see_half_turns_of_any_board(seed: int) -> None:
    board = Board(2, 5)
    truth, answer = random_placement(board, seed), random_placement(board, seed + 1)
    _, *turned = board.turned(*answer, 2)
    for metric in (direct_comparison_free, neighbour_accuracy):
        assert metric(board, *turned, *truth) == metric(board, *answer, *truth)


def test_a_long_board_cannot_stand_on_its_short_side() -> None:
    # Every piece in its place, but turned: turning a square whole back would set the middle one right.
    board, cells, zeros = Board(1, 3), torch.arange(3), torch.zeros(3, dtype=torch.long)
    assert direct_comparison_free(board, cells, zeros + 1, cells, zeros) == 0.0


@given(boards, seeds, st.integers(1, 25))
def test_the_order_of_pieces_changes_nothing(board: Board, seed: int, pieces: int) -> None:
    count = min(pieces, board.cells)
    truth, answer = random_placement(board, seed, count), random_placement(board, seed + 1, count)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    for metric in METRICS:
        plain = metric(board, *answer, *truth)
        assert metric(board, *(part[order] for part in (*answer, *truth))) == plain


@given(boards, seeds)
def test_free_is_never_below_absolute(board: Board, seed: int) -> None:
    truth, answer = random_placement(board, seed), random_placement(board, seed + 1)
    placement = (board, *answer, *truth)
    assert 0 <= direct_comparison(*placement) <= direct_comparison_free(*placement) <= 100


def test_random_answers_score_one_in_four_n() -> None:
    board, rounds = Board(3, 3), 2000
    truth = random_placement(board, 0)
    scores = [direct_comparison(board, *random_placement(board, seed), *truth) for seed in range(1, rounds + 1)]
    # Right pieces per answer have mean and variance near 1/4: five standard errors of the mean share.
    allowed = 5 * (0.25 / rounds) ** 0.5 / 9 * 100
    assert sum(scores) / rounds == pytest.approx(100 / (4 * 9), abs=allowed)


def test_random_neighbours_score_at_chance() -> None:
    # Two given pieces are adjacent in 24 of the 72 ways to lay them on a 3×3; the second is then on the right
    # side of the first, and turned rightly, with chance 1/4 each.
    board, rounds = Board(3, 3), 1500
    truth = random_placement(board, 0)
    scores = [neighbour_accuracy(board, *random_placement(board, seed), *truth) for seed in range(1, rounds + 1)]
    assert sum(scores) / rounds == pytest.approx(100 * (24 / 72) / 16, abs=0.6)
