"""Placements become the pictures they are, and every picture is scored by itself."""

from __future__ import annotations

import pytest
import torch

from diffassemble.core import Board
from diffassemble.squares.critic import Critic, CriticConfig, laid, tiles_of
from diffassemble.squares.cut import cut_picture

SMALL = CriticConfig(stem=8, widths=(8, 8, 8), hidden=8, dropout=0.0)


def test_a_true_placement_is_the_picture() -> None:
    generator = torch.Generator().manual_seed(0)
    board, picture = Board(6, 6), torch.rand(3, 60, 60, generator=generator)
    puzzle = cut_picture(picture, board, generator, size=10)
    assert puzzle.truth is not None
    cells, turns = board.snap(puzzle.truth)
    at, turned = torch.full((36,), -1), torch.zeros(36, dtype=torch.long)
    at[cells], turned[cells] = torch.arange(36), turns
    at[7] = -1
    shown = laid(tiles_of(puzzle.pixels, board, 60), at[None], turned[None], board, 60)[0]
    wanted = picture.clone()
    wanted[:, 10:20, 10:20] = 0.5
    assert torch.allclose(shown[:3], wanted, atol=0.003)  # pieces have 256 levels
    assert float(shown[3].sum()) == 35 * 100


@pytest.mark.parametrize("board", [Board(3, 5), Board(8, 8), Board(1, 4)])
def test_any_board_becomes_a_square(board: Board) -> None:
    tiles = tiles_of(torch.rand(board.cells, 3, 16, 16), board, 60)
    at = torch.arange(board.cells)[None]
    assert laid(tiles, at, torch.zeros_like(at), board, 60).shape == (1, 4, 60, 60)


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
