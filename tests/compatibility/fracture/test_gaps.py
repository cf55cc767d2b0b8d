"""Gaps are where something broke out, not where breaks lie on each other."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.gap_insertion import find_gaps


def test_a_hole_in_the_seam_invites(standing: tuple[Cluster, Fragment, np.ndarray]) -> None:
    whole, chip, truth = standing
    gaps = find_gaps(whole, chip.spacing / 3)
    inviting = gaps.inviting(0.03)
    assert not (inviting & ~gaps.bare).any()
    away = np.linalg.norm(gaps.points - truth[9:].astype(np.float32), axis=1)
    assert (away[inviting] < 0.12).sum() > 50
    # Beside the hole the seam is closed, and the outside of the block is no pit.
    assert (away[inviting] < 0.12).mean() > 5 * (away < 0.12).mean()


def test_closed_seams_are_covered(standing: tuple[Cluster, Fragment, np.ndarray]) -> None:
    whole, chip, truth = standing
    gaps = find_gaps(whole, chip.spacing / 3)
    first, second = (whole.fragments[piece].fracture(0).moved(whole.poses[piece]) for piece in (0, 1))
    from scipy.spatial import cKDTree

    seam = cKDTree(second.points).query(first.points, 1)[0] < 0.5 * chip.spacing
    inner = first.points[seam & (first.rim > 3) & (np.linalg.norm(first.points - truth[9:], axis=1) > 0.15)]
    near = cKDTree(gaps.points).query(inner, 1)[1]
    assert gaps.bare[near].mean() < 0.1
