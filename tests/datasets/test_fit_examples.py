"""Examples of matches: what is true is told from what is not."""

from __future__ import annotations

import numpy as np
import torch
from manifold3d import Manifold

from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.clusters import STAY
from diffassemble.fragments.model import MATCH_FEATURES, FractureModels
from diffassemble.fragments.solids import mesh_of
from diffassemble.training.fracture_examples import is_true, match_examples, worn


def test_fits_of_a_block_in_two_hold_true_ones() -> None:
    generator = torch.Generator().manual_seed(5)
    block = mesh_of(Manifold.cube((1.0, 0.8, 0.5), True), 1.0, torch.zeros(3))
    puzzle = scatter(fracture(block, 2, generator), generator)
    made = match_examples(puzzle, FractureModels.from_pretrained("fracture-matching"), generator, searches=2)
    assert made.numbers.shape == (len(made.true), MATCH_FEATURES)
    assert made.true.any()


def test_near_poses_are_true_and_far_ones_are_not() -> None:
    middle = np.zeros(3, np.float32)
    assert is_true(STAY + np.array([0] * 9 + [0.01, 0, 0]), STAY, middle, 0.01)
    assert not is_true(STAY + np.array([0] * 9 + [0.1, 0, 0]), STAY, middle, 0.01)
    turned = STAY.copy()
    turned[[0, 1, 3, 4]] = np.cos(0.2), -np.sin(0.2), np.sin(0.2), np.cos(0.2)
    assert not is_true(turned, STAY, middle, 0.01)


def test_worn_puzzles_lose_pieces_and_keep_their_truth() -> None:
    generator = torch.Generator().manual_seed(5)
    block = mesh_of(Manifold.cube((1.0, 0.8, 0.5), True), 1.0, torch.zeros(3))
    puzzle = scatter(fracture(block, 4, generator), generator)
    left = worn(puzzle, 0.001, 0.5, generator)
    assert len(left) == 2
    assert left.truth is not None
    assert puzzle.truth is not None
    for pose, mesh in zip(left.truth.translation, left.fragments.meshes, strict=True):
        kept = int((puzzle.truth.translation - pose).norm(dim=1).argmin())
        off = (mesh.vertices - puzzle.fragments.meshes[kept].vertices).std()
        assert 0.0007 < float(off) < 0.0013
    assert len(worn(puzzle, 0.0, 0.9, generator)) == 2
