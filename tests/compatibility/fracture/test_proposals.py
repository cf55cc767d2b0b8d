"""Pairs of points against pairs of points give poses near the true one."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.pair_search import company, correspondences, surroundings
from diffassemble.fragments.proposals import propose


def test_the_best_proposal_is_near_the_truth(clusters: tuple[Cluster, Cluster], true_pose: np.ndarray) -> None:
    own, other = clusters[0].side(0), clusters[1].side(0)
    assert own is not None
    assert other is not None
    chance = np.random.default_rng(0)
    keys = chance.permutation(len(own.points))[:300]
    spacing = clusters[0].fragments[0].spacing
    matches, table = correspondences(own.surface, other.surface, keys, 20, chance)
    trial = chance.permutation(len(own.points))[:250]
    shortest = 5 * spacing
    others, around = company(own.points[keys], shortest, spacing, chance), surroundings(own.points, keys)
    poses, scores = propose(
        own.surface, own.probe, other.surface, other.voxels, other.body,
        keys, matches, table, others, around, trial, spacing, 200_000, 500, shortest, 7,
    )  # fmt: skip
    best = poses[scores.argmax()]
    assert np.allclose(best[:9].reshape(3, 3) @ best[:9].reshape(3, 3).T, np.eye(3), atol=1e-5)
    assert ((best[:9] * true_pose[:9]).sum() - 1) / 2 > np.cos(np.radians(12))
