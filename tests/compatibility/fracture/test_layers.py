"""A fragment is sampled from coarse to fine."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffassemble.core import Mesh
from diffassemble.fragments.descriptors import SurfacePyramid, surface_features


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
