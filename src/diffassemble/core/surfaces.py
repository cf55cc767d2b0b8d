"""Triangles in space: areas, samples of surfaces, clean-up, and the distance of clouds."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
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
    """Points drawn uniformly by area, and the unit normals there; without area from the vertices, normals then zero."""
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


class CleanSurface(NamedTuple):
    """Corners and triangles, and which of those that were given each one is: of equal corners the first."""

    vertices: Float[Tensor, "w 3"]
    faces: Int[Tensor, "g 3"]
    given_vertices: Int[Tensor, "w"]
    given_faces: Int[Tensor, "g"]


def clean_surface(vertices: Float[Tensor, "v 3"], faces: Int[Tensor, "f 3"]) -> CleanSurface:
    """The surface with equal corners merged, without doubled walls, collapsed triangles and unused corners."""
    # Adding zero turns −0 into 0.
    vertices = vertices + 0.0
    first, merged = distinct_rows(vertices)
    if not len(faces):
        return CleanSurface(vertices[first], faces, first, torch.zeros(0, dtype=torch.long))
    vertices, faces = vertices[first], merged[faces]
    kept = (faces != faces.roll(1, 1)).all(1).nonzero()[:, 0]
    kept = kept[single_walls(faces[kept])]
    faces = faces[kept]
    used = torch.zeros(len(vertices), dtype=torch.bool)
    used[faces.flatten()] = True
    return CleanSurface(vertices[used], (used.cumsum(0) - 1)[faces], first[used], kept)


def single_walls(faces: Int[Tensor, "f 3"]) -> Int[Tensor, "g"]:
    """Indices of triangles without repetitions and opposite pairs; of a sheet of such pairs only, one side stays."""
    if not len(faces):
        return torch.zeros(0, dtype=torch.long)
    first, which = distinct_rows(faces.sort(1).values)
    # Two of three ascending steps around the triangle: an even order of the sorted corners; one of three: an odd one.
    sign = (faces.roll(-1, 1) > faces).sum(1) * 2 - 3
    total = torch.zeros(len(first), dtype=torch.long).index_add_(0, which, sign)
    matching = sign * total[which] > 0
    if not matching.any():
        return first
    numbers = torch.where(matching, torch.arange(len(faces)), len(faces))
    kept = torch.full((len(first),), len(faces)).scatter_reduce_(0, which, numbers, "amin")
    return kept[kept < len(faces)].sort().values


def is_closed(faces: Int[Tensor, "f 3"]) -> bool:
    """Whether every edge joins an even number of triangles, so that the surface has no border."""
    if not len(faces):
        return False
    edges = torch.cat([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).sort(1).values
    count = (edges[:, 0] * (edges.max() + 1) + edges[:, 1]).unique(return_counts=True)[1]
    return bool((count % 2 == 0).all())


def distinct_rows(rows: Shaped[Tensor, "m c"]) -> tuple[Int[Tensor, "k"], Int[Tensor, "m"]]:
    """The first index of each distinct row, in that order, and for every row the number of its distinct row."""
    count = len(rows)
    which = torch.zeros(count, dtype=torch.long)
    if not count:
        return which, which
    # Numbering column by column is many times faster than comparing rows.
    for column in rows.unbind(1):
        rank = column.unique(return_inverse=True)[1]
        which = (which * (rank.max() + 1) + rank).unique(return_inverse=True)[1]
    first = torch.full((int(which.max()) + 1,), count).scatter_reduce_(0, which, torch.arange(count), "amin")
    order = first.argsort()
    return first[order], order.argsort()[which]


def chamfer_distance(first: Float[Tensor, "n p 3"], second: Float[Tensor, "n q 3"]) -> Float[Tensor, "n"]:
    """Mean squared distance to the nearest point of the other cloud, both ways; differentiable."""
    from scipy.spatial import cKDTree

    total = torch.zeros(len(first), device=first.device)
    for cloud, other in ((first, second), (second, first)):
        clouds = (points.detach().nan_to_num(0.0, 0.0, 0.0).cpu().numpy() for points in (cloud, other))
        found = [torch.from_numpy(cKDTree(points).query(queries)[1]) for queries, points in zip(*clouds, strict=True)]
        partner = other.gather(1, torch.stack(found).to(cloud.device)[..., None].expand(-1, -1, 3))
        total = total + (cloud - partner).square().sum(-1).mean(-1)
    return total
