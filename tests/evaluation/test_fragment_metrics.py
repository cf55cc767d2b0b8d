"""Metrics of broken objects against closed forms, scipy, chance levels and cases made by hand."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.spatial.transform import Rotation

from diffassemble.core import FragmentPieces, Mesh, Poses
from diffassemble.evaluation.metrics import (
    RIGHT,
    anchored,
    chamfer_distance,
    euler_angles,
    euler_error,
    geodesic_error,
    piece_chamfer,
    piece_sizes,
    right_pieces,
    shape_chamfer,
    translation_error,
)
from diffassemble.fragments.breaking import random_rotations


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def turned(axis: str, degrees: float, count: int = 1) -> torch.Tensor:
    matrix = torch.from_numpy(Rotation.from_euler(axis, degrees, degrees=True).as_matrix()).float()
    return matrix.repeat(count, 1, 1)


def standing(rotation: torch.Tensor, translation: torch.Tensor | None = None) -> Poses:
    return Poses(rotation, torch.zeros(len(rotation), 3) if translation is None else translation)


def random_poses(count: int, seed: int = 0) -> Poses:
    draw = generator(seed)
    return Poses(random_rotations(count, draw), torch.randn(count, 3, generator=draw))


def quaternion_formula(rotation: torch.Tensor) -> torch.Tensor:
    """The benchmark's own words: Euler angles from quaternions, scalar first."""
    q1, q2, q3, q0 = torch.from_numpy(Rotation.from_matrix(rotation.double().numpy()).as_quat()).unbind(-1)
    x = torch.atan2(2 * (q0 * q1 + q2 * q3), 1 - 2 * (q1**2 + q2**2))
    y = torch.asin((2 * (q0 * q2 - q1 * q3)).clamp(-1, 1))
    z = torch.atan2(2 * (q0 * q3 + q1 * q2), 1 - 2 * (q2**2 + q3**2))
    return torch.stack([x, y, z], -1).rad2deg()


def test_euler_angles_are_those_of_scipy_and_of_the_benchmark() -> None:
    rotation = random_rotations(500, generator())
    expected = torch.from_numpy(Rotation.from_matrix(rotation.double().numpy()).as_euler("xyz", degrees=True))
    # Single precision is blind to parts of a hundredth of a degree near y = ±90°.
    assert torch.allclose(euler_angles(rotation), expected, atol=0.02)
    assert torch.allclose(euler_angles(rotation), quaternion_formula(rotation), atol=0.02)


@pytest.mark.parametrize(("axis", "column"), [("x", 0), ("y", 1), ("z", 2)])
@pytest.mark.parametrize("degrees", [-80.0, -1.0, 0.0, 30.0, 89.0])
def test_a_turn_about_one_axis_is_one_angle(axis: str, column: int, degrees: float) -> None:
    angles = euler_angles(turned(axis, degrees))[0]
    expected = torch.zeros(3, dtype=torch.double)
    expected[column] = degrees
    assert torch.allclose(angles, expected, atol=1e-4)
    error = float(euler_error(standing(turned(axis, degrees)), Poses.identity(1, 3)))
    assert error == pytest.approx(abs(degrees) / math.sqrt(3), abs=1e-4)


def test_angles_differ_the_short_way_round() -> None:
    error = euler_error(standing(turned("z", 175.0)), standing(turned("z", -175.0)))
    assert float(error) == pytest.approx(10 / math.sqrt(3), abs=1e-4)


@pytest.mark.parametrize("degrees", [0.0, 0.001, 0.1, 60.0, 179.9, 180.0])
def test_the_geodesic_error_is_the_angle_of_the_turn(degrees: float) -> None:
    axis = torch.tensor([0.48, -0.6, 0.64], dtype=torch.double)
    turn = torch.from_numpy(Rotation.from_rotvec((axis * math.radians(degrees)).numpy()).as_matrix())[None]
    start = random_rotations(1, generator()).double()
    start = torch.linalg.qr(start)[0]
    error = geodesic_error(standing(start), standing(start @ turn))
    assert float(error) == pytest.approx(degrees, abs=1e-5)
    # The same from either side, and wherever both are turned to.
    assert torch.allclose(error, geodesic_error(standing(start @ turn), standing(start)), atol=1e-5)
    assert torch.allclose(error, geodesic_error(standing(turn), standing(torch.eye(3).double()[None])), atol=1e-5)


def test_chance_levels() -> None:
    truth, guess = random_poses(40_000, 1), random_poses(40_000, 2)
    nothing = Poses.identity(40_000, 3)
    assert float(euler_error(nothing, truth).mean()) == pytest.approx(83.2, abs=0.4)
    assert float(euler_error(guess, truth).mean()) == pytest.approx(86.4, abs=0.4)
    assert float(geodesic_error(guess, truth).mean()) == pytest.approx(126.5, abs=0.4)
    assert float(geodesic_error(nothing, truth).mean()) == pytest.approx(90 + 180 * 2 / math.pi**2, abs=0.4)


def test_translation_by_hand() -> None:
    answer = standing(turned("x", 0.0, 2), torch.tensor([[0.1, 0.2, 0.2], [0.0, 0.0, 0.0]]))
    assert translation_error(answer, Poses.identity(2, 3)).tolist() == pytest.approx([0.3 / math.sqrt(3), 0.0])


def test_chamfer_by_hand_and_against_all_pairs() -> None:
    first = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    second = torch.tensor([[0.0, 0.0, 0.5]])
    assert chamfer_distance(first, second) == pytest.approx((0.25 + 1.25) / 2 + 0.25)
    one, two = (torch.rand(200, 3, generator=generator(seed)) for seed in (1, 2))
    square = torch.cdist(one.double(), two.double()).square()
    expected = square.amin(0).mean() + square.amin(1).mean()
    assert chamfer_distance(one, two) == pytest.approx(float(expected))
    assert chamfer_distance(one, one) == 0


def test_a_piece_is_right_within_a_tenth_of_a_root() -> None:
    # A lone point, moved by d, is 2 d² away from where it belongs: right while d < √0.005.
    points = torch.zeros(3, 4, 3)
    moved = torch.tensor([[0.0, 0.0, 0.0], [0.0702, 0.0, 0.0], [0.0, 0.0, 0.0713]])
    chamfer = piece_chamfer(points, standing(turned("x", 0.0, 3), moved), Poses.identity(3, 3))
    assert chamfer.tolist() == pytest.approx((2 * moved.square().sum(1)).tolist())
    assert RIGHT == 0.01
    assert right_pieces(chamfer).tolist() == [True, True, False]


def test_symmetric_pieces_may_turn_but_count_in_the_angles() -> None:
    ring = torch.arange(36) * (2 * math.pi / 36)
    points = torch.stack([0.4 * ring.cos(), 0.4 * ring.sin(), torch.zeros(36)], -1)[None]
    answer, truth = standing(turned("z", 120.0)), Poses.identity(1, 3)
    assert right_pieces(piece_chamfer(points, answer, truth)).all()
    assert float(geodesic_error(answer, truth)) == pytest.approx(120, abs=1e-4)


def test_exchanged_equal_pieces_make_the_same_shape() -> None:
    points = torch.rand(1, 30, 3, generator=generator()).repeat(2, 1, 1)
    truth = standing(turned("x", 0.0, 2), torch.tensor([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]]))
    answer = truth[[1, 0]]
    assert shape_chamfer(points, answer, truth) == 0
    assert not right_pieces(piece_chamfer(points, answer, truth)).any()


def test_anchoring_undoes_a_motion_of_the_whole_and_nothing_else() -> None:
    truth = random_poses(5)
    whole = random_poses(1, 7)
    moved = Poses(whole.rotation.expand(5, 3, 3), whole.translation.expand(5, 3)) @ truth
    for piece in (0, 3):
        found = anchored(moved, truth, piece)
        assert torch.allclose(found.rotation, truth.rotation, atol=1e-5)
        assert torch.allclose(found.translation, truth.translation, atol=1e-5)
    wrong = random_poses(5, 9)
    found = anchored(wrong, truth, 2)
    assert float(geodesic_error(found, truth)[2]) < 1e-2
    # What the pieces are to each other stays.
    between = wrong[[0]].inverse() @ wrong[[4]], found[[0]].inverse() @ found[[4]]
    assert torch.allclose(between[0].rotation, between[1].rotation, atol=1e-5)
    assert torch.allclose(between[0].translation, between[1].translation, atol=1e-4)


def test_order_does_not_matter() -> None:
    answer, truth = random_poses(6, 1), random_poses(6, 2)
    points = torch.rand(6, 40, 3, generator=generator())
    order = torch.randperm(6, generator=generator(5))
    for error in (euler_error, geodesic_error, translation_error):
        assert torch.equal(error(answer, truth)[order], error(answer[order], truth[order]))
    assert torch.allclose(
        piece_chamfer(points, answer, truth)[order], piece_chamfer(points[order], answer[order], truth[order])
    )
    assert shape_chamfer(points, answer, truth) == pytest.approx(
        shape_chamfer(points[order], answer[order], truth[order])
    )


def test_sizes_are_shares_of_the_area_or_of_what_points_span() -> None:
    corner = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    face = torch.tensor([[0, 1, 2]])
    points = torch.stack([corner, 2 * corner])
    meshes = Mesh(corner, face), Mesh(2 * corner, face)
    pieces = FragmentPieces(points, meshes, torch.zeros(2, 3))
    assert piece_sizes(pieces).tolist() == pytest.approx([0.2, 0.8])
    clouds = tuple(Mesh(mesh.vertices, face[:0]) for mesh in meshes)
    assert piece_sizes(FragmentPieces(points, clouds, torch.zeros(2, 3))).tolist() == pytest.approx([0.2, 0.8])
