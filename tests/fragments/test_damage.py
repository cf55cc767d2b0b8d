"""Damage changes what it should, and leaves alone what it should not touch."""

from __future__ import annotations

import numpy as np
import torch
from manifold3d import Manifold
from scipy.spatial import cKDTree

from diffassemble.core import Mesh
from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.fragments.damage import UNHARMED, Damage, draw, worn

RADIUS = 0.02
LEFT = mesh_of(Manifold.cube((0.5, 0.5, 0.5)), 1.0, torch.zeros(3))
RIGHT = Mesh(LEFT.vertices + torch.tensor([0.5, 0.0, 0.0]), LEFT.faces)


def test_wear_rounds_the_rim_with_its_radius() -> None:
    """A square edge rounded with radius r is set back by (√2 − 1) r at its corner."""
    left, _ = worn([LEFT, RIGHT], RADIUS, torch.Generator().manual_seed(0))
    edge = torch.tensor([[0.5, 0.5, z] for z in np.linspace(0.1, 0.4, 30)])
    points = draw(left, 200_000, torch.Generator().manual_seed(1))
    back = cKDTree(points.numpy()).query(edge.numpy())[0]
    assert abs(np.median(back) - 0.414 * RADIUS) < 0.1 * RADIUS


def test_wear_keeps_planes_and_what_is_far_from_the_break() -> None:
    left, _ = worn([LEFT, RIGHT], RADIUS, torch.Generator().manual_seed(0))
    points = draw(left, 20_000, torch.Generator().manual_seed(1))
    middle = points[(points[:, 0] > 0.48) & ((points[:, 1:] - 0.25).abs().amax(1) < 0.15)]
    assert float((middle[:, 0] - 0.5).abs().max()) < 0.1 * RADIUS
    far = points[points[:, 0] < 0.4]
    to_plane = torch.stack([far, 0.5 - far], -1).abs().flatten(1).amin(1)
    assert float(to_plane.max()) < 1e-5


def test_a_damaged_puzzle_keeps_its_truth() -> None:
    generator = torch.Generator().manual_seed(5)
    puzzle = scatter(fracture(LEFT, 3, generator, roughness=0.0), generator)
    assert UNHARMED.of_puzzle(puzzle, generator) is puzzle
    for damage in (Damage(wear=0.02), Damage(noise=0.002), Damage(points=900), Damage(points=(300, 400, 500))):
        seen = damage.of_puzzle(puzzle, generator)
        assert seen.truth is puzzle.truth
        for before, after in zip(puzzle.fragments.meshes, seen.fragments.meshes, strict=True):
            tree = cKDTree(draw(before, 30_000, generator).numpy())
            assert np.median(tree.query(draw(after, 200, generator).numpy())[0]) < 0.01
    assert [len(mesh.vertices) for mesh in seen.fragments.meshes] == [300, 400, 500]
    assert not any(len(mesh.faces) for mesh in seen.fragments.meshes)


def test_noise_has_its_deviation() -> None:
    generator = torch.Generator().manual_seed(5)
    (seen,) = Damage(noise=0.003).of([LEFT], generator)
    cloud = Mesh(torch.zeros(5000, 3), torch.zeros(0, 3, dtype=torch.long))
    (moved,) = Damage(noise=0.003).of([cloud], generator)
    assert abs(float(moved.vertices.std()) - 0.003) < 1e-4
    assert torch.equal(seen.faces, LEFT.faces)
