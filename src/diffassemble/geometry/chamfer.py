"""How far two clouds of points are apart, whichever points belong together."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

_PAIRS = 4_000_000


def chamfer_distance(first: Float[Tensor, "n p 3"], second: Float[Tensor, "n q 3"]) -> Float[Tensor, "n"]:
    """Mean squared distance to the nearest point of the other cloud, first to second plus second to first.

    Differentiable: the nearest points are found first, some pairs at a time, then only their distances are taken.
    """
    there, back = _nearest(first, second), _nearest(second, first)
    return _mean_square(first, second, there) + _mean_square(second, first, back)


def _mean_square(
    cloud: Float[Tensor, "n p 3"], other: Float[Tensor, "n q 3"], nearest: Int[Tensor, "n p"]
) -> Float[Tensor, "n"]:
    partner = other.gather(1, nearest[..., None].expand(-1, -1, 3))
    return (cloud - partner).square().sum(-1).mean(-1)


@torch.no_grad()
def _nearest(cloud: Float[Tensor, "n p 3"], other: Float[Tensor, "n q 3"]) -> Int[Tensor, "n p"]:
    """For each point, the nearest one of the other cloud."""
    count, size, _ = cloud.shape
    clouds = max(1, _PAIRS // (size * other.shape[1]))
    rows = max(1, _PAIRS // (clouds * other.shape[1]))
    found = cloud.new_empty(count, size, dtype=torch.long)
    for start in range(0, count, clouds):
        few = slice(start, start + clouds)
        for row in range(0, size, rows):
            some = slice(row, row + rows)
            found[few, some] = torch.cdist(cloud[few, some], other[few]).argmin(-1)
    return found
