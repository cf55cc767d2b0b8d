"""The numbers of a match tell true from false."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.model import MATCH_FEATURES
from diffassemble.fragments.verification import match_features


def test_a_true_fit_has_more_contact_and_less_overlap(clusters: tuple[Cluster, Cluster], true_pose: np.ndarray) -> None:
    own, other = clusters[0].side(0), clusters[1].side(0)
    assert own is not None
    assert other is not None
    spacing = clusters[0].fragments[0].spacing
    true = match_features(true_pose, own, other, spacing, 0, 5, 2.0)
    deeper = true_pose + np.concatenate([np.zeros(9), 12 * spacing * np.ones(3)])
    false = match_features(deeper, own, other, spacing, 0, 5, 2.0)
    assert true.shape == (MATCH_FEATURES,)
    assert np.isfinite(true).all()
    assert np.isfinite(false).all()
    assert true[0] > false[0]
    assert true[4] > 0.5 > false[4]
