"""Whether the colours of two fragments run on across the seam between them.

At rims that lie on each other, the colours of the original surface on either side are compared, relative to how much
those of any two points of the two rims differ. Plain fragments say nothing, nor do those whose colours change from
point to point.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool, Float64
from scipy.spatial import cKDTree

from diffassemble.fragments.clusters import FractureSide
from diffassemble.fragments.contact import Pose, meet
from diffassemble.fragments.descriptors import FractureSurface
from diffassemble.fragments.spatial import thin

# Points this near to the rim, in spacings, are of the rim; its colours are known at so many of them, or not at all.
_RIM, _FEWEST = 2.5, 30
# Evidence sets in where colours of 0 to 1 deviate by the first of these, and counts in full from the second on.
_DEVIATION = 0.03, 0.06
# The same for the share of their variance that is not there between neighbours so many spacings of level 0 apart,
# which is wider than what colours are means over; a rim is long enough if it has this many such neighbours.
_STEADINESS, _APART, _LENGTH = (0.2, 0.5), 4.0, 8
# Log odds of a match: a constant, more where colours vary along the seam, less where they do across it. They lie
# within ±MOST, and count by half if so many POINTS lie on each other. The first three are fitted on solids that are
# broken and painted by code (`benchmarks/calibrate_colours.py`).
EVEN, ALONG, ACROSS = 0.9, 3.6, 4.3
POINTS, MOST = 10.0, 2.0


def colour_evidence(
    poses: Float64[np.ndarray, "m 12"], first: FractureSide, second: FractureSide, spacing: float
) -> Float64[np.ndarray, "m"]:
    """Log odds that colours add to matches of two sides, the first moved by each pose; within ±2.

    They are exactly 0 where one of the two has no colours, or where colours hardly vary.
    """
    measured = contrasts(poses, first, second, spacing)
    if measured is None:
        return np.zeros(len(poses))
    weight, (across, along, points) = measured[0], measured[1].T
    return weight * points / (points + POINTS) * np.clip(EVEN + ALONG * along - ACROSS * across, -MOST, MOST)


def contrasts(
    poses: Iterable[Pose], first: FractureSide, second: FractureSide, spacing: float
) -> tuple[float, Float64[np.ndarray, "m 3"]] | None:
    """How much colours can tell, from 0 to 1, and for each pose how they differ across the seam and along it, both
    squared and over the difference of any two points of both rims, and at how many points; none if they tell nothing.
    """
    known = [_coloured(side.surface) for side in (first, second)]
    if min(int(rim.sum()) for rim in known) < _FEWEST:
        return None
    own, other = (side.surface.part(rim) for side, rim in zip((first, second), known, strict=True))
    weight = min(_weight(own, first.body.spacing), _weight(other, second.body.spacing))
    if weight == 0:
        return None
    means = own.colours.mean(0) - other.colours.mean(0)
    anyhow = float(own.colours.var(0).sum() + other.colours.var(0).sum() + (means**2).sum())
    rows = []
    for pose in poses:
        near, numbers = meet(pose, own.points, own.smooth, *second.target)
        far, height, facing = numbers[:, 0] / spacing, np.abs(numbers[:, 1]) / spacing, numbers[:, 2]
        met = np.flatnonzero((near >= 0) & (far < 1.5) & (height < 0.5) & (facing < -0.7))
        met = met[known[1][near[met]]]
        turned = own.original[met] @ pose[:9].reshape(3, 3).T.astype(np.float32)
        met = met[(turned * second.surface.original[near[met]]).sum(1) > 0.5]
        here, there = own.colours[met], second.surface.colours[near[met]]
        across = float(((here - there) ** 2).sum(1).mean()) if len(met) else 0.0
        along = float(here.var(0).sum() + there.var(0).sum()) if len(met) else 0.0
        rows.append([across / anyhow, along / anyhow, len(met)])
    return weight, np.array(rows).reshape(-1, 3)


def _coloured(surface: FractureSurface) -> Bool[np.ndarray, "p"]:
    """Which points are of a rim whose colours are known."""
    return (surface.rim < _RIM) & np.isfinite(surface.colours[:, 0])


def _weight(rim: FractureSurface, spacing: float) -> float:
    """How much the colours of a rim can tell, from 0 to 1: they have to vary, but not from point to point."""
    variance = float(rim.colours.var(0).sum())
    varies = _ramp(np.sqrt(variance), *_DEVIATION)
    some = rim.part(thin(rim.points, _APART * spacing)) if varies > 0 else rim.part(slice(0))
    if len(some.points) < _LENGTH:
        return 0.0
    near = cKDTree(some.points).query(some.points, 2)[1][:, 1]
    beside = float(((some.colours - some.colours[near]) ** 2).sum(1).mean()) / 2
    return varies * _ramp(1 - beside / variance, *_STEADINESS)


def _ramp(value: float, low: float, high: float) -> float:
    return float(np.clip((value - low) / (high - low), 0, 1))
