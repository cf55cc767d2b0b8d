"""What surroundings look like does not depend on where they are; fracture surfaces and their rims are found."""

from __future__ import annotations

import numpy as np
import pytest
import roma
import torch

from diffassemble.core import Mesh
from diffassemble.fragments.descriptors import (
    COUNTERPART_SIGNS,
    FACE_FEATURES,
    NAMES,
    SIGNS,
    SurfacePyramid,
    eigenvalues,
    fracture_surface,
    neighbourhood,
    smooth_probabilities,
    surface_features,
    true_breaks,
)
from diffassemble.fragments.surface import Sample, sample


def rough_sheet(seed: int = 0) -> Sample:
    chance = np.random.default_rng(seed)
    flat = chance.random((2500, 2)) * 2 - 1
    x, y = flat.T
    points = np.stack([x, y, 0.2 * np.sin(3 * x) * np.cos(2 * y)], 1).astype(np.float32)
    slope = -0.6 * np.cos(3 * x) * np.cos(2 * y), 0.4 * np.sin(3 * x) * np.sin(2 * y)
    normals = np.stack([*slope, np.ones(2500)], 1)
    return Sample(points, (normals / np.linalg.norm(normals, axis=1, keepdims=True)).astype(np.float32), 4 / 2500)


def test_moving_changes_nothing() -> None:
    sheet = rough_sheet()
    turn = roma.random_rotmat(1)[0].numpy().astype(np.float32)
    moved = Sample(sheet.points @ turn.T + np.float32(0.3), sheet.normals @ turn.T, sheet.area)
    here = neighbourhood(sheet.points[:50], sheet.normals[:50], sheet, 0.3)
    there = neighbourhood(moved.points[:50], moved.normals[:50], moved, 0.3)
    assert np.abs(here - there).max() < 0.02


def test_the_other_side_of_the_sheet_shows_the_negative_relief() -> None:
    sheet = rough_sheet()
    back = Sample(sheet.points, -sheet.normals, sheet.area)
    here = neighbourhood(sheet.points[:50], sheet.normals[:50], sheet, 0.3)
    there = neighbourhood(back.points[:50], back.normals[:50], back, 0.3)
    assert np.abs(here * SIGNS - there).max() < 1e-3
    assert len(NAMES) == here.shape[1]


def test_a_sphere_looks_alike_everywhere(ball: Sample) -> None:
    descriptors = neighbourhood(ball.points, ball.normals, ball, 0.3)
    inside = descriptors[np.abs(ball.points[:, 2]) < 0.9]
    assert inside[:, 0] == pytest.approx(np.ones(len(inside)), abs=0.1)
    assert (inside[:, NAMES.index("height")] < 0).all()


def test_eigenvalues_are_those_of_linear_algebra() -> None:
    some = np.random.default_rng(0).normal(size=(20, 3, 3))
    square = some @ some.transpose(0, 2, 1)
    entries = np.stack([square[:, i, j] for i in range(3) for j in range(i, 3)])
    assert np.allclose(eigenvalues(entries).T, np.linalg.eigvalsh(square), atol=1e-9)


def test_each_level_is_twice_as_fine_and_describes_its_points(block: Mesh) -> None:
    generator = torch.Generator().manual_seed(0)
    whole = SurfacePyramid.of(block, 0.03, generator)
    near = whole.levels[0].points[np.abs(whole.levels[0].points[:, 0]) < 0.02]
    both = whole.refined(block, near, generator)
    assert len(both.levels) == 2
    assert both.levels[1].area == pytest.approx(both.levels[0].area / 4, rel=0.15)
    assert np.abs(both.levels[1].points[:, 0]).max() < 0.11
    for level in (0, 1):
        assert both.features(level).shape == (len(both.levels[level]), surface_features(level))
    some = np.array([5, 2])
    assert np.array_equal(both.features(1, some), both.features(1)[some])


def test_small_fragments_are_sampled_whole(block: Mesh) -> None:
    generator = torch.Generator().manual_seed(0)
    finer = SurfacePyramid.of(block, 0.1, generator).refined(block, np.zeros((0, 3), np.float32), generator)
    assert len(finer.levels[1]) > 3 * len(finer.levels[0])


def test_two_halves_touch_along_the_break_only(halves: list[Mesh]) -> None:
    generator = torch.Generator().manual_seed(0)
    standing = [sample(mesh, 0.02, generator) for mesh in halves]
    labels = true_breaks(standing, 0.02)
    outside = [np.abs(np.abs(piece.points) - [0.5, 0.4, 0.25]).min(1) < 1e-4 for piece in standing]
    for label, outer in zip(labels, outside, strict=True):
        assert label[outer].mean() < 0.05
        assert label[~outer].mean() > 0.6


def test_smoothing_removes_lone_opinions(ball: Sample) -> None:
    chance = np.zeros((len(ball), 1), np.float32)
    chance[7] = 1
    assert smooth_probabilities(ball, 0.06, chance).max() < 0.3


def test_the_rim_is_where_the_break_meets_the_original_surface(block: Mesh) -> None:
    whole = sample(block, 0.02, torch.Generator().manual_seed(0))
    top = whole.normals[:, 2] > 0.5
    face, features = fracture_surface(whole, top, 0.02)
    edge = np.minimum(0.5 - np.abs(face.points[:, 0]), 0.4 - np.abs(face.points[:, 1])) / 0.02
    near = edge < 4
    assert np.abs(face.rim[near] - edge[near]).max() < 1.5
    assert (face.rim[edge > 8] == 6).all()
    assert not face.original[edge > 8].any()
    assert (np.abs(face.original[edge < 2][:, 2]) < 0.5).all()
    assert np.allclose(face.smooth[edge > 4], [0, 0, 1], atol=1e-4)
    assert features.shape == (int(top.sum()), FACE_FEATURES) == (len(face.points), len(COUNTERPART_SIGNS))


def test_a_piece_that_is_all_break_has_no_rim(block: Mesh) -> None:
    whole = sample(block, 0.05, torch.Generator().manual_seed(0))
    face, _ = fracture_surface(whole, np.ones(len(whole), bool), 0.05)
    assert (face.rim == 6).all()
