"""Which points of a cloud are near each other: found once, used by every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from numba import njit
from torch import Tensor


@dataclass(frozen=True)
class Neighbours:
    """The k nearest points of every point, itself among them, in n clouds of p points each."""

    rows: Int[Tensor, "n p k"]
    """rows of the clouds' points listed one after the other"""

    def numbers(self, values: Float[Tensor, "n p c"]) -> Float[Tensor, "n p k c"]:
        """The numbers that belong to the neighbours of every point."""
        return values.flatten(0, 1).index_select(0, self.rows.flatten()).view(*self.rows.shape, -1)

    def vectors(self, values: Float[Tensor, "n p 3 c"]) -> Float[Tensor, "n p 3 k c"]:
        """The vectors that belong to the neighbours of every point."""
        rows = 3 * self.rows[:, :, None] + torch.arange(3, device=values.device)[:, None]
        return values.flatten(0, 2).index_select(0, rows.flatten()).view(*rows.shape, -1)


def find_neighbours(points: Float[Tensor, "n p 3"], count: int) -> Neighbours:
    """The `count` nearest points of every point; all of them in smaller clouds. Nothing is differentiated here."""
    clouds = points.detach().float().cpu().contiguous().numpy()
    nearest = torch.from_numpy(_nearest(clouds, min(count, clouds.shape[1]))).to(points.device)
    starts = torch.arange(len(points), device=points.device)[:, None, None] * points.shape[1]
    return Neighbours(nearest + starts)


@njit(cache=True)
@no_type_check
def _nearest(clouds: Float32[np.ndarray, "n p 3"], count: int) -> Int64[np.ndarray, "n p k"]:
    """By comparing all pairs: at this size quicker than any tree, and than sorting in torch."""
    number, size, _ = clouds.shape
    nearest = np.empty((number, size, count), np.int64)
    best, distances = np.empty(count, np.float32), np.empty(size, np.float32)
    for n in range(number):
        x, y, z = clouds[n, :, 0].copy(), clouds[n, :, 1].copy(), clouds[n, :, 2].copy()
        for i in range(size):
            for j in range(size):
                distances[j] = (x[j] - x[i]) ** 2 + (y[j] - y[i]) ** 2 + (z[j] - z[i]) ** 2
            found = nearest[n, i]
            best[:] = np.inf
            for j in range(size):
                distance = distances[j]
                if distance < best[count - 1]:
                    place = count - 1
                    while place > 0 and best[place - 1] > distance:
                        best[place], found[place] = best[place - 1], found[place - 1]
                        place -= 1
                    best[place], found[place] = distance, j
    return nearest
