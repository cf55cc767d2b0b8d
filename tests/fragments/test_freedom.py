"""What nothing holds is free: planes slide, discs turn, and noise of one side holds nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from manifold3d import Manifold

from diffassemble.core import Mesh, Puzzle
from diffassemble.fragments.breaking import mesh_of, scatter
from diffassemble.fragments.clusters import Cluster, FractureSide
from diffassemble.fragments.contact import IDENTITY, Pose, compose, inverse, pose_rows
from diffassemble.fragments.matches import prepare
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.verification import can_slide, hold, information

Sides = tuple[FractureSide, FractureSide, float]


def held(points: np.ndarray, normals: np.ndarray, others: np.ndarray) -> np.ndarray:
    """How firmly the six motions are held, the least first."""
    return np.linalg.eigvalsh(information(points - points.mean(0), normals, others))


@pytest.fixture
def flat() -> np.ndarray:
    chance = np.random.default_rng(0)
    return np.concatenate([chance.uniform(-1, 1, (2000, 2)), np.zeros((2000, 1))], 1)


def test_a_plane_slides_two_ways_and_turns_one(flat: np.ndarray) -> None:
    up = np.tile([0.0, 0.0, 1.0], (len(flat), 1))
    numbers = held(flat, up, up)
    assert np.allclose(numbers[:3], 0, atol=1e-12)
    assert numbers[3] > 0.3


def test_a_rod_turns_and_slides_and_a_ball_turns(flat: np.ndarray) -> None:
    angle = np.pi * flat[:, 0]
    around = np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
    numbers = held(around + [0, 0, 3] * flat[:, 1:2], around, around)
    assert np.allclose(numbers[:2], 0, atol=1e-3)
    assert numbers[2] > 0.05
    ball = np.random.default_rng(1).normal(size=(4000, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    assert np.allclose(held(ball, ball, ball)[:3], 0, atol=1e-3)


def test_relief_of_both_holds_and_noise_of_each_does_not(flat: np.ndarray) -> None:
    chance = np.random.default_rng(2)

    def tilted(spread: np.ndarray) -> np.ndarray:
        rough = np.concatenate([spread, np.ones((len(flat), 1))], 1)
        return rough / np.linalg.norm(rough, axis=1, keepdims=True)

    relief = 0.3 * np.sin(7 * flat[:, [1, 0]] + [0, 1])
    noise = [0.2 * chance.normal(size=(len(flat), 2)) for _ in range(2)]
    assert held(flat, *(tilted(relief + one) for one in noise))[0] > 0.01
    assert held(flat, tilted(noise[0]), tilted(noise[0]))[0] > 0.01
    assert held(flat, *(tilted(one) for one in noise))[0] < 0.003


def sawn(whole: Manifold, models: FractureModels) -> tuple[Sides, Pose]:
    """A solid sawn in two by a level plane: both breaks, and the pose of the first at the second."""
    parts = [mesh_of(part) for part in whole.split_by_plane((0.0, 0.0, 1.0), 0.1)]
    puzzle = scatter(parts, torch.Generator().manual_seed(0))
    assert puzzle.truth is not None
    fragments = prepare(puzzle.fragments, models, 0)
    own, other = (Cluster(fragments, {piece: IDENTITY}).side(1) for piece in (0, 1))
    assert own is not None
    assert other is not None
    first, second = pose_rows(puzzle.truth)
    return (own, other, fragments[0].spacing / 2), compose(inverse(second), first)


def slid(pose: Pose, sides: Sides, far: float) -> Pose:
    """The same, moved along the cut."""
    along = np.linalg.svd(sides[0].points - sides[0].points.mean(0), full_matrices=False)[2][0]
    return pose + np.concatenate([np.zeros(9), far * pose[:9].reshape(3, 3) @ along])


def test_rims_hold_a_sawn_bar_with_corners_but_not_a_round_one(models: FractureModels) -> None:
    bar, true = sawn(Manifold.cube((0.7, 0.4, 1.0), True), models)
    right, moved = hold(true, *bar), hold(slid(true, bar, 0.2), *bar)
    assert right.breaks < 0.02, "planes hold nothing"
    assert right.rims > 0.1
    assert right.around > 2 * moved.around
    assert can_slide(slid(true, bar, 0.2), *bar)
    rod, true = sawn(Manifold.cylinder(1.0, 0.3, 0.3, 128, True), models)
    assert hold(true, *rod).rims < 0.02, "it can be turned"
    assert can_slide(true, *rod)


def test_a_rough_break_holds_by_itself(broken: Puzzle, models: FractureModels, block: Mesh) -> None:
    assert broken.truth is not None
    fragments = prepare(broken.fragments, models, 0)
    own, other = (Cluster(fragments, {piece: IDENTITY}).side(1) for piece in (0, 1))
    assert own is not None
    assert other is not None
    first, second = pose_rows(broken.truth)
    sides = own, other, fragments[0].spacing / 2
    assert hold(compose(inverse(second), first), *sides).breaks > 0.15
    assert not can_slide(compose(inverse(second), first), *sides)
