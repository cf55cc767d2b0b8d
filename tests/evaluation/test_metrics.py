"""Metrics against hand-made cases, closed forms, scipy, chance and invariances."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from diffassemble.assembly.scoring import RIGHT, anchored, piece_chamfer, piece_sizes, right_pieces
from diffassemble.core import Board, FragmentPieces, Mesh, Poses
from diffassemble.core.poses import plane_rotations, random_rotations
from diffassemble.evaluation.metrics import (
    board_pairs_agree,
    bootstrap_intervals,
    class_means,
    direct_comparison,
    direct_comparison_free,
    euler_angles,
    euler_error,
    flat_pairs_agree,
    fragment_pairs_agree,
    geodesic_error,
    neighbour_accuracy,
    shape_chamfer,
    translation_error,
    wilson_interval,
)

METRICS = (direct_comparison, direct_comparison_free, neighbour_accuracy)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_placement(board: Board, seed: int, pieces: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    draw = generator(seed)
    cells = torch.randperm(board.cells, generator=draw)[: pieces or board.cells]
    return cells, torch.randint(0, 4, (len(cells),), generator=draw)


boards = st.builds(Board, st.integers(1, 5), st.integers(1, 5))
seeds = st.integers(0, 2**31)


@given(boards, seeds, st.integers(1, 25))
def test_the_truth_scores_a_hundred_and_the_order_of_pieces_changes_nothing(
    board: Board, seed: int, pieces: int
) -> None:
    count = min(pieces, board.cells)
    truth, answer = random_placement(board, seed, count), random_placement(board, seed + 1, count)
    assert [metric(board, *truth, *truth) for metric in METRICS] == [100.0, 100.0, 100.0]
    assert 0 <= direct_comparison(board, *answer, *truth) <= direct_comparison_free(board, *answer, *truth) <= 100
    order = torch.randperm(count, generator=generator(seed))
    for metric in METRICS:
        plain = metric(board, *answer, *truth)
        assert metric(board, *(part[order] for part in (*answer, *truth))) == plain


@pytest.mark.parametrize(
    ("board", "cells", "turns", "true_cells", "scores"),
    [
        # A piece needs both its place and its turn; a turned one loses all its neighbours, the middle of 3×3 4 of 12.
        (Board(2, 2), [0, 1, 2, 3], [0, 1, 0, 0], [0, 1, 2, 3], (75, 75, 50)),
        (Board(3, 3), list(range(9)), [0, 0, 0, 0, 2, 0, 0, 0, 0], list(range(9)), (800 / 9, 800 / 9, 800 / 12)),
        # 0 1 / 2 3 → 1 0 / 2 3: of the pairs 01, 23, 02, 13 only 23 still lies as it should.
        (Board(2, 2), [1, 0, 2, 3], [0, 0, 0, 0], [0, 1, 2, 3], (50, 50, 25)),
        (Board(2, 2), [1, 0, 2, 3], [0, 0, 3, 0], [0, 1, 2, 3], (25, 25, 0)),
        # Two columns of three are given; the answer has them one column too far right.
        (Board(3, 3), [1, 2, 4, 5, 7, 8], [0] * 6, [0, 1, 3, 4, 6, 7], (0, 0, 100)),
        # 0 1 2 3 → 2 3 0 1: the pairs 01 and 23 live on, 12 does not.
        (Board(1, 4), [2, 3, 0, 1], [0] * 4, [0, 1, 2, 3], (0, 0, 200 / 3)),
        # Given are cells 0, 1 and 8: one pair. Piece 8 is wrong, the pair is right.
        (Board(3, 3), [0, 1, 5], [0] * 3, [0, 1, 8], (200 / 3, 200 / 3, 100)),
        # Pieces on one cell are no neighbours.
        (Board(2, 2), [0, 0, 0, 0], [0] * 4, [0, 1, 2, 3], (25, 25, 0)),
        # A long board cannot stand on its short side: turning a square whole back would set the middle one right.
        (Board(1, 3), [0, 1, 2], [1, 1, 1], [0, 1, 2], (0, 0, 0)),
    ],
)
def test_scores_by_hand(
    board: Board, cells: list[int], turns: list[int], true_cells: list[int], scores: tuple[float, float, float]
) -> None:
    answer = (torch.tensor(cells), torch.tensor(turns), torch.tensor(true_cells), torch.zeros(len(cells)).long())
    assert [metric(board, *answer) for metric in METRICS] == pytest.approx(scores)


@given(st.integers(2, 5), seeds, st.integers(1, 3))
def test_turning_a_square_whole_costs_absolute_accuracy_only(side: int, seed: int, by: int) -> None:
    board = Board(side, side)
    truth = random_placement(board, seed)
    _, *turned = board.turned(*truth, by)
    assert direct_comparison(board, *turned, *truth) == 0.0
    assert direct_comparison_free(board, *turned, *truth) == 100.0
    assert neighbour_accuracy(board, *turned, *truth) == 100.0


def test_random_answers_score_at_chance() -> None:
    board, rounds = Board(3, 3), 2000
    truth = random_placement(board, 0)
    answers = [random_placement(board, seed) for seed in range(1, rounds + 1)]
    right, neighbours = (
        sum(metric(board, *answer, *truth) for answer in answers) / rounds
        for metric in (direct_comparison, neighbour_accuracy)
    )
    # Right pieces per answer have mean and variance near 1/4: five standard errors of the mean share.
    assert right == pytest.approx(100 / (4 * 9), abs=5 * (0.25 / rounds) ** 0.5 / 9 * 100)
    # Two pieces are adjacent in 24 of the 72 ways to lay them on a 3×3; the second is then on the right side of the
    # first, and turned rightly, with chance 1/4 each.
    assert neighbours == pytest.approx(100 * (24 / 72) / 16, abs=0.6)


def turned(axis: str, degrees: float, count: int = 1) -> torch.Tensor:
    matrix = torch.from_numpy(Rotation.from_euler(axis, degrees, degrees=True).as_matrix()).float()
    return matrix.repeat(count, 1, 1)


def standing(rotation: torch.Tensor, translation: torch.Tensor | None = None) -> Poses:
    return Poses(rotation, torch.zeros(len(rotation), 3) if translation is None else translation)


def random_poses(count: int, seed: int = 0) -> Poses:
    draw = generator(seed)
    return Poses(random_rotations(count, draw), torch.randn(count, 3, generator=draw))


def test_euler_angles_are_those_of_scipy() -> None:
    rotation = random_rotations(500, generator())
    expected = torch.from_numpy(Rotation.from_matrix(rotation.double().numpy()).as_euler("xyz", degrees=True))
    # Single precision is blind to parts of a hundredth of a degree near y = ±90°.
    assert torch.allclose(euler_angles(rotation), expected, atol=0.02)


@pytest.mark.parametrize(("axis", "column"), [("x", 0), ("y", 1), ("z", 2)])
@pytest.mark.parametrize("degrees", [-80.0, -1.0, 0.0, 30.0, 89.0])
def test_a_turn_about_one_axis_is_one_angle(axis: str, column: int, degrees: float) -> None:
    angles = euler_angles(turned(axis, degrees))[0]
    expected = torch.zeros(3, dtype=torch.double)
    expected[column] = degrees
    assert torch.allclose(angles, expected, atol=1e-4)
    error = float(euler_error(standing(turned(axis, degrees)), Poses.identity(1, 3)))
    assert error == pytest.approx(abs(degrees) / math.sqrt(3), abs=1e-4)
    # Angles differ the short way round.
    around = euler_error(standing(turned("z", 175.0)), standing(turned("z", -175.0)))
    assert float(around) == pytest.approx(10 / math.sqrt(3), abs=1e-4)


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


def test_a_piece_is_right_within_a_tenth_of_a_root() -> None:
    # A lone point, moved by d, is 2 d² away from where it belongs: right while d < √0.005.
    points = torch.zeros(3, 4, 3)
    moved = torch.tensor([[0.0, 0.0, 0.0], [0.0702, 0.0, 0.0], [0.0, 0.0, 0.0713]])
    answer = standing(turned("x", 0.0, 3), moved)
    assert torch.allclose(translation_error(answer, Poses.identity(3, 3)).float(), moved.norm(dim=1) / 3**0.5)
    chamfer = piece_chamfer(points, answer, Poses.identity(3, 3))
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


def test_sizes_are_shares_of_the_area_or_of_what_points_span() -> None:
    corner = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    face = torch.tensor([[0, 1, 2]])
    points = torch.stack([corner, 2 * corner])
    meshes = Mesh(corner, face), Mesh(2 * corner, face)
    pieces = FragmentPieces(points, meshes, torch.zeros(2, 3))
    assert piece_sizes(pieces).tolist() == pytest.approx([0.2, 0.8])
    clouds = tuple(Mesh(mesh.vertices, face[:0]) for mesh in meshes)
    assert piece_sizes(FragmentPieces(points, clouds, torch.zeros(2, 3))).tolist() == pytest.approx([0.2, 0.8])


def test_wilson_intervals_by_hand() -> None:
    assert wilson_interval(9, 10) == pytest.approx((59.585, 98.212), abs=0.01)
    assert wilson_interval(0, 10) == pytest.approx((0.0, 27.753), abs=0.01)
    assert wilson_interval(200, 200) == pytest.approx((98.115, 100.0), abs=0.01)


def test_bootstrap_intervals_are_near_the_normal_ones_and_repeat() -> None:
    assert bootstrap_intervals(np.full((20, 1), 80.0)).tolist() == [[80.0], [80.0]]
    values = np.random.default_rng(1).normal(70, 10, size=(400, 1))
    low, high = bootstrap_intervals(values)[:, 0]
    half = 1.96 * values.std() / np.sqrt(400)
    assert low == pytest.approx(values.mean() - half, abs=0.25)
    assert high == pytest.approx(values.mean() + half, abs=0.25)
    assert bootstrap_intervals(values[::-1]).tolist() == [[low], [high]]


def test_classes_count_alike_whatever_is_drawn() -> None:
    values, classes = np.array([[1.0], [3.0], [10.0]]), ["a", "a", "b"]
    assert class_means(values, classes).tolist() == [6.0]
    counts = np.array([[1.0, 1.0, 1.0], [0.0, 3.0, 0.0], [2.0, 0.0, 1.0]])
    assert class_means(values, classes, counts).tolist() == [[6.0], [3.0], [5.5]]


def test_pairs_on_a_board_by_hand() -> None:
    # 0 1 / 2 3 → 1 0 / 2 3: of six pairs only that of 2 and 3 is right.
    zero = torch.zeros(4, dtype=torch.long)
    same = board_pairs_agree(Board(2, 2), torch.tensor([1, 0, 2, 3]), zero, torch.arange(4), zero)
    assert same.triu(1).nonzero().tolist() == [[2, 3]]
    # Shifted by a column, all are.
    cells, true = torch.tensor([1, 2, 4, 5]), torch.tensor([0, 1, 3, 4])
    assert board_pairs_agree(Board(3, 3), cells, zero, true, zero).all()


def test_flat_pairs_by_hand() -> None:
    width, still = torch.full((3,), 10.0), torch.eye(2).repeat(3, 1, 1)
    truth = Poses(still, torch.tensor([[0.0, 0.0], [10.0, 0.0], [100.0, 0.0]]))

    def wrong(places: list[list[float]], degrees: tuple[float, float, float] = (0, 0, 0)) -> list[list[int]]:
        answer = Poses(plane_rotations(torch.tensor(degrees).deg2rad()), torch.tensor(places))
        return (~flat_pairs_agree(width, answer, truth)).triu(1).nonzero().tolist()

    assert wrong([[5.0, 5.0], [5.0, 15.0], [5.0, 105.0]], (90, 90, 90)) == []
    # 4 px more between pieces are 2 px for either of them, 6 px are 3 and too much.
    assert wrong([[0.0, 0.0], [14.0, 0.0], [104.0, 0.0]]) == []
    assert wrong([[0.0, 0.0], [16.0, 0.0], [106.0, 0.0]]) == [[0, 1], [0, 2]]
    # A piece that is turned by 6° is wrong with every other; one that lies on the other side, too.
    assert wrong([[0.0, 0.0], [10.0, 0.0], [100.0, 0.0]], (6, 0, 0)) == [[0, 1], [0, 2]]
    assert wrong([[0.0, 0.0], [-10.0, 0.0], [100.0, 0.0]]) == [[0, 1], [1, 2]]


def test_fragment_pairs_by_hand() -> None:
    points = torch.randn(3, 200, 3, generator=generator()) / 10
    truth = Poses(random_rotations(3, generator(1)), torch.eye(3))
    turn = random_rotations(1, generator(2)).expand(3, 3, 3)
    away = Poses(turn, torch.ones(3, 3)) @ truth
    assert fragment_pairs_agree(points, away, truth).all()
    shift = away.translation + torch.tensor([[0.0], [0.0], [1.0]]) * torch.tensor([0.3, 0.0, 0.0])
    same = fragment_pairs_agree(points, Poses(away.rotation, shift), truth)
    assert (~same).triu(1).nonzero().tolist() == [[0, 2], [1, 2]]
    assert torch.equal(same, same.mT)
