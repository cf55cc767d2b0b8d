"""Members that stand a little wrong settle where their breaks meet; what is held stays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from diffassemble.fragments.assembly_state import polished
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY


@pytest.fixture
def shaken(clusters: tuple[Cluster, Cluster], true_pose: np.ndarray) -> Cluster:
    """Both halves, the first one degree and half a spacing off."""
    turn = Rotation.from_rotvec(np.radians([0.6, -0.6, 0.5])).as_matrix()
    wrong = np.concatenate([(turn @ true_pose[:9].reshape(3, 3)).ravel(), true_pose[9:]])
    wrong[9:] += 0.3 * clusters[0].fragments[0].spacing
    return Cluster(clusters[0].fragments, {0: wrong, 1: IDENTITY})


def degrees(pose: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.degrees(np.arccos(np.clip(((pose[:9] * wanted[:9]).sum() - 1) / 2, -1, 1))))


def test_breaks_come_to_lie_on_each_other(shaken: Cluster, true_pose: np.ndarray) -> None:
    settled = polished(shaken, {1})
    assert degrees(settled.poses[0], true_pose) < 0.35 * degrees(shaken.poses[0], true_pose)
    assert np.array_equal(settled.poses[1], IDENTITY)


def test_nothing_moves_where_all_is_held(shaken: Cluster) -> None:
    assert polished(shaken, {0, 1}) is shaken


def test_pieces_far_apart_stay(clusters: tuple[Cluster, Cluster]) -> None:
    far = IDENTITY + np.eye(12)[9] * 50
    apart = polished(Cluster(clusters[0].fragments, {0: far, 1: IDENTITY}), {1})
    assert apart.poses[0] == pytest.approx(far)
