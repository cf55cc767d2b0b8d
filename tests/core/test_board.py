"""The lattice: its cells, the way back from loose poses, and turning it as a whole."""

from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, Poses, turn_matrix

boards = st.builds(Board, st.integers(1, 9), st.integers(1, 9))
seeds = st.integers(0, 2**31)


def placement(board: Board, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randperm(board.cells, generator=generator), torch.randint(0, 4, (board.cells,), generator=generator))


@settings(deadline=None)
@given(boards)
def test_cells_are_numbered_row_by_row_and_lie_one_pitch_apart(board: Board) -> None:
    centres = board.centres().view(board.rows, board.cols, 2)
    right, down = centres[:, 1:] - centres[:, :-1], centres[1:] - centres[:-1]
    torch.testing.assert_close(right, torch.tensor([board.pitch, 0.0]).expand_as(right))
    torch.testing.assert_close(down, torch.tensor([0.0, board.pitch]).expand_as(down))


@settings(deadline=None)
@given(boards)
def test_the_longer_side_spans_minus_one_to_one_around_the_origin(board: Board) -> None:
    centres = board.centres()
    assert board.cells == len(centres) == board.rows * board.cols
    torch.testing.assert_close(centres.mean(0), torch.zeros(2))
    reach = centres.abs().max(0).values + board.pitch / 2
    assert math.isclose(reach.max(), 1, rel_tol=1e-6)
    torch.testing.assert_close(reach, torch.tensor([board.cols, board.rows]) / max(board.rows, board.cols))


@settings(deadline=None)
@given(boards, seeds)
def test_snapping_undoes_placing_even_under_noise(board: Board, seed: int) -> None:
    cells, turns = placement(board, seed)
    poses = board.poses(cells, turns)
    generator = torch.Generator().manual_seed(seed)
    jitter = 0.49 * board.pitch * (2 * torch.rand(board.cells, 2, generator=generator) - 1)
    angle = 0.78 * (2 * torch.rand(board.cells, generator=generator) - 1)
    twist = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1).view(-1, 2, 2)
    for loose in (poses, Poses(0.3 * twist @ poses.rotation, poses.translation + jitter)):
        snapped_cells, snapped_turns = board.snap(loose)
        assert torch.equal(snapped_cells, cells)
        assert torch.equal(snapped_turns, turns)


@settings(deadline=None)
@given(boards, seeds, st.integers(-5, 9))
def test_turning_the_board_turns_the_poses(board: Board, seed: int, by: int) -> None:
    cells, turns = placement(board, seed)
    new_board, new_cells, new_turns = board.turned(cells, turns, by)
    whole = Poses(turn_matrix(torch.full((board.cells,), by)), torch.zeros(board.cells, 2))
    expected = whole @ board.poses(cells, turns)
    turned = new_board.poses(new_cells, new_turns)
    torch.testing.assert_close(turned.translation, expected.translation)
    assert torch.equal(turned.rotation, expected.rotation)
    assert (new_board == board) == (by % 2 == 0 or board.rows == board.cols)


@settings(deadline=None)
@given(boards, seeds, st.integers(0, 3), st.integers(0, 3))
def test_turns_of_the_board_add_and_four_are_none(board: Board, seed: int, first: int, second: int) -> None:
    cells, turns = placement(board, seed)
    middle, *moved = board.turned(cells, turns, first)
    for again, together in (
        (middle.turned(*moved, second), board.turned(cells, turns, first + second)),
        (middle.turned(*moved, 4 - first), (board, cells, turns)),
    ):
        assert again[0] == together[0]
        assert torch.equal(again[1], together[1])
        assert torch.equal(again[2], together[2])
