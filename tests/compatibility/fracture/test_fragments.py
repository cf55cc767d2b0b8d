"""Fragments find their own breaks."""

from __future__ import annotations

import numpy as np
import torch

from diffassemble.core import Mesh
from diffassemble.fragments.clusters import Fragment
from diffassemble.fragments.model import FractureModels


def test_the_break_is_found_on_an_object_never_seen(halves: list[Mesh], models: FractureModels) -> None:
    half = Fragment(halves[0], 0.01, models, 0)
    whole = half.pyramid.levels[0]
    outer = np.abs(np.abs(whole.points) - [0.5, 0.4, 0.25]).min(1) < 1e-4
    found = half.broken(0)
    assert (found == ~outer).mean() > 0.85
    assert half.area == len(whole) * whole.area


def test_finer_levels_look_near_the_break_only(halves: list[Mesh], models: FractureModels) -> None:
    half = Fragment(halves[0], 0.015, models, 0)
    coarse, fine = half.fracture(0), half.fracture(1)
    assert len(fine.points) > 2 * len(coarse.points)
    assert half.fracture(1) is fine
    assert np.allclose(np.linalg.norm(fine.descriptors, axis=1), 1, atol=1e-4)


def test_a_fragment_too_small_for_its_level_has_no_break(models: FractureModels) -> None:
    triangle = Mesh(torch.eye(3), torch.tensor([[0, 1, 2]]))
    assert len(Fragment(triangle, 0.5, models, 0).fracture(0).points) < 30


def test_the_surroundings_of_the_break_at_any_spacing(halves: list[Mesh], models: FractureModels) -> None:
    half = Fragment(halves[0], 0.015, models, 0)
    near = half.near_break(0.01)
    broken = half.pyramid.levels[0].points[half.suspects[0]]
    far = np.linalg.norm(near.points[::50, None] - broken, axis=2).min(1)
    assert far.max() <= 2.1 * half.spacing
    assert half.near_break(0.01) is near
    chip = Fragment(halves[0], 0.2, models, 0)
    assert np.allclose(np.ptp(chip.near_break(0.02).points, 0), np.ptp(halves[0].vertices.numpy(), 0), atol=0.05)
