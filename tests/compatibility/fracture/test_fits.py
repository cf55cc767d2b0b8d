"""Matches carry the probability that they are true."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, compose
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import Effort
from diffassemble.fragments.verification import level_for, match_clusters, review


def test_the_true_fit_is_the_most_probable(
    clusters: tuple[Cluster, Cluster], true_pose: np.ndarray, models: FractureModels
) -> None:
    first, second = clusters
    level = level_for(first, second)
    matches = match_clusters(first, second, level, Effort(), models, 1)
    assert matches[0].probability > 0.5
    assert np.allclose(matches[0].pose[:9], true_pose[:9], atol=0.02)
    assert np.allclose(compose(matches[0].reversed().pose, matches[0].pose), IDENTITY, atol=1e-6)
    swapped = match_clusters(second, first, level, Effort(), models, 1)
    assert np.allclose(swapped[0].reversed().pose, matches[0].pose, atol=0.02)
    again = review(first, second, matches, models)
    assert np.allclose(again[0].pose, matches[0].pose, atol=0.01)
