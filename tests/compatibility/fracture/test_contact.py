"""How surfaces meet under a pose."""

from __future__ import annotations

import numpy as np
import pytest
import roma

from diffassemble.fragments.contact import count_buried, count_touching, inverse, meet, place, turn
from diffassemble.fragments.spatial import voxelise
from diffassemble.fragments.surface import Sample

IDENTITY = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])


def some_pose() -> np.ndarray:
    turned = roma.rotvec_to_rotmat(roma.unitquat_to_rotvec(roma.random_unitquat(1)))[0].double().numpy()
    return np.concatenate([turned.ravel(), [0.1, -0.2, 0.3]])


def test_a_pose_is_undone() -> None:
    pose, point = some_pose(), np.array([0.3, 0.5, -0.7])
    assert np.allclose(place(inverse(pose), np.array(place(pose, point))), point)
    assert np.linalg.norm(turn(pose, point)) == pytest.approx(np.linalg.norm(point))


def test_a_ball_touches_its_mould(ball: Sample) -> None:
    mould = voxelise(ball.points, 0.06)
    far = (0.13, 0.07, -0.5)
    assert count_touching(IDENTITY, ball.points, -ball.normals, mould, ball.points, ball.normals, *far) == len(ball)
    assert count_touching(IDENTITY, ball.points, ball.normals, mould, ball.points, ball.normals, *far) == 0
    near, numbers = meet(IDENTITY, ball.points, -ball.normals, mould, ball.points, ball.normals)
    assert (near >= 0).all()
    assert numbers[:, 2] == pytest.approx(-np.ones(len(ball)), abs=0.02)


def test_only_what_is_deep_enough_is_buried(ball: Sample) -> None:
    mould = voxelise(ball.points, 0.06)
    for size, expected in ((0.5, 1.0), (0.9, 1.0), (1.0, 0.0), (1.2, 0.0), (3.0, 0.0)):
        share = (
            count_buried(IDENTITY, ball.points[::10] * np.float32(size), 1, mould, ball.points, ball.normals, 0.05)
            / 350
        )
        assert share == pytest.approx(expected, abs=0.03)
