"""The search finds the true pose, the same for the same seed."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.pair_search import Effort, distinct, rating, search


def test_the_first_candidate_is_the_true_pose(clusters: tuple[Cluster, Cluster], true_pose: np.ndarray) -> None:
    own, other = clusters[0].side(0), clusters[1].side(0)
    assert own is not None
    assert other is not None
    spacing = clusters[0].fragments[0].spacing
    found = search(own, other, spacing, Effort(), 3)
    cosine = ((found.poses[0, :9] * true_pose[:9]).sum() - 1) / 2
    assert np.degrees(np.arccos(min(1, cosine))) < 1
    assert rating(true_pose, own, other, spacing) > 0.5 * len(own.points)
    again = search(own, other, spacing, Effort(), 3)
    assert np.array_equal(found.poses, again.poses)


def test_poses_alike_are_counted_as_votes(clusters: tuple[Cluster, Cluster], true_pose: np.ndarray) -> None:
    side = clusters[0].side(0)
    assert side is not None
    poses = np.stack([true_pose, true_pose, true_pose + np.array([0] * 9 + [0.5, 0, 0])])
    kept, votes = distinct(poses, np.array([1.0, 2.0, 0.5]), side.points, 5.0, 0.1, 9)
    assert list(kept) == [1, 2]
    assert list(votes) == [2, 1]
