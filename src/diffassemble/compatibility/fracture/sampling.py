"""Fragments as even samples of their surfaces, at several levels of fineness.

Level L has spacing s / 2^L, where s is such that the whole object has about 40,000 points at level 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32

from diffassemble.compatibility.fracture.buckets import thin
from diffassemble.compatibility.fracture.drawing import draw
from diffassemble.compatibility.fracture.normals import outward_normals
from diffassemble.geometry.cleaning import is_closed
from diffassemble.geometry.surfaces import surface_area
from diffassemble.puzzle import FragmentPieces, InputError, Mesh

POINTS = 40_000
# Points at a mutual distance of at least 0.74 d, drawn from many, have about the density of one in d².
_DISTANCE = 0.74
_DRAWN = 5
_MOST_DRAWN = 4_000_000


@dataclass(frozen=True)
class Sample:
    """Evenly spaced points of a surface, their outward unit normals, and the area that each stands for."""

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    area: float

    def __len__(self) -> int:
        return len(self.points)

    def thinned(self, spacing: float) -> Sample:
        """Fewer points of the same surface, evenly spaced."""
        kept = thin(self.points, _DISTANCE * spacing)
        return Sample(self.points[kept], self.normals[kept], self.area * len(self) / max(1, len(kept)))


def is_cloud(mesh: Mesh) -> bool:
    """Whether there is no surface, only points."""
    return not len(mesh.faces) or surface_area(mesh.vertices, mesh.faces) == 0


def facing_outward(mesh: Mesh) -> Mesh:
    """The mesh with its triangles turned round if they enclose a negative volume, as in files that are inside out."""
    corners = mesh.vertices.double()[mesh.faces] - mesh.vertices.double().mean(0)
    volume = torch.linalg.det(corners).sum() if len(corners) else torch.zeros(())
    return Mesh(mesh.vertices, mesh.faces.flip(1)) if volume < 0 and is_closed(mesh.faces) else mesh


def spacing_of(pieces: FragmentPieces) -> float:
    """The spacing s of level 0, from the surface of all pieces together; no finer than the sparsest cloud of points."""
    finest, total = 0.0, 0.0
    for mesh in pieces.meshes:
        if is_cloud(mesh):
            gap = cloud_gap(mesh)
            total += len(mesh.vertices) * gap**2
            finest = max(finest, gap)
        else:
            total += surface_area(mesh.vertices, mesh.faces)
    spacing = max(float(np.sqrt(total / POINTS)), finest)
    if not spacing > 0 or not np.isfinite(spacing):
        raise InputError("the fragments have neither surface nor extent; give meshes or clouds of points")
    return spacing


def cloud_gap(mesh: Mesh) -> float:
    """Typical distance of neighbouring points, such that a point stands for the square of it."""
    from scipy.spatial import cKDTree

    points = np.unique(mesh.vertices.numpy(), axis=0)
    if len(points) < 7:
        return float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    far = cKDTree(points).query(points, 7)[0][:, 6]
    return float(np.sqrt(np.pi * np.median(far) ** 2 / 6.5))


def sample(mesh: Mesh, spacing: float, generator: torch.Generator) -> Sample:
    """An even sample of the whole surface; clouds of points are thinned and given normals."""
    if is_cloud(mesh):
        return _sample_cloud(mesh, spacing, generator)
    return _sample_faces(mesh, spacing, generator)


def sample_near(
    mesh: Mesh, spacing: float, near: Float32[np.ndarray, "k 3"], radius: float, generator: torch.Generator
) -> Sample:
    """An even sample of that part of the surface that lies within the radius of given points."""
    if is_cloud(mesh):
        whole = _sample_cloud(mesh, spacing, generator)
        kept = _close(whole.points, near, radius)
        return Sample(whole.points[kept], whole.normals[kept], whole.area)
    corners = mesh.vertices[mesh.faces]
    centres = corners.mean(1)
    reach = (corners - centres[:, None]).norm(dim=-1).amax(1)
    part = torch.from_numpy(_close(centres.numpy(), near, radius + reach.numpy()))
    if not bool(part.any()):
        return Sample(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), spacing**2)
    drawn = _sample_faces(Mesh(mesh.vertices, mesh.faces[part]), spacing, generator)
    kept = _close(drawn.points, near, radius)
    return Sample(drawn.points[kept], drawn.normals[kept], drawn.area)


def _close(points: np.ndarray, near: np.ndarray, radius: float | np.ndarray) -> np.ndarray:
    """Which points lie within the radius, or each within its own, of given ones."""
    from scipy.spatial import cKDTree

    if not len(near):
        return np.zeros(len(points), bool)
    return cKDTree(near).query(points, 1, distance_upper_bound=1.001 * np.max(radius))[0] <= radius


def _sample_faces(mesh: Mesh, spacing: float, generator: torch.Generator) -> Sample:
    area = surface_area(mesh.vertices, mesh.faces)
    count = int(np.clip(_DRAWN * area / spacing**2, 50, _MOST_DRAWN))
    chance = torch.rand(count, 3, generator=generator).numpy()
    drawn, outward = draw(mesh.vertices.numpy(), mesh.faces.numpy(), chance)
    kept = thin(drawn, _DISTANCE * spacing)
    return Sample(drawn[kept], outward[kept], area / max(1, len(kept)))


def _sample_cloud(mesh: Mesh, spacing: float, generator: torch.Generator) -> Sample:
    points = np.ascontiguousarray(np.unique(mesh.vertices.numpy(), axis=0))
    order = torch.randperm(len(points), generator=generator).numpy()
    normals = outward_normals(points)
    kept = order[thin(points[order], _DISTANCE * spacing)]
    gap = cloud_gap(mesh)
    return Sample(points[kept], normals[kept], len(points) * gap**2 / max(1, len(kept)))
