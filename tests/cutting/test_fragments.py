"""Scattering keeps the protocol: centred, turned, shuffled, and the truth puts all back."""

import torch

from diffassemble.core import Mesh
from diffassemble.core.poses import random_rotations
from diffassemble.fragments.breaking import scatter

CORNERS = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = torch.tensor([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def standing(count: int) -> list[Mesh]:
    """Tetrahedra of different sizes in a row."""
    return [Mesh((1 + i) * CORNERS + torch.tensor([3.0 * i, 0, 0]), FACES) for i in range(count)]


def test_the_truth_puts_fragments_back_into_a_whole_of_length_one() -> None:
    puzzle = scatter(standing(4), torch.Generator().manual_seed(0))
    assert puzzle.truth is not None
    vertices = torch.stack([mesh.vertices for mesh in puzzle.fragments.meshes])
    whole = puzzle.truth.apply(vertices).flatten(0, 1)
    extent = whole.amax(0) - whole.amin(0)
    assert torch.allclose(extent.max(), torch.tensor(1.0), atol=1e-5)
    assert torch.allclose(whole.amax(0) + whole.amin(0), torch.zeros(3), atol=1e-5)
    wanted = torch.cat([mesh.vertices for mesh in standing(4)]) / puzzle.fragments.unit
    wanted = wanted - (wanted.amax(0) + wanted.amin(0)) / 2
    assert torch.cdist(whole, wanted).amin(1).max() < 1e-5


def test_frames_begin_at_the_mean_of_the_points() -> None:
    puzzle = scatter(standing(3), torch.Generator().manual_seed(1), points=500)
    assert puzzle.fragments.points.shape == (3, 500, 3)
    assert puzzle.fragments.points.mean(1).abs().max() < 1e-5


def test_random_rotations_are_rotations_and_forget_directions() -> None:
    turns = random_rotations(5000, torch.Generator().manual_seed(0))
    assert torch.allclose(turns @ turns.transpose(-1, -2), torch.eye(3).expand_as(turns), atol=1e-5)
    assert torch.allclose(torch.linalg.det(turns), torch.ones(5000), atol=1e-5)
    assert turns.mean(0).abs().max() < 0.03
