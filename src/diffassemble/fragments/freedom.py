"""Whether two breaks that lie on each other could still move: slide as sawn planes do, or turn as discs do.

A motion of six numbers is held by a point where both breaks rise or fall across its way, and at the rim where the outer
surfaces run on from one fragment to the other. What only one of the two shows, such as noise, holds nothing: the
information is the product of both sides' normals. Where a motion is held by nothing, other places fit as well as
this one, and how well it fits says nothing about which of them is true.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from diffassemble.fragments.clusters import FractureSide
from diffassemble.fragments.contact import Pose, inverse, meet, transformed

_MOST = 1500
# In spacings: what touches, which of it is beside a rim on both sides or on either, and how high a step may be
# where the outer surfaces run on; their normals have at least this cosine.
_FAR, _HIGH, _BOTH, _EITHER, _STEP = 1.5, 0.5, 2.5, 2.0, 0.5
_FACING, _ALIKE = -0.7, 0.8
_LEAST = 6


class Hold(NamedTuple):
    """How firmly a contact is held against the motion that is held least, 0 where nothing holds it: by the breaks
    alone, and with the outer surfaces that run on; and at which share of the rim they do."""

    breaks: float
    rims: float
    around: float


def hold(pose: Pose, first: FractureSide, second: FractureSide, spacing: float) -> Hold:
    """The less of what the two sides see of each other, if the first stands at the pose."""
    here, there = _seen(pose, first, second, spacing), _seen(inverse(pose), second, first, spacing)
    return Hold(*(min(pair) for pair in zip(here, there, strict=True)))


def _seen(pose: Pose, first: FractureSide, second: FractureSide, spacing: float) -> Hold:
    """The same as the points of the first break see it."""
    step = max(1, len(first.points) // _MOST)
    points, smooth = np.ascontiguousarray(first.points[::step]), np.ascontiguousarray(first.smooth[::step])
    near, numbers = meet(pose, points, smooth, *second.target)
    touching = (near >= 0) & (numbers[:, 0] < _FAR * spacing) & (np.abs(numbers[:, 1]) < _HIGH * spacing)
    touching &= numbers[:, 2] < _FACING
    if touching.sum() < _LEAST:
        return Hold(0.0, 0.0, 0.0)
    own, other = first.surface.part(np.flatnonzero(touching) * step), second.surface.part(near[touching])
    turn = pose[:9].reshape(3, 3)
    mate, beside = other.smooth @ turn, other.original @ turn
    apart = transformed(pose, own.points + own.edge) - other.points - other.edge
    even = np.abs((apart * other.original).sum(1)) < _STEP * spacing
    even &= (own.original * beside).sum(1) > _ALIKE
    rims = (own.rim < _BOTH) & (other.rim < _BOTH)
    either = (own.rim < _EITHER) | (other.rim < _EITHER)
    centred = own.points - own.points.mean(0)
    breaks = information(centred, own.smooth, -mate)
    runs_on = rims & even
    outer = information(centred, own.original * runs_on[:, None], beside)
    return Hold(_least(breaks), _least(breaks + outer), float((runs_on & either).sum() / max(1, either.sum())))


def information(
    points: Float[np.ndarray, "p 3"], normals: Float[np.ndarray, "p 3"], others: Float[np.ndarray, "p 3"]
) -> Float[np.ndarray, "6 6"]:
    """What normals of two surfaces at the same points tell together of a turn about the origin, then a shift, a point.

    Turns are taken at the distance that the points have from the origin.
    """
    size = max(float(np.sqrt((points**2).sum(1).mean())), 1e-9)
    own, other = (np.concatenate([np.cross(points, one) / size, one], 1) for one in (normals, others))
    product = own.T @ other / len(points)
    return (product + product.T) / 2


def _least(matrix: Float[np.ndarray, "6 6"]) -> float:
    """The root of the least eigenvalue."""
    return float(np.sqrt(max(0.0, float(np.linalg.eigvalsh(matrix)[0]))))
