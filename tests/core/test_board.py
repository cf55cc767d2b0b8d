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


dimensions = st.sampled_from((2, 3))


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


@settings(deadline=None)
@given(dimensions, seeds)
def test_composition_and_inverse_are_those_of_homogeneous_matrices(dimension: int, seed: int) -> None:
    first, second = random_poses(5, dimension, seed), random_poses(5, dimension, seed + 1)
    torch.testing.assert_close(homogeneous(first @ second), homogeneous(first) @ homogeneous(second))
    torch.testing.assert_close(homogeneous(first.inverse()), torch.linalg.inv(homogeneous(first)))


@settings(deadline=None)
@given(dimensions, seeds)
def test_applying_is_a_homogeneous_product_and_follows_composition(dimension: int, seed: int) -> None:
    first, second = random_poses(5, dimension, seed), random_poses(5, dimension, seed + 1)
    points = torch.randn(5, 7, dimension, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    extended = torch.cat([points, torch.ones(5, 7, 1, dtype=torch.double)], -1)
    expected = (homogeneous(first) @ extended.transpose(1, 2)).transpose(1, 2)[..., :dimension]
    torch.testing.assert_close(first.apply(points), expected)
    torch.testing.assert_close((first @ second).apply(points), first.apply(second.apply(points)))
    torch.testing.assert_close(first.inverse().apply(first.apply(points)), points)


@settings(deadline=None)
@given(dimensions, seeds)
def test_the_identity_moves_nothing(dimension: int, seed: int) -> None:
    poses = random_poses(4, dimension, seed)
    poses = Poses(poses.rotation.float(), poses.translation.float())
    still = Poses.identity(4, dimension)
    for same in (still @ poses, poses @ still):
        assert torch.equal(same.rotation, poses.rotation)
        assert torch.equal(same.translation, poses.translation)


@settings(deadline=None)
@given(dimensions, seeds, st.floats(-3, 3), st.floats(-3, 3))
def test_composition_is_linear_in_noisy_poses(dimension: int, seed: int, a: float, b: float) -> None:
    left, right, other = (random_poses(3, dimension, seed + shift) for shift in range(3))
    mixed = Poses(a * left.rotation + b * right.rotation, a * left.translation + b * right.translation) @ other
    first, second = left @ other, right @ other
    torch.testing.assert_close(mixed.rotation, a * first.rotation + b * second.rotation)
    torch.testing.assert_close(mixed.translation, a * first.translation + b * second.translation)


turns = st.integers(-9, 9)


@settings(deadline=None)
@given(st.integers(1, 7), st.data())
def test_a_marked_pixel_moves_where_the_matrix_says(size: int, data: st.DataObject) -> None:
    row, col = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    turn = torch.tensor([data.draw(turns)])
    picture = torch.zeros(1, 1, size, size)
    picture[0, 0, row, col] = 1
    middle = (size - 1) / 2
    x, y = (turn_matrix(turn)[0] @ torch.tensor([col - middle, row - middle]) + middle).tolist()
    turned = turn_pixels(picture, turn)
    assert turned.sum() == 1
    assert turned[0, 0, round(y), round(x)] == 1


def test_a_positive_turn_is_clockwise_as_seen() -> None:
    picture = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    assert turn_pixels(picture, torch.tensor([1])).flatten().tolist() == [3, 1, 4, 2]
    # x to the right, y down: what points to the right then points down.
    assert (turn_matrix(torch.tensor(1)) @ torch.tensor([1.0, 0.0])).tolist() == [0, 1]


@settings(deadline=None)
@given(turns, turns)
def test_turns_add(first: int, second: int) -> None:
    matrices = turn_matrix(torch.tensor([first, second, first + second]))
    assert torch.equal(matrices[0] @ matrices[1], matrices[2])
    picture = torch.rand(1, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    one_by_one = turn_pixels(turn_pixels(picture, torch.tensor([first])), torch.tensor([second]))
    assert torch.equal(one_by_one, turn_pixels(picture, torch.tensor([first + second])))


def test_every_picture_has_its_own_turn_and_the_given_ones_stay() -> None:
    pictures = torch.rand(9, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    kept, own = pictures.clone(), torch.arange(-4, 5)
    together = turn_pixels(pictures, own)
    for picture, turn, turned in zip(pictures, own, together, strict=True):
        assert torch.equal(turn_pixels(picture[None], turn[None])[0], turned)
    assert torch.equal(pictures, kept)


@settings(deadline=None)
@given(turns, st.floats(-0.78, 0.78), st.floats(1e-3, 1e3))
def test_the_nearest_turn_of_any_angle_within_45_degrees_at_any_scale(turn: int, off: float, scale: float) -> None:
    angle = turn * math.pi / 2 + off
    rotation = scale * torch.tensor([[[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]])
    assert nearest_turn(rotation).tolist() == [turn % 4]


def test_the_nearest_turn_has_the_smallest_distance_even_for_noisy_matrices() -> None:
    noisy = torch.randn(500, 2, 2, generator=torch.Generator().manual_seed(0))
    distance = (noisy[:, None] - turn_matrix(torch.arange(4))).square().sum((-1, -2))
    assert torch.equal(nearest_turn(noisy), distance.argmin(1))
