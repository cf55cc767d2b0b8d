"""Examples of surfaces: balanced, weighted, and paired with their matches."""

from __future__ import annotations

import numpy as np
import torch
from manifold3d import Manifold

from diffassemble.fragments.breaking import fracture
from diffassemble.fragments.descriptors import surface_features
from diffassemble.fragments.solids import mesh_of
from diffassemble.training.fracture_examples import jittered, surface_examples


def test_every_level_teaches_breaks_and_matches() -> None:
    block = mesh_of(Manifold.cube((1.0, 0.8, 0.5), True), 1.0, torch.zeros(3))
    halves = fracture(block, 2, torch.Generator().manual_seed(3))
    examples = surface_examples(halves, torch.Generator().manual_seed(0))
    for level, one in enumerate(examples):
        assert one.features.shape == (len(one.broken), surface_features(level))
        assert np.isfinite(one.features).all()
        assert 0.05 < one.broken.mean() < 0.95
        assert one.own.shape == one.mate.shape
        assert len(one.own) > 50
    weight = examples[0].weight[:, 0]
    assert 0.05 < weight[examples[0].broken].sum() / weight.sum() < 0.6


def test_noise_has_the_deviation_asked_for() -> None:
    block = mesh_of(Manifold.sphere(1.0, 64), 1.0, torch.zeros(3))
    noisy = jittered([block], 0.01, torch.Generator().manual_seed(0))[0]
    assert abs(float((noisy.vertices - block.vertices).std()) - 0.01) < 0.001
