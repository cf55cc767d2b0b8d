"""True breaks are where fragments lie on each other."""

from __future__ import annotations

import numpy as np
import torch

from diffassemble.core import Mesh
from diffassemble.fragments.descriptors import smooth_probabilities, true_breaks
from diffassemble.fragments.surface import Sample, sample


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
