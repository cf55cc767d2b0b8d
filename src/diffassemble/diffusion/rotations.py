"""Rotations of plane and space, and the isotropic Gaussian on SO(3) (Leach et al. 2022).

ε² is the time of the heat flow e^{−l(l+1)ε²}: for small ε the rotation vector is normal with variance 2ε² an axis, for
large ε the rotation is uniform. Convolution adds ε². A rotation with spread ε is written by its normal vector: the
3-vector along its axis that is standard normal when the rotation is a draw. Its length goes to the angle by equal
probability, so one vector stands for corresponding rotations of all spreads; for small ε that is scaling of the angle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import gammaincinv
from torch import Tensor

Rotations = Float[Tensor, "*n d d"]
UNIFORM = 4.0
"""spread beyond which the distribution is uniform to 1e-13"""


class RotationGroup(NamedTuple):
    """The rotations of the plane or of space: their axes, the volume of the group, and the nearest one to a matrix."""

    axes: int
    volume: float
    nearest: Callable[[Float[Tensor, "n d d"]], Float[Tensor, "n d d"]]


def _nearest_in_plane(matrices: Float[Tensor, "n 2 2"]) -> Float[Tensor, "n 2 2"]:
    angle = torch.atan2(matrices[:, 1, 0] - matrices[:, 0, 1], matrices[:, 0, 0] + matrices[:, 1, 1])
    return torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1).view_as(matrices)


def _nearest_in_space(matrices: Float[Tensor, "n 3 3"]) -> Float[Tensor, "n 3 3"]:
    import roma

    return roma.special_procrustes(matrices)


ROTATIONS = {
    2: RotationGroup(1, 2 * math.pi, _nearest_in_plane),
    3: RotationGroup(3, 8 * math.pi**2, _nearest_in_space),
}
"""by dimension"""


def nearest_rotation(matrices: Rotations) -> Rotations:
    """The rotation nearest to each matrix: of a sum of rotations, their chordal mean; any one where that is 0."""
    flat = matrices.flatten(0, -3) + 1e-6 * torch.eye(matrices.shape[-1], device=matrices.device)
    return ROTATIONS[matrices.shape[-1]].nearest(flat).view_as(matrices)


def angle_between(one: Float[Tensor, "*#n d d"], two: Float[Tensor, "*#n d d"]) -> Float[Tensor, "*n"]:
    """Angle in radians by the distance of the matrices, which is exact for small angles too."""
    far = (one - two).square().sum((-1, -2))
    return 2 * torch.asin((far / 8).clamp(0, 1).sqrt())


def scale(rotation: Float[Tensor, "*n 3 3"], share: Float[Tensor, "*#n"]) -> Float[Tensor, "*n 3 3"]:
    """λ(γ, R) = exp(γ log R), the geodesic from the identity to R."""
    import roma

    return roma.rotvec_to_rotmat(share[..., None] * roma.rotmat_to_rotvec(rotation))


@dataclass(frozen=True)
class TableConfig:
    """How finely angles are tabulated; the errors are below 1e-4 of the angle."""

    meet: float = 0.5
    """spread at which one series takes over from the other"""
    spreads: int = 121
    longest: float = 6.0
    """length of a normal vector, in deviations, beyond which angles go on linearly"""
    lengths: int = 241
    cells: int = 300
    """cells over which the density is integrated"""


TABLE = TableConfig()


def series_density(angle: Float[Tensor, "*#n"], epsilon: Float[Tensor, "*#n"], terms: int = 16) -> Float[Tensor, "*n"]:
    """Density of the angle in [0, π] by the paper's sum over l; `terms` must be large against 1/ε."""
    order = torch.arange(terms, dtype=angle.dtype, device=angle.device)
    weight = (2 * order + 1) * torch.exp(-order * (order + 1) * epsilon[..., None] ** 2)
    waves = torch.sin((order + 0.5) * angle[..., None])
    return 2 / math.pi * torch.sin(angle / 2) * (weight * waves).sum(-1)


def small_density(angle: Float[Tensor, "*#n"], epsilon: Float[Tensor, "*#n"]) -> Float[Tensor, "*n"]:
    """The same by Poisson's sum over full turns, which needs three terms when ε is small."""
    time = epsilon**2
    turns = sum(
        sign * (angle - turn) * torch.exp(time / 4 - (angle - turn) ** 2 / (4 * time))
        for turn, sign in ((0.0, 1), (2 * math.pi, -1), (-2 * math.pi, -1))
    )
    return torch.sin(angle / 2) / (math.sqrt(math.pi) * time**1.5) * turns


def angle_density(angle: Float[Tensor, "*#n"], epsilon: Float[Tensor, "*#n"]) -> Float[Tensor, "*n"]:
    """Density of the angle in [0, π], by whichever form is exact at this ε."""
    small = small_density(angle, epsilon.clamp(max=TABLE.meet))
    return torch.where(epsilon < TABLE.meet, small, series_density(angle, epsilon.clamp(min=TABLE.meet)))


def _unit(epsilon: Tensor) -> Tensor:
    """An angle that is typical at this spread, by which the table is divided to make it smooth."""
    return math.sqrt(2) * epsilon / torch.sqrt(1 + epsilon**2)


@cache
def _table() -> Float[Tensor, "e z"]:
    """Angle / unit for each spread (rows, even in ε / (1 + ε)) and length of the normal vector (0…6)."""
    wanted = np.linspace(0, TABLE.longest, TABLE.lengths)
    place = torch.linspace(0, UNIFORM / (1 + UNIFORM), TABLE.spreads, dtype=torch.double)[1:]
    epsilon = place / (1 - place)
    rows = [np.interp(wanted, *_lengths_and_angles(spread)) for spread in epsilon]
    return torch.from_numpy(np.stack([wanted, *(rows / _unit(epsilon)[:, None].numpy())])).float()


def _lengths_and_angles(epsilon: Float[Tensor, ""]) -> tuple[np.ndarray, np.ndarray]:
    """Corresponding lengths and angles at one spread, by integrating the density from cell to cell."""
    share = 1 - torch.linspace(1, 0, TABLE.cells + 1, dtype=torch.double) ** 4  # finer where the tail is thin
    edges = (1.5 * TABLE.longest * epsilon).clamp(max=math.pi) * share
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(4))
    half = edges.diff()[:, None] / 2
    inner = edges[:-1, None] + half * (1 + nodes)
    mass = (angle_density(inner, epsilon) * weights * half).sum(-1)
    below = torch.nn.functional.pad(mass.cumsum(0), (1, 0)).clamp(0, 1 - 1e-15)
    return np.sqrt(2 * gammaincinv(1.5, below.numpy())), edges.numpy()


def _row(epsilon: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """Where in the table's rows this spread is."""
    return epsilon / (1 + epsilon) * ((TABLE.spreads - 1) * (1 + UNIFORM) / UNIFORM)


def angle_of(length: Float[Tensor, "*n"], epsilon: Float[Tensor, "*#n"]) -> Float[Tensor, "*n"]:
    """The angle that is as probable under spread ε as this length is for a standard normal 3-vector."""
    epsilon = epsilon.clamp(0, UNIFORM)
    row, column = _row(epsilon), length.clamp(max=TABLE.longest) * ((TABLE.lengths - 1) / TABLE.longest)
    above, left = row.long().clamp(max=TABLE.spreads - 2), column.long().clamp(max=TABLE.lengths - 2)
    table = _table().to(length.device)
    by_row = [torch.lerp(table[above, side], table[above + 1, side], row - above) for side in (left, left + 1)]
    angle = torch.lerp(by_row[0], by_row[1], column - left) * _unit(epsilon)
    return (angle * (length / TABLE.longest).clamp(min=1)).clamp(max=math.pi)


def length_of(angle: Float[Tensor, "*n"], epsilon: Float[Tensor, ""]) -> Float[Tensor, "*n"]:
    """The inverse of `angle_of`, for one spread, which must not be 0."""
    epsilon = epsilon.clamp(max=UNIFORM)
    place, table = _row(epsilon), _table().to(angle.device)
    above = place.long().clamp(max=TABLE.spreads - 2)
    row = torch.lerp(table[above], table[above + 1], place - above)
    scaled = angle / _unit(epsilon)
    left = torch.searchsorted(row, scaled.contiguous()).clamp(1, TABLE.lengths - 1) - 1
    within = ((scaled - row[left]) / (row[left + 1] - row[left]).clamp(min=1e-12)).clamp(0, 1)
    return (left + within) * (TABLE.longest / (TABLE.lengths - 1)) * (scaled / row[-1]).clamp(min=1)


def rotation_of(normal: Float[Tensor, "*n 3"], epsilon: Float[Tensor, "*#n"]) -> Float[Tensor, "*n 3 3"]:
    """Rotations of spread ε by their normal vectors: standard normal ones make draws."""
    import roma

    length = normal.norm(dim=-1)
    angle = angle_of(length, epsilon)
    return roma.rotvec_to_rotmat(normal * (angle / length.clamp(min=1e-12))[..., None])


def normal_of(rotation: Float[Tensor, "*n 3 3"], epsilon: Float[Tensor, ""]) -> Float[Tensor, "*n 3"]:
    """The inverse of `rotation_of`."""
    import roma

    turn = roma.rotmat_to_rotvec(rotation)
    angle = turn.norm(dim=-1)
    return turn * (length_of(angle, epsilon) / angle.clamp(min=1e-12))[..., None]


def spread_at(alpha_bar: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """ε_t of the rotation noise: Brownian motion that has gained variance Σ −ln(1 − β) an axis."""
    return (-0.5 * torch.log(alpha_bar)).clamp(min=0).sqrt()
