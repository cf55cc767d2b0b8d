"""Triangles in space: their areas, and points drawn evenly from them."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def triangle_normals(vertices: Float[Tensor, "v 3"], faces: Int[Tensor, "f 3"]) -> Float[Tensor, "f 3"]:
    """Normals as long as twice the triangles' areas; outward where corners run counter-clockwise seen from outside."""
    first, second, third = vertices[faces].unbind(1)
    return torch.linalg.cross(second - first, third - first)


def surface_area(vertices: Float[Tensor, "v 3"], faces: Int[Tensor, "f 3"]) -> float:
    """Area of all triangles together."""
    return float(triangle_normals(vertices, faces).norm(dim=-1).double().sum() / 2)


def sample_surface(
    vertices: Float[Tensor, "v 3"], faces: Int[Tensor, "f 3"], count: int, generator: torch.Generator
) -> tuple[Float[Tensor, "p 3"], Float[Tensor, "p 3"]]:
    """Points drawn evenly by area, and the unit normals there.

    Without triangles (or area) they are drawn from the vertices, as evenly as numbers allow, with normals of zero.
    """
    normals = triangle_normals(vertices, faces)
    area = normals.norm(dim=-1).double()
    if not area.sum() > 0:
        rounds = -(-count // len(vertices))
        chosen = torch.cat([torch.randperm(len(vertices), generator=generator) for _ in range(rounds)])[:count]
        return vertices[chosen], torch.zeros(count, 3)
    ends = area.cumsum(0)
    drawn = torch.rand(count, generator=generator, dtype=torch.double) * ends[-1]
    chosen = torch.searchsorted(ends, drawn).clamp(max=len(faces) - 1)
    along = torch.rand(count, 2, generator=generator)
    along = torch.where(along.sum(1, keepdim=True) > 1, 1 - along, along)
    first, second, third = vertices[faces[chosen]].unbind(1)
    points = first + along[:, :1] * (second - first) + along[:, 1:] * (third - first)
    return points, torch.nn.functional.normalize(normals[chosen], dim=-1)
