"""A real picture that ships with scikit-image, cut, and a bowl, broken; and assemblies of them."""

from __future__ import annotations

from collections.abc import Callable

import manifold3d
import pytest
import skimage.data
import torch

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, Mesh, Placements, Poses, Puzzle
from diffassemble.fragments.breaking import scatter
from diffassemble.squares.cut import cut_picture


@pytest.fixture(scope="session")
def cat() -> torch.Tensor:
    """A photo, (3, 300, 451)."""
    return torch.from_numpy(skimage.data.cat().copy()).movedim(-1, 0).float() / 255


@pytest.fixture
def make_puzzle(cat: torch.Tensor) -> Callable[..., Puzzle]:
    def make(rows: int, cols: int, **options: float) -> Puzzle:
        generator = torch.Generator().manual_seed(0)
        return cut_picture(cat, Board(rows, cols), generator, size=16, **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def solved() -> Callable[..., Answer]:
    """The true assembly of a puzzle, come to by way of the given history."""

    def make(puzzle: Puzzle, history: tuple[Poses, ...] = ()) -> Answer:
        assert puzzle.truth is not None
        confidence = torch.linspace(0, 1, len(puzzle))
        return Answer(puzzle.without_truth(), Placements(puzzle.truth, confidence), history, "oracle", 0.1)

    return make


@pytest.fixture(scope="session")
def broken_bowl() -> Puzzle:
    """A bowl cut by planes into six fragments, with its truth."""
    outline = [(0.0, 0.0), (0.2, 0.0), (0.45, 0.2), (0.5, 0.4), (0.46, 0.4), (0.41, 0.22), (0.18, 0.04), (0.0, 0.04)]
    parts = [manifold3d.CrossSection([outline]).revolve(32).rotate([-90.0, 0.0, 0.0])]
    for normal, offset in (([1.0, 0.2, 0.3], 0.02), ([0.2, 0.1, 1.0], 0.05), ([0.5, -1.0, 0.1], -0.12)):
        halves = [half for part in parts for half in part.split_by_plane(normal, offset)]
        parts = [piece for half in halves if not half.is_empty() for piece in half.decompose()]
    found = [(part.to_mesh().vert_properties[:, :3], part.to_mesh().tri_verts) for part in parts]
    meshes = [
        Mesh(torch.tensor(vertices, dtype=torch.float32), torch.tensor(faces.astype("int64")))
        for vertices, faces in found
    ]
    return scatter(meshes, torch.Generator().manual_seed(0), points=200)
