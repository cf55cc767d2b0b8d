"""Trying all places finds the true one without any descriptor."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.proposals import propose_everywhere


def test_the_best_place_is_the_true_one(clusters: tuple[Cluster, Cluster], true_pose: np.ndarray) -> None:
    own, other = clusters[0].side(0), clusters[1].side(0)
    assert own is not None
    assert other is not None
    chance = np.random.default_rng(0)
    tried = chance.permutation(len(own.points))
    places = chance.permutation(len(other.points))[:2000]
    spacing = 3 * clusters[0].fragments[0].spacing  # tolerant, since turns and places are coarse
    poses, scores = propose_everywhere(
        own.surface, own.probe, other.surface, other.voxels, other.body,
        tried[:12], tried[:60], places, spacing, 36, 50, 0.45,
    )  # fmt: skip
    best = poses[np.argsort(-scores)[:50]]
    cosine = ((best[:, :9] * true_pose[:9]).sum(1) - 1) / 2
    assert np.degrees(np.arccos(np.clip(cosine.max(), -1, 1))) < 15
