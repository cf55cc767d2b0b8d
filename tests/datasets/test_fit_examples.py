"""Examples of fits: what is true is told from what is not."""

from __future__ import annotations

import numpy as np
import torch
from manifold3d import Manifold

from diffassemble.compatibility.fracture.clusters import STAY
from diffassemble.compatibility.fracture.verify import VERIFIED
from diffassemble.cutting.fragments import scatter
from diffassemble.cutting.mesh import fracture
from diffassemble.cutting.solids import mesh_of
from diffassemble.datasets.fit_examples import fit_examples, is_true
from diffassemble.model.fracture import FractureMatcher


def test_fits_of_a_block_in_two_hold_true_ones() -> None:
    generator = torch.Generator().manual_seed(5)
    block = mesh_of(Manifold.cube((1.0, 0.8, 0.5), True), 1.0, torch.zeros(3))
    puzzle = scatter(fracture(block, 2, generator), generator)
    made = fit_examples(puzzle, FractureMatcher.from_pretrained("fracture-matching"), generator, matches=2)
    assert made.numbers.shape == (len(made.true), VERIFIED)
    assert made.true.any()


def test_near_poses_are_true_and_far_ones_are_not() -> None:
    middle = np.zeros(3, np.float32)
    assert is_true(STAY + np.array([0] * 9 + [0.01, 0, 0]), STAY, middle, 0.01)
    assert not is_true(STAY + np.array([0] * 9 + [0.1, 0, 0]), STAY, middle, 0.01)
    turned = STAY.copy()
    turned[[0, 1, 3, 4]] = np.cos(0.2), -np.sin(0.2), np.sin(0.2), np.cos(0.2)
    assert not is_true(turned, STAY, middle, 0.01)
