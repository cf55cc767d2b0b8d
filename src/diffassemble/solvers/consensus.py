"""Several samples of loose poses become one answer: the one that the others agree with most."""

from __future__ import annotations

from collections.abc import Sequence

import roma
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.geometry import Poses

# Two samples agree on a piece when they put it this near, in lengths of the whole and in radians.
NEAR = 0.1
TWIST = torch.pi / 6


def central(samples: Sequence[Poses]) -> tuple[Poses, Float[Tensor, "n"]]:
    """The sample nearest to all others, and per piece the share of the others that agree with it."""
    if len(samples) == 1:
        return samples[0], torch.ones(len(samples[0]))
    apart = torch.stack([torch.stack([distance(own, other).mean() for other in samples]) for own in samples])
    chosen = samples[int(apart.sum(1).argmin())]
    votes = sum(agrees(chosen, other).float() for other in samples if other is not chosen)
    assert isinstance(votes, Tensor)
    return chosen, votes / (len(samples) - 1)


def distance(first: Poses, second: Poses) -> Float[Tensor, "n"]:
    """How differently two samples put each piece: lengths of the whole, and rotations with a radius of a quarter."""
    moved = (first.translation - second.translation).norm(dim=-1)
    return moved + 0.25 * twist(first, second)


def agrees(first: Poses, second: Poses) -> Bool[Tensor, "n"]:
    """Whether two samples put a piece in about the same place."""
    moved = (first.translation - second.translation).norm(dim=-1)
    return (moved < NEAR) & (twist(first, second) < TWIST)


def twist(first: Poses, second: Poses) -> Float[Tensor, "n"]:
    """Angle between two rotations of each piece, in radians."""
    return roma.rotmat_geodesic_distance(first.rotation, second.rotation)
