"""Large boards: the same puzzles solved, with arrays that grow with the pieces and not with their pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from diffassemble.core import Board, Locks, Puzzle
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.squares.edges import image_matches
from diffassemble.squares.energy import border_gains
from diffassemble.squares.hybrid import HybridSolver
from diffassemble.squares.large import _table, large_answers


def accuracy(puzzle: Puzzle, cells: torch.Tensor, turns: torch.Tensor) -> float:
    assert puzzle.truth is not None
    return direct_comparison_free(puzzle.board, cells, turns, *puzzle.board.snap(puzzle.truth))


def test_the_table_holds_the_likely_pairs_of_the_whole_matrix(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 4)
    matches = image_matches(puzzle.pixels, puzzle.board.pitch, 24)
    (starts, partner, gain), whole = _table(matches, len(puzzle)), border_gains(matches, len(puzzle))
    assert starts[-1] == len(partner) == len(gain)
    found = torch.full_like(whole, -math.inf)
    for side in range(64):
        row = slice(starts[side], starts[side + 1])
        assert (partner[row][1:] > partner[row][:-1]).all()
        found[side, partner[row]] = torch.from_numpy(gain[row])
    likely = found > -math.inf
    assert torch.equal(found[likely], whole[likely])
    assert (whole[~likely] < math.log(0.01 / 0.99) + 1e-4).all()


def test_borders_alone_solve_what_the_network_has_no_idea_of(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(6, 7, name="astronaut")
    matches = image_matches(puzzle.pixels, puzzle.board.pitch, 24)
    order = torch.randperm(42, generator=torch.Generator().manual_seed(0))
    nonsense = puzzle.board.poses(order, torch.zeros(42, dtype=torch.long))
    *_, (placement, sure) = large_answers(puzzle, matches, [nonsense, nonsense], 0.1, 6.0, math.inf)
    assert len(placement[0].unique()) == 42
    assert accuracy(puzzle, *placement) > 80
    assert ((sure >= 0) & (sure <= 1)).all()


def test_locks_hold_and_time_is_up_at_once(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 5)
    board, held = puzzle.board, torch.arange(20) < 3
    locks = Locks(held, board.poses(torch.arange(19, -1, -1), torch.full((20,), 2)))
    locked = replace(puzzle, locks=locks)
    matches = image_matches(puzzle.pixels, board.pitch, 24)
    start = board.poses(torch.arange(20), torch.zeros(20, dtype=torch.long))
    for until in (-math.inf, math.inf):
        *_, (placement, _) = large_answers(locked, matches, [start], 0.1, 6.0, until)
        assert placement[0][:3].tolist() == [19, 18, 17]
        assert placement[1][:3].tolist() == [2, 2, 2]


def test_hybrid_goes_this_way_above_its_limit(cut: Callable[..., Puzzle], oracle: Callable[..., object]) -> None:
    puzzle = cut(5, 5)
    solver = HybridSolver(oracle(puzzle, (0, 2)), 2, 2, listed_above=24)
    *_, last = solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(0))
    assert accuracy(puzzle, *Board(5, 5).snap(last.poses)) == 100
    assert last.confidence is not None
