"""Rigid motions and quarter turns are what they say, and boards number and turn their cells."""

from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, Poses, nearest_turn, turn_matrix, turn_pixels

boards = st.builds(Board, st.integers(1, 9), st.integers(1, 9))
seeds = st.integers(0, 2**31)
turns = st.integers(-9, 9)
dimensions = st.sampled_from((2, 3))
close = torch.testing.assert_close
few = settings(max_examples=30, deadline=None)


def placement(board: Board, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randperm(board.cells, generator=generator), torch.randint(0, 4, (board.cells,), generator=generator))


@few
@given(boards)
def test_cells_are_numbered_row_by_row_and_span_minus_one_to_one(board: Board) -> None:
    centres = board.centres()
    assert board.cells == len(centres) == board.rows * board.cols
    close(centres.mean(0), torch.zeros(2))
    reach = centres.abs().max(0).values + board.pitch / 2
    close(reach, torch.tensor([board.cols, board.rows]) / max(board.rows, board.cols))
    grid = centres.view(board.rows, board.cols, 2)
    right, down = grid[:, 1:] - grid[:, :-1], grid[1:] - grid[:-1]
    close(right, torch.tensor([board.pitch, 0.0]).expand_as(right))
    close(down, torch.tensor([0.0, board.pitch]).expand_as(down))


@few
@given(boards, seeds)
def test_snapping_undoes_placing_even_under_noise(board: Board, seed: int) -> None:
    placed = placement(board, seed)
    poses = board.poses(*placed)
    generator = torch.Generator().manual_seed(seed)
    jitter = 0.49 * board.pitch * (2 * torch.rand(board.cells, 2, generator=generator) - 1)
    angle = 0.78 * (2 * torch.rand(board.cells, generator=generator) - 1)
    twist = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1).view(-1, 2, 2)
    for loose in (poses, Poses(0.3 * twist @ poses.rotation, poses.translation + jitter)):
        assert all(map(torch.equal, board.snap(loose), placed))


@few
@given(boards, seeds, st.integers(-5, 9), st.integers(0, 3))
def test_turning_the_board_turns_the_poses_and_turns_add(board: Board, seed: int, by: int, more: int) -> None:
    placed = placement(board, seed)
    turned, *moved = board.turned(*placed, by)
    whole = Poses(turn_matrix(torch.full((board.cells,), by)), torch.zeros(board.cells, 2))
    expected, found = whole @ board.poses(*placed), turned.poses(*moved)
    close(found.translation, expected.translation)
    assert torch.equal(found.rotation, expected.rotation)
    assert (turned == board) == (by % 2 == 0 or board.rows == board.cols)
    for again, together in (
        (turned.turned(*moved, more), board.turned(*placed, by + more)),
        (turned.turned(*moved, -by), (board, *placed)),
    ):
        assert again[0] == together[0]
        assert all(map(torch.equal, again[1:], together[1:]))


def random_poses(count: int, dimension: int, seed: int) -> Poses:
    """Proper rotations, in double precision."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, dimension, dimension, generator=generator, dtype=torch.double)
    rotation = torch.linalg.qr(noise)[0]
    rotation[..., 0] *= torch.linalg.det(rotation)[:, None]
    return Poses(rotation, torch.randn(count, dimension, generator=generator, dtype=torch.double))


def homogeneous(poses: Poses) -> Tensor:
    count, dimension = poses.translation.shape
    matrix = torch.eye(dimension + 1, dtype=torch.double).repeat(count, 1, 1)
    matrix[:, :dimension, :dimension] = poses.rotation
    matrix[:, :dimension, dimension] = poses.translation
    return matrix


@few
@given(dimensions, seeds, st.floats(-3, 3), st.floats(-3, 3))
def test_the_algebra_is_that_of_homogeneous_matrices(dimension: int, seed: int, a: float, b: float) -> None:
    first, second, third = (random_poses(5, dimension, seed + shift) for shift in range(3))
    close(homogeneous(first @ second), homogeneous(first) @ homogeneous(second))
    close(homogeneous(first.inverse()), torch.linalg.inv(homogeneous(first)))
    points = torch.randn(5, 7, dimension, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    extended = torch.cat([points, torch.ones(5, 7, 1, dtype=torch.double)], -1)
    close(first.apply(points), (homogeneous(first) @ extended.mT).mT[..., :dimension])
    close((first @ second).apply(points), first.apply(second.apply(points)))
    # Composition is linear in poses that are not rigid, too.
    mixed = Poses(a * first.rotation + b * second.rotation, a * first.translation + b * second.translation) @ third
    expected = a * homogeneous(first @ third) + b * homogeneous(second @ third)
    close(homogeneous(mixed)[:, :dimension], expected[:, :dimension])
    poses, still = Poses(first.rotation.float(), first.translation.float()), Poses.identity(5, dimension)
    for same in (still @ poses, poses @ still):
        assert torch.equal(same.rotation, poses.rotation)
        assert torch.equal(same.translation, poses.translation)


@few
@given(st.integers(1, 7), st.data())
def test_a_marked_pixel_moves_as_the_matrix_moves_it(size: int, data: st.DataObject) -> None:
    row, col = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    turn = torch.tensor([data.draw(turns)])
    picture = torch.zeros(1, 1, size, size)
    picture[0, 0, row, col] = 1
    middle = (size - 1) / 2
    x, y = (turn_matrix(turn)[0] @ torch.tensor([col - middle, row - middle]) + middle).tolist()
    turned = turn_pixels(picture, turn)
    assert turned.sum() == 1
    assert turned[0, 0, round(y), round(x)] == 1


def test_a_positive_turn_is_clockwise_as_seen_and_every_picture_has_its_own() -> None:
    picture = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    assert turn_pixels(picture, torch.tensor([1])).flatten().tolist() == [3, 1, 4, 2]
    # x to the right, y down: what points to the right then points down.
    assert (turn_matrix(torch.tensor(1)) @ torch.tensor([1.0, 0.0])).tolist() == [0, 1]
    pictures = torch.rand(9, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    kept, own = pictures.clone(), torch.arange(-4, 5)
    for one, turn, turned in zip(pictures, own, turn_pixels(pictures, own), strict=True):
        assert torch.equal(turn_pixels(one[None], turn[None])[0], turned)
    assert torch.equal(pictures, kept)


@few
@given(turns, st.floats(-0.78, 0.78), st.floats(1e-3, 1e3))
def test_the_nearest_turn_of_any_angle_within_45_degrees_at_any_scale(turn: int, off: float, scale: float) -> None:
    angle = turn * math.pi / 2 + off
    rotation = scale * torch.tensor([[[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]])
    assert nearest_turn(rotation).tolist() == [turn % 4]
    noisy = torch.randn(50, 2, 2, generator=torch.Generator().manual_seed(turn + 9))
    distance = (noisy[:, None] - turn_matrix(torch.arange(4))).square().sum((-1, -2))
    assert torch.equal(nearest_turn(noisy), distance.argmin(1))
