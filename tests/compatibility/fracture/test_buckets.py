"""Buckets find what comparing everything with everything finds."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.spatial import nearest_within, sort_points, thin


def cloud(seed: int, count: int = 400) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 3)).astype(np.float32)


def test_every_point_is_in_one_bucket() -> None:
    start, order, cubes = sort_points(cloud(0), 0.1)
    assert start[-1] == 400
    assert sorted(order) == list(range(400))
    assert (cubes == np.floor(cloud(0) / 0.1)).all()


def test_thinned_points_keep_their_distance_and_leave_no_gap() -> None:
    points = cloud(1)
    kept = points[thin(points, 0.2)]
    far = np.linalg.norm(kept[:, None] - kept, axis=-1) + 9 * np.eye(len(kept))
    assert far.min() >= 0.2
    assert np.linalg.norm(points[:, None] - kept, axis=-1).min(1).max() < 0.2


def test_the_nearest_point_is_found_or_none_is_near() -> None:
    queries, points = cloud(2), cloud(3, 60)
    far = np.linalg.norm(queries[:, None] - points, axis=-1)
    expected = np.where(far.min(1) < 0.15, far.argmin(1), -1)
    assert (nearest_within(queries, points, 0.15) == expected).all()
