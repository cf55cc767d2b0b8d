"""Energy are log odds, highest at the truth; both of their forms say the same."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from diffassemble.core import Board, Puzzle
from diffassemble.squares.baselines.filling import touching_sides
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edge_model import find_matches
from diffassemble.squares.energy import STRONGEST, Energy, pair_lists, pair_terms, place_terms


def test_pair_terms_are_the_log_odds_of_the_listed_pairs_and_lowest_for_others(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 5)
    matches = find_matches(puzzle, keep=6)
    gains = pair_terms(matches, len(puzzle))
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
    gains = pair_terms(find_matches(puzzle, keep=6), len(puzzle))
    first, second = touching_sides(puzzle.board, *puzzle.board.snap(puzzle.truth))
    assert (gains[first, second] > 0).float().mean() > 0.9
    assert gains.mean() < -4


def test_the_network_gains_most_where_its_samples_stand_whichever_way_up() -> None:
    board = Board(3, 3)
    cells, turns = torch.randperm(9, generator=torch.Generator().manual_seed(0)), torch.arange(9) % 4
    wholes = [board.poses(*board.turned(cells, turns, by)[1:]) for by in range(4)]
    gains = place_terms(wholes, board, 1.0)
    assert torch.equal(gains.flatten(1).argmax(1), turns * 9 + cells)
    torch.testing.assert_close(gains, place_terms(wholes[:1], board, 1.0))
    assert gains.min() >= 0


def test_samples_that_disagree_share_the_belief() -> None:
    board = Board(2, 2)
    one, two = (
        board.poses(torch.tensor(cells), torch.zeros(4, dtype=torch.long)) for cells in ([0, 1, 2, 3], [0, 1, 3, 2])
    )
    alone, both = place_terms([one], board, 1.0), place_terms([one, two], board, 1.0)
    torch.testing.assert_close(both[0], alone[0])
    assert both[2, 0, 2] < alone[2, 0, 2]
    torch.testing.assert_close(both[2, 0, 2], both[2, 0, 3])


def test_the_worth_of_a_placement_is_the_sum_over_touching_sides_and_places() -> None:
    generator, board = torch.Generator().manual_seed(0), Board(3, 4)
    puzzle = cut_picture(torch.rand(3, 48, 64, generator=generator), board, generator, size=16)
    matches = find_matches(puzzle, keep=6)
    unary = torch.rand(12, 4, 12, generator=generator)
    terms = Energy.dense(matches, unary, board)
    cells, turns = torch.randperm(12, generator=generator), torch.randint(0, 4, (12,), generator=generator)
    state = terms.state(cells, turns)
    first, second = touching_sides(board, cells, turns)
    gains = pair_terms(matches, 12) + 6.0 * terms.doubt
    wanted = gains[first, second].sum() / 2 + unary[torch.arange(12), turns, cells].sum()
    assert abs(terms(state) - float(wanted)) < 1e-3
    (found_cells, found_turns), sure = terms.answer(state)
    assert torch.equal(found_cells, cells)
    assert torch.equal(found_turns, turns)
    assert bool(((sure >= 0) & (sure <= 1)).all())


def test_improving_never_loses_worth() -> None:
    generator, board = torch.Generator().manual_seed(1), Board(4, 4)
    ramp = torch.linspace(0, 1, 64)
    picture = torch.stack([ramp[None].expand(64, -1), ramp[:, None].expand(-1, 64), ramp[None] * ramp[:, None]])
    puzzle = cut_picture(picture + 0.02 * torch.rand(3, 64, 64, generator=generator), board, generator, size=16)
    terms = Energy.dense(find_matches(puzzle, keep=8), torch.zeros(16, 4, 16), board)
    start = terms.state(torch.randperm(16, generator=generator), torch.zeros(16, dtype=torch.long))
    found = terms.improve(start, 50, 1.0, 0.0, np.random.default_rng(0))
    assert terms(found) >= terms(start)


def test_lists_hold_the_likely_pairs_of_the_dense_terms(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 4)
    matches = find_matches(puzzle, keep=24)
    (starts, partner, term), whole = pair_lists(matches, len(puzzle)), pair_terms(matches, len(puzzle))
    assert starts[-1] == len(partner) == len(term)
    found = torch.full_like(whole, -math.inf)
    for side in range(64):
        row = slice(starts[side], starts[side + 1])
        assert (partner[row][1:] > partner[row][:-1]).all()
        found[side, partner[row]] = torch.from_numpy(term[row])
    likely = found > -math.inf
    assert torch.equal(found[likely], whole[likely])
    assert (whole[~likely] < math.log(0.01 / 0.99) + 1e-4).all()
