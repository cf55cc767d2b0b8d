"""The search finds the true pose, the same for the same seed, and true matches are the most probable."""

from __future__ import annotations

import numpy as np
import torch

from diffassemble.core import Puzzle
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, compose
from diffassemble.fragments.matches import find_matches, prepare
from diffassemble.fragments.model import MATCH_FEATURES, FractureModels
from diffassemble.fragments.pair_search import Effort, company, correspondences, distinct, rating, search, surroundings
from diffassemble.fragments.proposals import propose, propose_everywhere
from diffassemble.fragments.verification import level_for, match_clusters, match_features, review


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


def test_a_true_match_has_more_contact_and_less_overlap(
    clusters: tuple[Cluster, Cluster], true_pose: np.ndarray
) -> None:
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
    again = review(first, second, matches, models)
    assert np.allclose(again[0].pose, matches[0].pose, atol=0.01)


def test_if_the_second_stands_at_its_place_so_does_the_first(broken: Puzzle, models: FractureModels) -> None:
    matches = find_matches(broken, models, torch.Generator().manual_seed(0))
    assert broken.truth is not None
    for direction in (0, 1):
        rows = (matches.first == direction).nonzero()[:, 0]
        best = rows[matches.weight[rows].argmax()][None]
        implied = broken.truth[matches.second[best]] @ matches.relative[best]
        true = broken.truth[matches.first[best]]
        cosine = ((implied.rotation * true.rotation).sum() - 1) / 2
        assert torch.rad2deg(torch.arccos(cosine.clamp(-1, 1))) < 1.5
        assert (implied.translation - true.translation).norm() < 0.01
    assert matches.evidence.min() >= 0
    assert matches.evidence.max() <= 1


def test_no_time_gives_no_matches(broken: Puzzle, models: FractureModels) -> None:
    assert len(find_matches(broken, models, torch.Generator().manual_seed(0), budget=-1.0)) == 0


def test_what_is_drawn_depends_on_the_seed_only(broken: Puzzle, models: FractureModels) -> None:
    one, two = prepare(broken.fragments, models, 4), prepare(broken.fragments, models, 4)
    assert (one[0].pyramid.levels[0].points == two[0].pyramid.levels[0].points).all()
