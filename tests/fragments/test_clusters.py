"""Fragments find where they broke; joined ones lose the seams between them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffassemble.core import Mesh
from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.contact import IDENTITY, compose, inverse, pose_rows
from diffassemble.fragments.matches import prepare
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


def test_joining_true_matches_leaves_hardly_any_break(clusters: tuple[Cluster, Cluster], true_pose: np.ndarray) -> None:
    first, second = clusters
    whole = first.with_other(second, true_pose)
    assert whole.members == (0, 1)
    apart = len(first.fracture(0).points) + len(second.fracture(0).points)
    assert len(whole.fracture(0).points) < 0.5 * apart
    assert len(whole.body.points) < len(first.body.points) + len(second.body.points)


def test_a_cluster_that_grew_has_the_same_breaks_open_as_one_made_at_once(block: Mesh, models: FractureModels) -> None:
    generator = torch.Generator().manual_seed(2)
    puzzle = scatter(fracture(block, 3, generator), generator)
    assert puzzle.truth is not None
    fragments, truth = prepare(puzzle.fragments, models, 0), pose_rows(puzzle.truth)
    single = [Cluster(fragments, {piece: IDENTITY}) for piece in range(3)]
    both = single[0].with_other(single[1], compose(inverse(truth[1]), truth[0]))
    assert both.side(0) is not None, "what the halves know of themselves is used below"
    grown = single[2].with_other(both, compose(inverse(truth[1]), truth[2]))
    whole = Cluster(fragments, grown.poses)
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
