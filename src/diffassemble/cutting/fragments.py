"""Fragments in their places become a puzzle: each centred, turned at random, and shuffled among the others."""

from __future__ import annotations

from collections.abc import Sequence

import roma
import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.geometry.surfaces import sample_surface
from diffassemble.puzzle import FragmentPieces, Mesh, Puzzle

POINTS = 1000


def scatter(meshes: Sequence[Mesh], generator: torch.Generator, points: int = POINTS) -> Puzzle:
    """A puzzle out of fragments that stand assembled, by the benchmark's protocol.

    The whole's longest side becomes 1 and its middle the origin; a fragment's frame has its origin at the mean of its
    points and is turned at random. The truth puts all back.
    """
    corners = torch.cat([mesh.vertices for mesh in meshes])
    low, high = corners.amin(0), corners.amax(0)
    unit, middle = float((high - low).max()), (low + high) / 2
    order = torch.randperm(len(meshes), generator=generator).tolist()
    standing = [Mesh((meshes[i].vertices - middle) / unit, meshes[i].faces) for i in order]
    drawn = torch.stack([sample_surface(mesh.vertices, mesh.faces, points, generator)[0] for mesh in standing])
    centres = drawn.mean(1)
    turns = random_rotations(len(meshes), generator)
    local = (drawn - centres[:, None]) @ turns.transpose(-1, -2)
    moved = [
        Mesh((mesh.vertices - centre) @ turn.T, mesh.faces)
        for mesh, centre, turn in zip(standing, centres, turns, strict=True)
    ]
    pieces = FragmentPieces(local, tuple(moved), torch.zeros(len(meshes), 3), unit)
    width = max(2, len(str(len(meshes) - 1)))
    names = tuple(f"fragment_{number:0{width}d}" for number in range(len(meshes)))
    return Puzzle(pieces, None, names, Poses(turns.transpose(-1, -2), centres))


def random_rotations(count: int, generator: torch.Generator) -> Float[Tensor, "n 3 3"]:
    """Rotations of space, all equally probable."""
    quaternions = torch.randn(count, 4, generator=generator)
    return roma.unitquat_to_rotmat(torch.nn.functional.normalize(quaternions, dim=-1))
