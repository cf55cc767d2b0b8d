"""How surfaces meet under a pose, and the pose at which they coincide."""

from __future__ import annotations

import numpy as np
import pytest
import roma
import torch

from diffassemble.fragments.contact import IDENTITY, Contact, Touch, buried_share, compose, inverse, refine
from diffassemble.fragments.spatial import voxelise
from diffassemble.fragments.surface import Sample


def test_a_pose_is_undone() -> None:
    pose = np.concatenate([roma.random_rotmat(1)[0].double().numpy().ravel(), [0.1, -0.2, 0.3]])
    assert np.allclose(compose(inverse(pose), pose), IDENTITY, atol=1e-6)
    assert np.allclose(compose(pose, IDENTITY), pose)


def test_a_ball_touches_its_mould(ball: Sample) -> None:
    target = voxelise(ball.points, 0.06), ball.points, ball.normals
    facing = Contact.of(IDENTITY, ball.points, -ball.normals, target, 0.06)
    assert facing.touching(Touch(2.2, 1.2, -0.5)).all()
    assert facing.facing == pytest.approx(-np.ones(len(ball)), abs=0.02)
    assert not Contact.of(IDENTITY, ball.points, ball.normals, target, 0.06).touching(Touch(2.2, 1.2, -0.5)).any()
    # Many poses at once, each with points of its own.
    poses, rows = np.stack([IDENTITY, IDENTITY + np.eye(12)[9]]), np.array([[5, 9], [7, 8]])
    some = Contact.of(poses, ball.points, -ball.normals, target, 0.06, rows)
    assert np.array_equal(some.near[0], facing.near[[5, 9]])
    assert some.near.shape == (2, 2)


def test_only_what_is_deep_enough_is_buried(ball: Sample) -> None:
    target = voxelise(ball.points, 0.06), ball.points, ball.normals
    for size, expected in ((0.5, 1.0), (0.9, 1.0), (1.0, 0.0), (1.2, 0.0), (3.0, 0.0)):
        probe = ball.points[::10] * np.float32(size)
        assert buried_share(IDENTITY, probe, target, 0.06, 0.8) == pytest.approx(expected, abs=0.03)


def bumpy(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    flat = np.random.default_rng(seed).random((count, 2)) * 2 - 1
    x, y = flat.T
    points = np.stack([x, y, 0.3 * np.sin(3 * x) * np.cos(4 * y)], 1)
    slope = np.stack([-0.9 * np.cos(3 * x) * np.cos(4 * y), 1.2 * np.sin(3 * x) * np.sin(4 * y), np.ones(count)], 1)
    return points.astype(np.float32), (slope / np.linalg.norm(slope, axis=1, keepdims=True)).astype(np.float32)


def test_a_shifted_and_turned_sheet_slides_home() -> None:
    points, normals = bumpy(6000, 0)
    own, facing = bumpy(900, 1)
    turn = roma.rotvec_to_rotmat(torch.tensor([0.03, -0.02, 0.04])).double().numpy()
    start = np.concatenate([turn.ravel(), [0.03, -0.02, 0.02]])
    found = refine(start, own, -facing, (voxelise(points, 0.04, False), points, normals), (0.1, 0.05), 12)
    assert np.degrees(np.arccos(np.clip((found[[0, 4, 8]].sum() - 1) / 2, -1, 1))) < 0.3
    assert np.abs(found[9:]).max() < 0.004


def test_far_from_everything_the_pose_stays() -> None:
    points, normals = bumpy(600, 0)
    away = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 9, 9, 9])
    target = voxelise(points, 0.1, False), points, normals
    assert (refine(away, points, -normals, target, (0.2, 0.1), 5) == away).all()
