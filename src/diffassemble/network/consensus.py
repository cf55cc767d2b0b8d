"""Several samples of loose poses become one answer, their mean; where they differ, it is not to be trusted."""

from __future__ import annotations

from collections.abc import Sequence

import roma
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.core import Poses

# Two samples agree on a piece when they put it this near, in lengths of the whole and in radians.
NEAR = 0.1
TWIST = torch.pi / 6


def average(samples: Sequence[Poses]) -> tuple[Poses, Float[Tensor, "n"]]:
    """The mean of all samples, which errs least, and per piece the share of them that agree with it.

    The mean rotation is the one nearest to the mean of the matrices.
    """
    if len(samples) == 1:
        return samples[0], torch.ones(len(samples[0]))
    rotation = roma.special_procrustes(torch.stack([sample.rotation for sample in samples]).mean(0))
    mean = Poses(rotation, torch.stack([sample.translation for sample in samples]).mean(0))
    return mean, torch.stack([agrees(mean, sample).float() for sample in samples]).mean(0)


def agrees(first: Poses, second: Poses) -> Bool[Tensor, "n"]:
    """Whether two samples put a piece in about the same place."""
    moved = (first.translation - second.translation).norm(dim=-1)
    return (moved < NEAR) & (twist(first, second) < TWIST)


def twist(first: Poses, second: Poses) -> Float[Tensor, "n"]:
    """Angle between two rotations of each piece, in radians."""
    return roma.rotmat_geodesic_distance(first.rotation, second.rotation)
