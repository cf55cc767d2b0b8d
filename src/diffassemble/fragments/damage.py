"""What time and scanners do to fragments: breaks worn round, noise, clouds of points in place of meshes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Float32
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.core import Mesh, Puzzle
from diffassemble.core.poses import Poses
from diffassemble.core.surfaces import distinct_rows, sample_surface
from diffassemble.fragments.surface import sample, sample_near


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
        """What is left of fragments that stand assembled, the longest side of the whole being 1."""
        meshes = worn(standing, self.wear, generator) if self.wear else list(standing)
        if self.points:
            counts = (self.points,) * len(meshes) if isinstance(self.points, int) else self.points
            meshes = [as_cloud(mesh, count, generator) for mesh, count in zip(meshes, counts, strict=True)]
        return noisy(meshes, self.noise, generator) if self.noise else meshes

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


def noisy(meshes: Sequence[Mesh], deviation: float, generator: torch.Generator) -> list[Mesh]:
    """Meshes as a noisy scanner would see them."""
    return [
        mesh.placed(mesh.vertices + deviation * torch.randn(mesh.vertices.shape, generator=generator))
        for mesh in meshes
    ]


def as_cloud(mesh: Mesh, points: int, generator: torch.Generator) -> Mesh:
    """Points of a surface without the triangles between them."""
    return Mesh(draw(mesh, points, generator), torch.zeros(0, 3, dtype=torch.long))


def worn(
    standing: Sequence[Mesh], radius: float, generator: torch.Generator, config: ErosionConfig = EROSION
) -> list[Mesh]:
    """Fragments that stand assembled, with their breaks smoothed and the rims rounded with a radius.

    Only what lies within two radii of another fragment changes.
    """
    samples = [sample(mesh, radius, generator) for mesh in standing]
    worn_meshes = []
    for number, mesh in enumerate(standing):
        others = np.concatenate([own.points for i, own in enumerate(samples) if i != number])
        tree = cKDTree(others)
        mine = samples[number].points
        near = np.ascontiguousarray(mine[tree.query(mine, distance_upper_bound=4 * radius)[0] < 4 * radius])
        if not len(near):
            worn_meshes.append(mesh)
            continue
        fine = _refined(mesh, tree, radius, config.cuts)
        support = sample_near(mesh, radius / 3, near, 3 * radius, generator)
        vertices = fine.vertices.numpy()
        share = np.clip(2 - tree.query(vertices, distance_upper_bound=3 * radius)[0] / radius, 0, 1)
        rows = np.flatnonzero(share > 0)
        middle = _averaged(vertices[rows], support.points, support.normals, radius, config)
        moved = vertices.copy()
        moved[rows] += (share[rows, None] * (middle - vertices[rows])).astype(np.float32)
        worn_meshes.append(Mesh(torch.from_numpy(moved), fine.faces))
    return worn_meshes


def _refined(mesh: Mesh, others: cKDTree, radius: float, cuts: int) -> Mesh:
    """The mesh with triangles no longer than the radius where other fragments are near, cut across their longest sides.

    Corners of neighbours meet no longer, but their surfaces still do.
    """
    done, triangles = [], mesh.vertices.numpy()[mesh.faces.numpy()]
    for _ in range(cuts):
        sides = np.linalg.norm(triangles - np.roll(triangles, -1, 1), axis=2)
        middle, longest = triangles.mean(1), sides.max(1)
        far = others.query(middle, distance_upper_bound=float(longest.max() + 3 * radius))[0]
        large = (longest > radius) & (far < longest + 3 * radius)
        done.append(triangles[~large])
        if not large.any():
            break
        start = sides[large].argmax(1)
        a, b, c = (triangles[large][np.arange(len(start)), (start + k) % 3] for k in range(3))
        halfway = (a + b) / 2
        triangles = np.concatenate([np.stack([a, halfway, c], 1), np.stack([halfway, b, c], 1)])
    else:
        done.append(triangles)
    corners = torch.from_numpy(np.concatenate(done).reshape(-1, 3))
    distinct, number = distinct_rows(corners)
    return Mesh(corners[distinct], number.reshape(-1, 3))


def _averaged(
    points: Float32[np.ndarray, "p 3"],
    support: np.ndarray,
    normals: np.ndarray,
    radius: float,
    config: ErosionConfig,
) -> Float[np.ndarray, "p 3"]:
    """The middle of what lies around each point on its own side of a wall."""
    far, near = cKDTree(support).query(
        points, min(config.neighbours, len(support)), distance_upper_bound=config.ball * radius
    )
    found = np.isfinite(far)
    near = np.where(found, near, 0)
    own = normals[near[:, 0]]
    weight = found & ((normals[near] * own[:, None]).sum(-1) > config.facing)
    total = weight.sum(1)
    middle = (support[near] * weight[..., None]).sum(1) / np.maximum(total, 1)[:, None]
    return np.where(total[:, None] > 3, middle, points)
