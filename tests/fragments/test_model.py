"""The networks of fracture matching: shapes and ranges."""

from __future__ import annotations

import numpy as np
import torch

from diffassemble.fragments.descriptors import FACE_FEATURES, LEVELS, surface_features
from diffassemble.fragments.model import MATCH_FEATURES, FractureConfig, FractureModels


def test_answers_have_the_promised_shapes_and_ranges() -> None:
    torch.manual_seed(0)
    network = FractureModels(FractureConfig(width=8, descriptor=6, verifier_width=4)).eval()
    chance = np.random.default_rng(0)
    for level in range(LEVELS):
        found = network.segmentation(level, chance.normal(size=(7, surface_features(level))).astype(np.float32))
        assert found.shape == (7, 2)
        assert 0 <= found.min() <= found.max() <= 1
        described = network.descriptors(level, chance.normal(size=(7, FACE_FEATURES)).astype(np.float32))
        assert np.allclose(np.linalg.norm(described, axis=1), 1, atol=1e-5)
    assert network.verification(chance.normal(size=(3, MATCH_FEATURES)).astype(np.float32)).shape == (3,)
