"""Joined fragments lose the seams between them."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.clusters import Cluster, free_points
from diffassemble.fragments.contact import IDENTITY, compose, inverse


def test_composition_undoes_itself(true_pose: np.ndarray) -> None:
    assert np.allclose(compose(inverse(true_pose), true_pose), IDENTITY, atol=1e-6)
    assert np.allclose(compose(true_pose, IDENTITY), true_pose)


def test_joining_true_matches_leaves_hardly_any_break(clusters: tuple[Cluster, Cluster], true_pose: np.ndarray) -> None:
    first, second = clusters
    whole = first.with_other(second, true_pose)
    assert whole.members == (0, 1)
    apart = len(first.fracture(0).points) + len(second.fracture(0).points)
    assert len(whole.fracture(0).points) < 0.5 * apart
    assert len(whole.body.points) < len(first.body.points) + len(second.body.points)


def test_points_are_free_unless_another_faces_them() -> None:
    here = np.array([[0, 0, 0], [1, 0, 0]], np.float32)
    there = np.array([[0, 0, 0.01], [1, 0, 0.01]], np.float32)
    up = np.array([[0, 0, 1], [0, 0, 1]], np.float32)
    down = np.array([[0, 0, -1], [0, 0, 1]], np.float32)
    free = free_points([here, there], [up, down], 0.1, -0.5)
    assert [list(part) for part in free] == [[False, True], [False, True]]
