"""The table joins the surest match first and keeps account of how sure each place is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from manifold3d import Manifold

from diffassemble.fragments.assembly_state import AssemblyState
from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.contact import IDENTITY, Pose, compose, inverse
from diffassemble.fragments.gap_insertion import INSERTED
from diffassemble.fragments.matches import prepare
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.solids import mesh_of
from diffassemble.fragments.verification import Match


@pytest.fixture(scope="module")
def models() -> FractureModels:
    return FractureModels.from_pretrained("fracture-matching")


@pytest.fixture(scope="module")
def known(models: FractureModels) -> tuple[list[Fragment], list[Pose]]:
    """Three fragments of a block, and where they belong."""
    generator = torch.Generator().manual_seed(2)
    block = mesh_of(Manifold.cube((1.0, 0.7, 0.4), True), 1.0, torch.zeros(3))
    puzzle = scatter(fracture(block, 3, generator), generator)
    assert puzzle.truth is not None
    truth = torch.cat([puzzle.truth.rotation.flatten(1), puzzle.truth.translation], 1).double().numpy()
    return prepare(puzzle.fragments, models, 0), list(truth)


def true_fit(state: AssemblyState, truth: list[Pose], first: int, second: int, probability: float) -> None:
    """Tell a state how two of its single pieces belong to each other."""
    one, two = (next(c for c in state.clusters if c.members == (piece,)) for piece in (first, second))
    pose = compose(inverse(truth[second]), truth[first])
    state.learn(one, two, [Match(pose, probability, INSERTED, 1, np.zeros(3, np.float32))])


def beside(cluster: Cluster, first: int, second: int) -> Pose:
    """The pose of one member seen from another."""
    return compose(inverse(cluster.poses[second]), cluster.poses[first])


def test_joins_in_order_of_probability(known: tuple[list[Fragment], list[Pose]], models: FractureModels) -> None:
    fragments, truth = known
    state = AssemblyState(fragments, models, 0, -math.inf)
    true_fit(state, truth, 0, 1, 0.6)
    true_fit(state, truth, 1, 2, 0.8)
    assert list(state.join_down_to(0.7)) == [0.8]
    assert list(state.join_down_to(0.5)) == [0.6]
    assert [cluster.members for cluster in state.clusters] == [(0, 1, 2)]
    assert beside(state.clusters[0], 0, 2) == pytest.approx(compose(inverse(truth[2]), truth[0]), abs=1e-5)
    assert state.confidence[state.anchor] == 1
    assert sorted(state.confidence)[0] in (pytest.approx(0.48), pytest.approx(0.6))


def test_what_is_locked_keeps_its_poses(known: tuple[list[Fragment], list[Pose]], models: FractureModels) -> None:
    fragments, truth = known
    state = AssemblyState(fragments, models, 0, locked={1: truth[1], 2: truth[2]})
    assert sorted(cluster.members for cluster in state.clusters) == [(0,), (1, 2)]
    assert state.anchor in (1, 2)
    assert state.ordered[0].members == (1, 2)
    pose = truth[0]
    locked, loose = state.ordered
    state.learn(locked, loose, [Match(inverse(pose), 0.9, INSERTED, 1, np.zeros(3, np.float32))])
    assert list(state.join_down_to(0.5)) == [0.9]
    state.polish()
    assert np.array_equal(state.clusters[0].poses[1], truth[1])
    assert np.array_equal(state.clusters[0].poses[2], truth[2])
    assert state.clusters[0].poses[0] == pytest.approx(pose, abs=0.02)


def test_polishing_keeps_what_is_known(known: tuple[list[Fragment], list[Pose]], models: FractureModels) -> None:
    fragments, truth = known
    state = AssemblyState(fragments, models, 0)
    true_fit(state, truth, 0, 1, 0.9)
    true_fit(state, truth, 1, 2, 0.4)
    assert len(list(state.join_down_to(0.5))) == 1
    state.polish()
    assert all(cluster in state.clusters for pair in state.matches for cluster in pair)
    assert [match.probability for matches in state.matches.values() for match in matches] == [0.4]
    state.forget(lambda first, second, match: match.probability < 0.5)
    assert list(state.join_down_to(0.0)) == []


def test_a_cluster_stands_in_the_frame_of_its_piece(known: tuple[list[Fragment], list[Pose]]) -> None:
    fragments, truth = known
    cluster = Cluster(fragments, {0: truth[0], 1: truth[1]})
    assert beside(cluster, 1, 1) == pytest.approx(IDENTITY, abs=1e-5)
