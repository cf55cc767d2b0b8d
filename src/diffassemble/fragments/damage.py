"""What time and scanners do to fragments: breaks worn round, noise, clouds of points in place of meshes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.core import Mesh, Puzzle
from diffassemble.core.poses import Poses
from diffassemble.core.surfaces import distinct_rows, sample_surface
from diffassemble.fragments.surface import sample, subdivided


@dataclass(frozen=True)
class ErosionConfig:
    """How breaks are rounded. Lengths in radii of the erosion."""

    ball: float = 1.4
    """a corner whose surroundings within this radius are averaged becomes round with radius 1"""
    neighbours: int = 48
    cuts: int = 40
    """times that triangles are cut in two, at most"""
    facing: float = -0.3
    """surroundings whose normals have a smaller cosine are of the other side of a wall"""


EROSION = ErosionConfig()


@dataclass(frozen=True)
class Damage:
    """How far breaks are worn, deviation of noise, both as shares of the whole's size; points of each cloud, or of all.

    No points: meshes stay meshes.
    """

    wear: float = 0.0
    noise: float = 0.0
    points: int | tuple[int, ...] = 0

    def __bool__(self) -> bool:
        return bool(self.wear or self.noise or self.points)

    def of(self, standing: Sequence[Mesh], generator: torch.Generator) -> list[Mesh]:
        """What is left of fragments in their assembled places, the longest side of the whole being 1."""
        meshes = worn(standing, self.wear, generator) if self.wear else list(standing)
        if self.points:
            counts = (self.points,) * len(meshes) if isinstance(self.points, int) else self.points
            pairs, nothing = zip(meshes, counts, strict=True), torch.zeros(0, 3, dtype=torch.long)
            meshes = [Mesh(draw(mesh, count, generator), nothing) for mesh, count in pairs]
        if self.noise:
            drawn = (self.noise * torch.randn(mesh.vertices.shape, generator=generator) for mesh in meshes)
            meshes = [mesh.placed(mesh.vertices + noise) for mesh, noise in zip(meshes, drawn, strict=True)]
        return meshes

    def of_puzzle(self, puzzle: Puzzle, generator: torch.Generator) -> Puzzle:
        """The same for a puzzle whose truth is known; its points are drawn anew."""
        assert puzzle.truth is not None
        if not self:
            return puzzle
        pieces, truth = puzzle.fragments, puzzle.truth
        standing = [moved_mesh(mesh, truth[[i]]) for i, mesh in enumerate(pieces.meshes)]
        back = [moved_mesh(mesh, truth[[i]].inverse()) for i, mesh in enumerate(self.of(standing, generator))]
        points = torch.stack([draw(mesh, pieces.points.shape[1], generator) for mesh in back])
        return replace(puzzle, pieces=replace(pieces, points=points, meshes=tuple(back)))


UNHARMED = Damage()


def moved_mesh(mesh: Mesh, pose: Poses) -> Mesh:
    """A mesh at a pose."""
    return mesh.placed(pose.apply(mesh.vertices[None])[0], pose.rotation[0])


def draw(mesh: Mesh, count: int, generator: torch.Generator) -> Float[Tensor, "p 3"]:
    """So many points of a surface or cloud."""
    return sample_surface(mesh.vertices, mesh.faces, count, generator)[0]


def worn(
    standing: Sequence[Mesh], radius: float, generator: torch.Generator, config: ErosionConfig = EROSION
) -> list[Mesh]:
    """Fragments in their assembled places, with their breaks smoothed and the rims rounded with a radius.

    Only what is within two radii of another fragment changes: each corner moves towards the middle of the surface
    around it, on its own side of a wall.
    """
    samples = [sample(mesh, radius, generator) for mesh in standing]
    result = []
    for number, mesh in enumerate(standing):
        others = np.concatenate([own.points for i, own in enumerate(samples) if i != number])
        tree, mine = cKDTree(others), samples[number].points
        near = np.ascontiguousarray(mine[tree.query(mine, distance_upper_bound=4 * radius)[0] < 4 * radius])
        if not len(near):
            result.append(mesh)
            continue
        triangles = mesh.vertices.numpy()[mesh.faces.numpy()]
        corners = subdivided(triangles, others, radius, 3 * radius, config.cuts)[0].reshape(-1, 3)
        first, faces = distinct_rows(torch.from_numpy(corners))
        vertices = corners[first.numpy()]
        around = sample(mesh, radius / 3, generator, near, 3 * radius)
        share = np.clip(2 - tree.query(vertices, distance_upper_bound=3 * radius)[0] / radius, 0, 1)
        rows = np.flatnonzero(share > 0)
        count = min(config.neighbours, len(around))
        far, close = cKDTree(around.points).query(vertices[rows], count, distance_upper_bound=config.ball * radius)
        found = np.isfinite(far)
        close = np.where(found, close, 0)
        weight = found & ((around.normals[close] * around.normals[close[:, :1]]).sum(-1) > config.facing)
        total = weight.sum(1, keepdims=True)
        middle = (around.points[close] * weight[..., None]).sum(1) / np.maximum(total, 1)
        vertices[rows] += np.where(total > 3, share[rows, None] * (middle - vertices[rows]), 0).astype(np.float32)
        result.append(Mesh(torch.from_numpy(vertices), faces.reshape(-1, 3)))
    return result
