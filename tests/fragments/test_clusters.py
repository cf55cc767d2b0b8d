"""Fragments find where they broke; joined ones lose the seams between them and settle together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from diffassemble.core import Mesh
from diffassemble.fragments.assembly_state import polished
from diffassemble.fragments.clusters import Cluster, Fragment, free_points
from diffassemble.fragments.contact import IDENTITY, compose, inverse
from diffassemble.fragments.model import FractureModels


def test_the_break_is_found_on_an_object_never_seen(halves: list[Mesh], models: FractureModels) -> None:
    half = Fragment(halves[0], 0.01, models, 0)
    whole = half.pyramid.levels[0]
    outer = np.abs(np.abs(whole.points) - [0.5, 0.4, 0.25]).min(1) < 1e-4
    found = half.broken(0)
    assert (found == ~outer).mean() > 0.85
    assert half.area == pytest.approx(len(whole) * whole.area, rel=1e-4)


def test_finer_levels_look_near_the_break_only(halves: list[Mesh], models: FractureModels) -> None:
    half = Fragment(halves[0], 0.015, models, 0)
    coarse, fine = half.fracture(0), half.fracture(1)
    assert len(fine.points) > 2 * len(coarse.points)
    assert half.fracture(1) is fine
    assert np.allclose(np.linalg.norm(fine.descriptors, axis=1), 1, atol=1e-4)


def test_a_fragment_too_small_for_its_level_has_no_break(models: FractureModels) -> None:
    triangle = Mesh(torch.eye(3), torch.tensor([[0, 1, 2]]))
    assert len(Fragment(triangle, 0.5, models, 0).fracture(0).points) < 30


def test_the_surroundings_of_the_break_at_any_spacing(halves: list[Mesh], models: FractureModels) -> None:
    half = Fragment(halves[0], 0.015, models, 0)
    near = half.near_break(0.01)
    broken = half.pyramid.levels[0].points[half.suspects[0]]
    far = np.linalg.norm(near.points[::50, None] - broken, axis=2).min(1)
    assert far.max() <= 2.1 * half.spacing
    assert half.near_break(0.01) is near
    chip = Fragment(halves[0], 0.2, models, 0)
    assert np.allclose(np.ptp(chip.near_break(0.02).points, 0), np.ptp(halves[0].vertices.numpy(), 0), atol=0.05)


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
    free = free_points([here, there], [up, down], 0.1, -0.5, [0, 1], [None, None])
    assert [list(part) for part in free] == [[False, True], [False, True]]


def test_a_cluster_that_grew_has_the_same_breaks_open_as_one_made_at_once(
    standing: tuple[Cluster, Fragment, np.ndarray],
) -> None:
    halves, _, place = standing
    single = [Cluster(halves.fragments, {piece: IDENTITY}) for piece in range(3)]
    pose = compose(inverse(halves.poses[1]), halves.poses[0])
    both = single[0].with_other(single[1], pose)
    assert both.side(0) is not None, "what the halves know of themselves is used below"
    grown = single[2].with_other(both, compose(inverse(halves.poses[1]), place))
    whole = Cluster(halves.fragments, grown.poses)
    assert np.array_equal(grown.fracture(0).points, whole.fracture(0).points)
    assert np.array_equal(grown.body.points, whole.body.points)
    assert len(grown.body.points) < len(both.body.points) + len(single[2].body.points)
    before = grown.side(0)
    grown.release()
    after = grown.side(0)
    assert before is not None
    assert after is not None
    assert after is not before
    assert np.array_equal(after.points, before.points)
    assert np.array_equal(after.probe, before.probe)


@pytest.fixture
def shaken(clusters: tuple[Cluster, Cluster], true_pose: np.ndarray) -> Cluster:
    """Both halves, the first one degree and half a spacing off."""
    turn = Rotation.from_rotvec(np.radians([0.6, -0.6, 0.5])).as_matrix()
    wrong = np.concatenate([(turn @ true_pose[:9].reshape(3, 3)).ravel(), true_pose[9:]])
    wrong[9:] += 0.3 * clusters[0].fragments[0].spacing
    return Cluster(clusters[0].fragments, {0: wrong, 1: IDENTITY})


def degrees(pose: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.degrees(np.arccos(np.clip(((pose[:9] * wanted[:9]).sum() - 1) / 2, -1, 1))))


def test_breaks_come_to_lie_on_each_other_unless_all_is_held(shaken: Cluster, true_pose: np.ndarray) -> None:
    assert polished(shaken, {0, 1}) is shaken
    settled = polished(shaken, {1})
    assert degrees(settled.poses[0], true_pose) < 0.35 * degrees(shaken.poses[0], true_pose)
    assert np.array_equal(settled.poses[1], IDENTITY)


def test_pieces_far_apart_stay(clusters: tuple[Cluster, Cluster]) -> None:
    far = IDENTITY + np.eye(12)[9] * 50
    apart = polished(Cluster(clusters[0].fragments, {0: far, 1: IDENTITY}), {1})
    assert apart.poses[0] == pytest.approx(far)
