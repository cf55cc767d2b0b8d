"""Gaps are where something broke out; a chip is inserted into the hole it left, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

from diffassemble.core import Puzzle
from diffassemble.fragments.assembly_state import AssemblyState
from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.contact import IDENTITY
from diffassemble.fragments.gap_insertion import (
    GAP_INSERTION,
    INSERTED,
    find_gaps,
    insert_into_gaps,
    insertion_probability,
)
from diffassemble.fragments.matches import PairSearch, prepare
from diffassemble.fragments.mend import crowded, grow, insert_small, search_some
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.verification import Match


def test_a_hole_in_the_seam_invites_and_closed_seams_are_covered(
    standing: tuple[Cluster, Fragment, np.ndarray],
) -> None:
    whole, chip, truth = standing
    gaps = find_gaps(whole, chip.spacing / 3)
    inviting = gaps.inviting(0.03, GAP_INSERTION)
    assert not (inviting & ~gaps.bare).any()
    away = np.linalg.norm(gaps.points - truth[9:].astype(np.float32), axis=1)
    assert (away[inviting] < 0.12).sum() > 50
    # Beside the hole the seam is closed, and the outside of the block is no pit.
    assert (away[inviting] < 0.12).mean() > 5 * (away < 0.12).mean()
    first, second = (whole.fragments[piece].fracture(0).moved(whole.poses[piece]) for piece in (0, 1))
    seam = cKDTree(second.points).query(first.points, 1)[0] < 0.5 * chip.spacing
    inner = first.points[seam & (first.rim > 3) & (np.linalg.norm(first.points - truth[9:], axis=1) > 0.15)]
    assert gaps.bare[cKDTree(gaps.points).query(inner, 1)[1]].mean() < 0.1


def test_a_chip_finds_its_hole(standing: tuple[Cluster, Fragment, np.ndarray]) -> None:
    whole, chip, truth = standing
    matches = insert_into_gaps(chip, whole, find_gaps(whole, chip.spacing / 3), 1)
    points = chip.pyramid.levels[0].points
    off = points @ (matches[0].pose - truth)[:9].reshape(3, 3).T + (matches[0].pose - truth)[9:]
    assert np.linalg.norm(off, axis=1).max() < chip.spacing
    assert matches[0].level == INSERTED
    assert matches[0].probability > 0.5
    assert [match.probability for match in matches] == sorted((match.probability for match in matches), reverse=True)


def test_what_touches_more_is_more_probable() -> None:
    base = np.array([0.6, 0.05, 0.1], np.float32)
    for column, change in ((0, 0.2), (1, -0.05), (2, 0.2)):
        better = base.copy()
        better[column] += change
        assert insertion_probability(better) > insertion_probability(base)


def test_halves_and_their_chip_become_one(chipped: Puzzle, models: FractureModels) -> None:
    state = AssemblyState(PairSearch(prepare(chipped.fragments, models, 0), models))
    joins = list(grow(state, 0.02, [], 0))
    assert [cluster.members for cluster in state.clusters] == [(0, 1, 2)]
    assert len(joins) == 2
    assert chipped.truth is not None
    poses = state.clusters[0].poses
    place = poses[0][:9].reshape(3, 3).T @ (poses[2][9:] - poses[0][9:])
    wanted = chipped.truth.rotation[0].T @ (chipped.truth.translation[2] - chipped.truth.translation[0])
    assert place == pytest.approx(wanted.numpy(), abs=0.01)
    turned = poses[0][:9].reshape(3, 3).T @ poses[2][:9].reshape(3, 3)
    assert turned == pytest.approx((chipped.truth.rotation[0].T @ chipped.truth.rotation[2]).numpy(), abs=0.05)
    assert min(state.confidence) > 0.5


def test_threads_change_nothing(chipped: Puzzle, models: FractureModels, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads in (1, 2):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        state = AssemblyState(PairSearch(prepare(chipped.fragments, models, 0), models))
        assert search_some(state, 0)
        assert not search_some(state, 0)
        found.append([match for matches in state.matches.values() for match in matches])
    assert [match.probability for match in found[0]] == [match.probability for match in found[1]]
    assert all(np.array_equal(one.pose, two.pose) for one, two in zip(*found, strict=True))


def test_single_pieces_have_no_gaps(chipped: Puzzle, models: FractureModels) -> None:
    state = AssemblyState(PairSearch(prepare(chipped.fragments, models, 0), models))
    assert list(insert_small(state, 0.5)) == []
    assert not state.matches


def test_no_two_chips_in_one_hole(chipped: Puzzle, models: FractureModels) -> None:
    fragments = prepare(chipped.fragments, models, 0)
    chip, far = Cluster(fragments, {2: IDENTITY}), IDENTITY + np.eye(12)[9]
    whole = Cluster(fragments, {0: IDENTITY, 2: far})
    limit = 2 * fragments[2].area
    there, here = (Match(pose, 0.9, INSERTED, 1, np.zeros(3, np.float32)) for pose in (far, IDENTITY))
    assert crowded(chip, whole, there, limit)
    assert not crowded(chip, whole, here, limit)
    assert not crowded(chip, whole, there, 0.0)
