"""The search finds the true pose, the same for the same seed, and true matches are the most probable."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffassemble.core import Mesh, Puzzle
from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, close, compose, inverse, pose_rows, transformed
from diffassemble.fragments.matches import (
    PairSearch,
    find_matches,
    level_for,
    match_clusters,
    prepare,
    reverify,
)
from diffassemble.fragments.model import MATCH_FEATURES, FractureModels
from diffassemble.fragments.pair_search import QUICK, Effort, Sides, distinct, partners_of, proposed, rating, search
from diffassemble.fragments.verification import contact_of_bodies, match_features, seams, verify


@pytest.fixture
def sides(clusters: tuple[Cluster, Cluster]) -> Sides:
    """The breaks of both halves, and their spacing."""
    own, other = clusters[0].side(0), clusters[1].side(0)
    assert own is not None
    assert other is not None
    return Sides(own, other, clusters[0].fragments[0].spacing)


def test_partners_are_neither_near_nor_far_or_missing() -> None:
    points = np.random.default_rng(0).random((200, 3), np.float32)
    points[0] += 50
    others = partners_of(points, 0.3, 0.6, 5, np.random.default_rng(11))
    far = np.linalg.norm(points[:, None] - points[others], axis=-1)
    alone = others == np.arange(len(points))[:, None]
    assert alone[0].all()
    assert alone.mean() < 0.1
    assert ((far > 0.3) & (far < 0.6))[~alone].all()


def test_the_true_pose_is_among_the_best_proposals(sides: Sides, true_pose: np.ndarray) -> None:
    own, spacing = sides.own, sides.spacing
    poses, scores, chosen = proposed(sides, QUICK, np.random.default_rng(0))
    kept, votes = distinct(poses, scores, own.points, 10.0, 4.0, spacing, 80)
    assert len(poses) == len(chosen) == len(scores) >= votes.sum()
    assert any(close(pose, true_pose, own.points.mean(0), 10.0, 4 * spacing) for pose in poses[kept[:3]])


def test_the_first_candidate_is_the_true_pose(sides: Sides, true_pose: np.ndarray) -> None:
    own, spacing = sides.own, sides.spacing
    poses, votes = search(sides, Effort(), 3)
    assert close(poses[0], true_pose, own.points.mean(0), 1.0, spacing)
    assert len(votes) == len(poses) <= Effort.kept
    assert rating(true_pose[None], sides)[0] > 0.5 * len(own.points)
    assert np.array_equal(search(sides, Effort(), 3)[0], poses)


def test_poses_alike_are_counted_as_votes(true_pose: np.ndarray) -> None:
    poses = np.stack([true_pose, true_pose, true_pose + np.array([0] * 9 + [0.5, 0, 0])])
    kept, votes = distinct(poses, np.array([1.0, 2.0, 0.5]), np.zeros((1, 3), np.float32), 5.0, 0.1, 1.0, 9)
    assert list(kept) == [1, 2]
    assert list(votes) == [2, 1]


def test_a_true_match_has_more_contact_and_less_overlap(sides: Sides, true_pose: np.ndarray) -> None:
    spacing = sides.spacing
    true = match_features(*seams(true_pose, sides), 0, 5, 2.0)
    deeper = true_pose + np.concatenate([np.zeros(9), 12 * spacing * np.ones(3)])
    false = match_features(*seams(deeper, sides), 0, 5, 2.0)
    assert true.shape == (MATCH_FEATURES,)
    assert np.isfinite(true).all()
    assert np.isfinite(false).all()
    assert true[0] > false[0]
    assert true[4] > 0.5 > false[4]


def test_contact_of_breaks_differs_from_contact_of_what_is_intact(
    clusters: tuple[Cluster, Cluster], true_pose: np.ndarray, broken: Puzzle
) -> None:
    assert broken.truth is not None
    bodies = []
    for cluster, pose in zip(clusters, pose_rows(broken.truth), strict=True):
        outside = np.abs(transformed(pose, cluster.body.points)) > np.array([0.5, 0.4, 0.25]) - 1e-4
        bodies.append(cluster.body._replace(broken=~outside.any(1)))
    first, second = bodies
    breaks, mixed, intact = contact_of_bodies(true_pose, first, second)
    assert breaks > 50 * (intact + mixed)
    upright = broken.truth.rotation[0].double().numpy()
    above = np.concatenate([np.eye(3).ravel(), upright.T @ np.array([0, 0, 0.5])])  # as high as the block is thick
    breaks, mixed, intact = contact_of_bodies(above, first, first)
    assert intact > 10 * (breaks + mixed)


def test_the_true_match_is_the_most_probable(
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
    again = reverify(first, second, matches, models)
    assert np.allclose(again[0].pose, matches[0].pose, atol=0.01)


def test_matches_hold_in_both_directions(
    broken: Puzzle, clusters: tuple[Cluster, Cluster], models: FractureModels
) -> None:
    search = PairSearch(clusters[0].fragments, models)
    assert len(find_matches(search, budget=-1.0)) == 0, "no time gives no matches"
    matches = find_matches(search)
    assert broken.truth is not None
    for direction in (0, 1):
        rows = (matches.first == direction).nonzero()[:, 0]
        best = rows[matches.probability[rows].argmax()][None]
        implied = broken.truth[matches.second[best]] @ matches.pose[best]
        true = broken.truth[matches.first[best]]
        cosine = ((implied.rotation * true.rotation).sum() - 1) / 2
        assert torch.rad2deg(torch.arccos(cosine.clamp(-1, 1))) < 1.5
        assert (implied.translation - true.translation).norm() < 0.01
    assert matches.evidence.min() >= 0
    assert matches.evidence.max() <= 1


def test_what_can_slide_is_never_sure(models: FractureModels) -> None:
    """Two halves of a block, sawn: planes lie on planes, whether the rims meet or not."""
    generator = torch.Generator().manual_seed(0)
    block = Mesh(
        torch.tensor([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]),
        torch.tensor([[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
                      [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]),
    )  # fmt: skip
    sawn = scatter(fracture(block, 2, generator, roughness=0.0), generator)
    assert sawn.truth is not None
    fragments = prepare(sawn.fragments, models, 0)
    own, other = (Cluster(fragments, {piece: IDENTITY}).side(1) for piece in (0, 1))
    assert own is not None
    assert other is not None
    spacing = fragments[0].spacing / 2
    first, second = pose_rows(sawn.truth)
    right = compose(inverse(second), first)
    # The truth, and the same moved by a quarter of the block along the cut.
    cut = np.linalg.svd(own.points - own.points.mean(0))[2][0] @ right[:9].reshape(3, 3).T
    slid = right.copy()
    slid[9:] += 0.25 * cut
    for match in verify(np.stack([right, slid]), np.array([9, 9]), Sides(own, other, spacing), 1, models):
        if np.allclose(match.pose, slid):
            assert match.slides or match.probability < 0.1
        assert match.probability < 0.61 or not match.slides
