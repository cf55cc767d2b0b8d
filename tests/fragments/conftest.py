"""A block broken in two by a rough sheet, and what the stations of fracture matching make of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import trimesh
from manifold3d import Manifold

from diffassemble.core import Mesh, Puzzle
from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, pose_rows
from diffassemble.fragments.matches import prepare
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.surface import Sample


@pytest.fixture(scope="session")
def block() -> Mesh:
    """A box whose sides all differ."""
    return mesh_of(Manifold.cube((1.0, 0.8, 0.5), True))


@pytest.fixture(scope="session")
def halves(block: Mesh) -> list[Mesh]:
    """The block broken in two, standing."""
    return fracture(block, 2, torch.Generator().manual_seed(3))


@pytest.fixture(scope="session")
def broken(halves: list[Mesh]) -> Puzzle:
    """The block broken in two, scattered."""
    return scatter(halves, torch.Generator().manual_seed(0))


@pytest.fixture(scope="session")
def models() -> FractureModels:
    """The bundled networks."""
    return FractureModels.from_pretrained("fracture-matching")


@pytest.fixture(scope="session")
def ball() -> Sample:
    """Evenly spread points of a sphere of radius 1, about 0.06 apart."""
    number = np.arange(3500) + 0.5
    height, turn = 1 - 2 * number / 3500, np.pi * (1 + 5**0.5) * number
    flat = np.sqrt(1 - height**2)
    points = np.stack([flat * np.cos(turn), flat * np.sin(turn), height], 1).astype(np.float32)
    return Sample(points, points.copy(), 4 * np.pi / 3500)


@pytest.fixture(scope="session")
def clusters(broken: Puzzle, models: FractureModels) -> tuple[Cluster, Cluster]:
    """The two halves, each on its own, ready to be matched."""
    fragments = prepare(broken.fragments, models, 0)
    return Cluster(fragments, {0: IDENTITY}), Cluster(fragments, {1: IDENTITY})


@pytest.fixture(scope="session")
def true_pose(broken: Puzzle) -> np.ndarray:
    """Where the first half stands in the frame of the second."""
    assert broken.truth is not None
    relative = broken.truth[[1]].inverse() @ broken.truth[[0]]
    return pose_rows(relative)[0]


@pytest.fixture
def brick() -> list[Mesh]:
    """A brick of 60 × 40 × 20 around (700, 0, 0), broken into four smaller ones of different sizes."""
    bounds = [
        ((0, 0, 0), (25, 40, 20)),
        ((25, 0, 0), (60, 15, 20)),
        ((25, 15, 0), (60, 40, 8)),
        ((25, 15, 8), (60, 40, 20)),
    ]
    boxes = [trimesh.creation.box(bounds=np.add(bound, (670, -20, -10))) for bound in bounds]
    return [
        Mesh(torch.from_numpy(np.array(box.vertices)).float(), torch.from_numpy(np.array(box.faces))) for box in boxes
    ]


@pytest.fixture
def shards(brick: list[Mesh]) -> Puzzle:
    """The broken brick, scattered, with its truth."""
    return scatter(brick, torch.Generator().manual_seed(2))
