"""Gains are log odds: symmetric, bounded, and highest at the truth; the network's do not mind turned wholes."""

from __future__ import annotations

from collections.abc import Callable

import torch

from diffassemble.core import Board, Puzzle
from diffassemble.squares.baselines.filling import touching_sides
from diffassemble.squares.edges import image_matches
from diffassemble.squares.energy import STRONGEST, border_gains, network_gains


def test_border_gains_are_the_log_odds_of_the_listed_pairs_and_lowest_for_others(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 5)
    matches = image_matches(puzzle.pieces.pixels, puzzle.board.pitch, keep=6)
    gains = border_gains(matches, len(puzzle))
    assert torch.equal(gains, gains.T)
    assert gains.abs().max() <= STRONGEST
    own, other = 4 * matches.first + matches.slot // 4, 4 * matches.second + matches.slot % 4
    torch.testing.assert_close(gains[own, other].sigmoid(), matches.weight.clamp(0.00248, 0.99752), rtol=0, atol=1e-4)
    listed = torch.zeros_like(gains, dtype=torch.bool)
    listed[own, other] = listed[other, own] = True
    assert (gains[~listed] == -STRONGEST).all()


def test_true_neighbours_gain_and_others_lose(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 5)
    assert puzzle.truth is not None
    gains = border_gains(image_matches(puzzle.pieces.pixels, puzzle.board.pitch, keep=6), len(puzzle))
    first, second = touching_sides(puzzle.board, *puzzle.board.snap(puzzle.truth))
    assert (gains[first, second] > 0).float().mean() > 0.9
    assert gains.mean() < -4


def test_the_network_gains_most_where_its_samples_stand_whichever_way_up() -> None:
    board = Board(3, 3)
    cells, turns = torch.randperm(9, generator=torch.Generator().manual_seed(0)), torch.arange(9) % 4
    wholes = [board.poses(*board.turned(cells, turns, by)[1:]) for by in range(4)]
    gains = network_gains(wholes, board)
    assert torch.equal(gains.flatten(1).argmax(1), turns * 9 + cells)
    torch.testing.assert_close(gains, network_gains(wholes[:1], board))
    assert gains.min() >= 0


def test_samples_that_disagree_share_the_belief() -> None:
    board = Board(2, 2)
    one, two = (
        board.poses(torch.tensor(cells), torch.zeros(4, dtype=torch.long)) for cells in ([0, 1, 2, 3], [0, 1, 3, 2])
    )
    alone, both = network_gains([one], board), network_gains([one, two], board)
    torch.testing.assert_close(both[0], alone[0])
    assert both[2, 0, 2] < alone[2, 0, 2]
    torch.testing.assert_close(both[2, 0, 2], both[2, 0, 3])
