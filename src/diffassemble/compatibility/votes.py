"""What the mates of each piece say about its pose: a linear map on all poses at once.

This is the synchronisation step of a graph connection Laplacian. It is linear in the poses, so on noisy poses
its answer is unbiased for the scaled true ones, and repeating it averages the noise over ever more pieces.
"""

from __future__ import annotations

import warnings

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.puzzle import Mates

# What is used here, products of sparse and dense matrices, has long been stable.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")

POWERS = (1, 2, 4, 8, 16)


def vote_matrix(mates: Mates, count: int) -> Float[Tensor, "flat flat"]:
    """The sparse matrix that maps flattened poses of `count` pieces halfway to their mates' mean vote.

    Halfway, because a lattice is a checkerboard: whole steps would only ever mix pieces of one colour.
    A piece without mates stays where it is, and a true assembly is a fixed point.
    """
    dimension = mates.relative.translation.shape[-1]
    width = dimension + dimension**2
    rows, cols, factors = _blocks(mates.relative)
    everyone = torch.arange(count * width, device=mates.first.device)
    row = torch.cat([(mates.first[:, None] * width + rows).flatten(), everyone])
    col = torch.cat([(mates.second[:, None] * width + cols).flatten(), everyone])
    order = row.argsort(stable=True)
    starts = torch.cat([row.new_zeros(1), torch.bincount(row, minlength=count * width).cumsum(0)])
    total = mates.weight.new_zeros(count).index_add(0, mates.first, mates.weight)
    heard = 0.5 * (total > 1e-9)
    share = heard[mates.first] * mates.weight / total.clamp(min=1e-9)[mates.first]
    value = torch.cat([(share[:, None] * factors).flatten(), (1 - heard).repeat_interleave(width)])[order]
    parts = starts, col[order], value, (count * width, count * width)
    return torch.sparse_csr_tensor(*parts, device=value.device, check_invariants=False)


def _blocks(relative: Poses) -> tuple[Int[Tensor, "x"], Int[Tensor, "x"], Float[Tensor, "m x"]]:
    """Composition with `relative` as a matrix on [t, R]: where its entries stand, and their values for every mating."""
    count, dimension = relative.translation.shape
    entries: list[tuple[int, int, Tensor]] = []
    for a in range(dimension):
        entries.append((a, a, relative.translation.new_ones(count)))  # t_first = t_second + R_second t_relative
        for c in range(dimension):
            seen = dimension + a * dimension + c
            entries.append((a, seen, relative.translation[:, c]))
            for b in range(dimension):  # R_first = R_second R_relative
                entries.append((dimension + a * dimension + b, seen, relative.rotation[:, c, b]))
    rows, cols, values = zip(*entries, strict=True)
    device = relative.translation.device
    return torch.tensor(rows, device=device), torch.tensor(cols, device=device), torch.stack(values, -1)


def cast_votes(
    matrix: Float[Tensor, "flat flat"], flat: Float[Tensor, "n width k"]
) -> Float[Tensor, "n votes width k"]:
    """Votes after 1, 2, 4, 8 and 16 rounds, for k sets of flattened poses at once."""
    votes = []
    current = flat.reshape(-1, flat.shape[-1])
    for round_number in range(1, POWERS[-1] + 1):
        current = matrix @ current
        if round_number in POWERS:
            votes.append(current.view(flat.shape))
    return torch.stack(votes, 1)


def flatten_poses(poses: Poses) -> Float[Tensor, "n width"]:
    """[translation, rotation row by row]: the order that vote matrices speak of."""
    return torch.cat([poses.translation, poses.rotation.flatten(1)], 1)


def unflatten_poses(flat: Float[Tensor, "n width"]) -> Poses:
    """Back from the flattened order."""
    dimension = round((flat.shape[1] + 0.25) ** 0.5 - 0.5)  # width = d + d²
    return Poses(flat[:, dimension:].unflatten(1, (dimension, dimension)), flat[:, :dimension])
