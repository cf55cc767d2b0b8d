"""The critic, and what it decides on boards with empty cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from diffassemble.core import Board, Locks, Poses, Puzzle
from diffassemble.squares.critic import (
    Critic,
    CriticConfig,
    CriticReranker,
    laid,
    parts,
    placings,
    shifts,
    tiles_of,
    without,
)
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.energy import Energy, State

SMALL = CriticConfig(stem=8, widths=(8, 8, 8), hidden=8, dropout=0.0)


def test_a_true_placement_is_the_picture() -> None:
    generator = torch.Generator().manual_seed(0)
    board, picture = Board(6, 6), torch.rand(3, 60, 60, generator=generator)
    puzzle = cut_picture(picture, board, generator, size=10)
    cells, turns = board.snap(puzzle.truth)
    at, turned = torch.full((36,), -1), torch.zeros(36, dtype=torch.long)
    at[cells], turned[cells] = torch.arange(36), turns
    at[7] = -1
    shown = laid(tiles_of(puzzle.pixels, board, 60), at[None], turned[None], board, 60)[0]
    wanted = picture.clone()
    wanted[:, 10:20, 10:20] = 0.5
    assert torch.allclose(shown[:3], wanted, atol=0.003)  # pieces have 256 levels
    assert float(shown[3].sum()) == 35 * 100


def test_scores_are_finite_and_do_not_depend_on_company_or_mirror() -> None:
    torch.manual_seed(0)
    critic, board = Critic(SMALL).eval(), Board(6, 6)
    tiles = tiles_of(torch.rand(36, 3, 10, 10), board, 60)
    at = torch.stack([torch.randperm(36) for _ in range(70)])
    turns = torch.randint(0, 4, (70, 36))
    together = critic.score(tiles, at, turns, board)
    alone = critic.score(tiles, at[5:6], turns[5:6], board)
    assert together.shape == (70,)
    assert float((together[5] - alone[0]).abs()) < 1e-4
    mirrored, opposite = (part.view(70, 6, 6).flip(-1).flatten(1) for part in (at, -turns % 4))
    flipped = critic.score(tiles.flip(-1)[:, [0, 3, 2, 1]], mirrored, opposite, board)
    assert float((together - flipped).abs().max()) < 1e-4


BOARD = Board(6, 6)


# Four rows hold together; the last piece of the picture lies alone.
KEPT = torch.cat([torch.arange(24), torch.tensor([35])])


Case = tuple[Puzzle, Energy, State, Tensor]


class Knowing(Critic):
    """Likes pieces that lie where they belong, unturned."""

    def __init__(self, truth: Tensor) -> None:
        super().__init__(CriticConfig(stem=4, widths=(4, 4, 4), hidden=4))
        self.truth = truth

    def score(self, tiles: Tensor, at: Tensor, turns: Tensor, board: Board) -> Tensor:
        return ((at == self.truth) & (turns == 0) & (at >= 0)).float().sum(1)


@pytest.fixture
def case() -> Case:
    """The four rows lie one row too low, and the lone piece on the first cell."""
    generator = torch.Generator().manual_seed(0)
    puzzle = cut_picture(torch.rand(3, 60, 60, generator=generator), BOARD, generator, size=10)
    puzzle = puzzle.reordered(BOARD.snap(puzzle.truth)[0].argsort()[KEPT])
    count = len(KEPT)
    gains = np.full((4 * count, 4 * count), -6.0, np.float32)
    for cell in range(24):
        for other, side in ((cell + 1, 0), (cell + 6, 1)):
            if other < 24 and (side == 1 or cell % 6 < 5):
                gains[4 * cell + side, 4 * other + side + 2] = gains[4 * other + side + 2, 4 * cell + side] = 5.0
    terms = Energy(gains, np.zeros((36, count, 4), np.float32), np.zeros((0, 2), np.int64), BOARD)
    truth = torch.full((36,), -1)
    truth[KEPT] = torch.arange(count)
    state = terms.state(torch.cat([torch.arange(24) + 6, torch.tensor([0])]), torch.zeros(count, dtype=torch.long))
    return puzzle, terms, state, truth


def test_the_whole_is_shifted_and_the_lone_piece_put_where_the_critic_wants_them(case: Case) -> None:
    puzzle, terms, state, truth = case
    found = CriticReranker(Knowing(truth))(puzzle, terms, state)
    assert torch.equal(torch.from_numpy(found.at), truth)
    assert not found.turn.any()


def test_borders_outweigh_a_critic_that_is_less_sure(case: Case) -> None:
    puzzle, terms, state, truth = case
    other = truth.clone()
    other[[0, 1]] = other[[1, 0]]
    found = CriticReranker(Knowing(other))(puzzle, terms, state)
    assert found.at[0] == 0
    assert found.at[1] == 1


def test_locked_and_whole_puzzles_are_left_alone(case: Case) -> None:
    puzzle, terms, state, truth = case
    locked = replace(puzzle, locks=Locks(torch.arange(25) == 0, Poses.identity(25, 2)))
    assert CriticReranker(Knowing(truth))(locked, terms, state) is state


def test_parts_hold_together_by_their_borders(case: Case) -> None:
    _, terms, state, _ = case
    large, lone = parts(state, terms)
    assert large.tolist() == list(range(24))
    assert lone.tolist() == [24]
    apart = without(state, np.arange(6))
    assert [len(part) for part in parts(apart, terms)] == [18, *[1] * 7]


def test_shifts_and_placings_keep_every_piece_once(case: Case) -> None:
    _, terms, state, _ = case
    wholes = list(shifts(state, terms))
    assert wholes[0] is state
    lone = list(placings(state, np.array([24]), BOARD))
    assert len(lone) == 12 * 4
    for found in [*wholes, *lone]:
        lying = found.at[found.at >= 0]
        assert sorted(lying.tolist()) == list(range(25))
        assert (found.at[found.where] == np.arange(25)).all()


def test_a_part_is_turned_as_a_whole(case: Case) -> None:
    """A pair that lies side by side lies one below the other after a quarter turn, and touches by the same sides."""
    _, terms, state, _ = case
    alone = without(state, np.arange(2, 25))
    for found in placings(alone, np.array([0, 1]), BOARD):
        pair = without(found, np.arange(2, 25))
        assert terms(pair) == pytest.approx(5.0)
