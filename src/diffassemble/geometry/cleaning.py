"""Triangles as files give them, made sound: corners shared, doubled walls gone, open edges found."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


def clean_surface(
    vertices: Float[Tensor, "v 3"], faces: Int[Tensor, "f 3"]
) -> tuple[Float[Tensor, "w 3"], Int[Tensor, "g 3"]]:
    """The same surface with equal corners merged, and without doubled walls, collapsed triangles and unused corners.

    Corners and triangles keep their order. Without triangles, only equal points are merged.
    """
    # Adding zero turns −0 into 0.
    vertices = vertices + 0.0
    first, merged = distinct_rows(vertices)
    if not len(faces):
        return vertices[first], faces
    vertices, faces = vertices[first], merged[faces]
    faces = faces[(faces != faces.roll(1, 1)).all(1)]
    faces = without_doubled_walls(faces)
    used = torch.zeros(len(vertices), dtype=torch.bool)
    used[faces.flatten()] = True
    return vertices[used], (used.cumsum(0) - 1)[faces]


def without_doubled_walls(faces: Int[Tensor, "f 3"]) -> Int[Tensor, "g 3"]:
    """Triangles without the pairs that share corners but face opposite ways, and without mere repetitions.

    A sheet that is nothing but such pairs keeps one side, so that something is left.
    """
    if not len(faces):
        return faces
    first, which = distinct_rows(faces.sort(1).values)
    # Two of three ascending steps around the triangle: an even order of the sorted corners; one of three: an odd one.
    sign = (faces.roll(-1, 1) > faces).sum(1) * 2 - 3
    total = torch.zeros(len(first), dtype=torch.long).index_add_(0, which, sign)
    matching = sign * total[which] > 0
    if not matching.any():
        return faces[first]
    numbers = torch.where(matching, torch.arange(len(faces)), len(faces))
    kept = torch.full((len(first),), len(faces)).scatter_reduce_(0, which, numbers, "amin")
    return faces[kept[kept < len(faces)].sort().values]


def is_closed(faces: Int[Tensor, "f 3"]) -> bool:
    """Whether every edge joins an even number of triangles, so that the surface has no border."""
    if not len(faces):
        return False
    edges = torch.cat([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).sort(1).values
    _, which = distinct_rows(edges)
    return bool((which.bincount() % 2 == 0).all())


def distinct_rows(rows: Shaped[Tensor, "m c"]) -> tuple[Int[Tensor, "k"], Int[Tensor, "m"]]:
    """Where each distinct row stands first, in that order, and for every row which of them it is."""
    count = len(rows)
    if not count:
        return torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)
    which = torch.zeros(count, dtype=torch.long)
    # Numbering column by column is many times faster than comparing rows.
    for column in rows.unbind(1):
        rank = column.unique(return_inverse=True)[1]
        which = (which * (rank.max() + 1) + rank).unique(return_inverse=True)[1]
    first = torch.full((int(which.max()) + 1,), count).scatter_reduce_(0, which, torch.arange(count), "amin")
    order = first.argsort()
    return first[order], order.argsort()[which]
