"""Fracture matching is learnt from what fractures truly are."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch
from manifold3d import Manifold

from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.fragments.damage import UNHARMED, Damage
from diffassemble.fragments.descriptors import COUNTERPART_SIGNS, FACE_FEATURES, LEVELS, surface_features
from diffassemble.fragments.model import MATCH_FEATURES, FractureConfig, FractureModels
from diffassemble.training.config import Config
from diffassemble.training.fracture_matching import (
    FractureDataConfig,
    FractureMatchingTask,
    FractureMatchingTraining,
    MatchExamples,
    SurfaceExamples,
    damaged,
    drawn_damage,
    match_examples,
    matches_found,
    surface_examples,
    surface_loss,
    verification_loss,
)

BLOCK = mesh_of(Manifold.cube((1.0, 0.8, 0.5), True), 1.0, torch.zeros(3))
SMALL = FractureConfig(width=16, descriptor=8, verifier_width=8)


def examples(seed: int) -> tuple[SurfaceExamples, ...]:
    """Points whose first number tells the break, and matches that look alike but for the signs."""
    chance, made = np.random.default_rng(seed), []
    for level in range(LEVELS):
        features = chance.normal(size=(200, surface_features(level))).astype(np.float32)
        own = chance.normal(size=(120, FACE_FEATURES)).astype(np.float32)
        weight = np.ones((200, 2), np.float32)
        made.append(SurfaceExamples(features, features[:, 0] > 0, weight, own, own * COUNTERPART_SIGNS))
    return tuple(made)


def learn(network: FractureModels, loss) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    optimizer = torch.optim.Adam(network.parameters(), 0.02)
    values = []
    for step in range(25):
        value = loss(torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
    return values[0], values[-1]


def test_surfaces_are_learnt() -> None:
    torch.manual_seed(0)
    network, made = FractureModels(SMALL), [examples(0), examples(1)]
    first, last = learn(network, lambda generator: surface_loss(network, made, 320, generator))
    assert last < 0.7 * first
    assert 0 <= matches_found(network.eval(), 0, made[0][0]) <= 100


def test_fits_are_learnt() -> None:
    torch.manual_seed(0)
    numbers = np.random.default_rng(0).normal(size=(300, MATCH_FEATURES)).astype(np.float32)
    network, made = FractureModels(SMALL), MatchExamples(numbers, numbers[:, 3] > 0)
    first, last = learn(network, lambda generator: verification_loss(network, made, 128, generator))
    assert last < 0.7 * first


def test_fractures_without_examples_at_a_level_are_passed_over() -> None:
    torch.manual_seed(0)
    full, features = examples(0), surface_features(2)
    faces, weight = np.zeros((0, FACE_FEATURES), np.float32), np.zeros((0, 2), np.float32)
    empty = SurfaceExamples(np.zeros((0, features), np.float32), np.zeros(0, bool), weight, faces, faces)
    network = FractureModels(SMALL)
    loss = surface_loss(network, [full, (*full[:2], empty)], 320, torch.Generator().manual_seed(0))
    assert torch.isfinite(loss)


def test_fits_of_a_block_in_two_hold_true_ones() -> None:
    generator = torch.Generator().manual_seed(5)
    puzzle = scatter(fracture(BLOCK, 2, generator), generator)
    made = match_examples(puzzle, FractureModels.from_pretrained("fracture-matching"), generator, searches=2)
    assert made.numbers.shape == (len(made.true), MATCH_FEATURES)
    assert made.true.any()


def test_damaged_puzzles_lose_pieces_and_keep_their_truth() -> None:
    generator = torch.Generator().manual_seed(5)
    puzzle = scatter(fracture(BLOCK, 4, generator), generator)
    left = damaged(puzzle, Damage(noise=0.001), 0.5, generator)
    assert len(left) == 2
    for pose, mesh in zip(left.truth.translation, left.fragments.meshes, strict=True):
        kept = int((puzzle.truth.translation - pose).norm(dim=1).argmin())
        off = (mesh.vertices - puzzle.fragments.meshes[kept].vertices).std()
        assert 0.0007 < float(off) < 0.0013
    assert len(damaged(puzzle, UNHARMED, 0.9, generator)) == 2


def test_every_level_teaches_breaks_and_matches() -> None:
    halves = fracture(BLOCK, 2, torch.Generator().manual_seed(3))
    examples = surface_examples(halves, torch.Generator().manual_seed(0))
    for level, one in enumerate(examples):
        assert one.features.shape == (len(one.broken), surface_features(level))
        assert np.isfinite(one.features).all()
        assert 0.05 < one.broken.mean() < 0.95
        assert one.own.shape == one.counterpart.shape
        assert len(one.own) > 50
    weight = examples[0].weight[:, 0]
    assert 0.05 < weight[examples[0].broken].sum() / weight.sum() < 0.6


def test_breaks_are_known_under_noise() -> None:
    """Labels are those of the undamaged fragments, though the noise hides who lies on whom."""
    halves = fracture(BLOCK, 2, torch.Generator().manual_seed(3))
    clean, noisy = (
        surface_examples(halves, torch.Generator().manual_seed(0), damage)[0]
        for damage in (UNHARMED, Damage(noise=0.004))
    )
    shares = [one.weight[one.broken, 0].sum() / one.weight[:, 0].sum() for one in (clean, noisy)]
    assert abs(shares[0] - shares[1]) < 0.05


def test_sparse_clouds_teach_no_fine_levels() -> None:
    halves = fracture(BLOCK, 2, torch.Generator().manual_seed(3))
    examples = surface_examples(halves, torch.Generator().manual_seed(0), Damage(points=2000))
    assert [len(one.broken) > 0 for one in examples] == [True, False, False]


def test_all_kinds_of_damage_are_drawn() -> None:
    drawn = [drawn_damage(torch.Generator().manual_seed(seed)) for seed in range(60)]
    assert any(not damage for damage in drawn)
    assert any(damage.wear for damage in drawn)
    assert any(damage.points for damage in drawn)
    assert 0.002 < max(damage.noise for damage in drawn) <= 0.003


@pytest.mark.parametrize(("learn", "start"), [("surface", ""), ("fits", "fracture-matching")])
def test_a_task_makes_its_examples_and_scores_them(learn: Literal["surface", "fits"], start: str) -> None:
    data = FractureDataConfig(solids=1, breaks=1, pieces=(2, 2), learn=learn)
    task = FractureMatchingTask(Config(SMALL, data, FractureMatchingTraining(points=160, start_from=start)))
    network = task.build()
    assert task.loss(network, 0, 0, 1).isfinite()
    if learn == "surface":
        task.held_surfaces = task.surfaces
    else:
        task.held_matches = task.matches
    scores = task.validate(network)
    assert 0 <= scores["score"] <= 100
    assert ("matches 1" if learn == "surface" else "fits") in scores
