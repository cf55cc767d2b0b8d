"""The broken part of a fragment's surface at one level, with all that is needed to find what it fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32

from diffassemble.compatibility.fracture.buckets import nearest_within
from diffassemble.compatibility.fracture.features import NAMES, SIGNS, neighbourhood
from diffassemble.compatibility.fracture.sampling import Sample
from diffassemble.compatibility.fracture.smoothing import smoothed_normals

_RADII = (4.0, 8.0, 16.0)
_RIM = 6.0
FACE_FEATURES = len(NAMES) * len(_RADII) + 4
"""How many numbers describe a point of a break for matching."""

MATE_SIGNS = np.concatenate([np.tile(SIGNS, len(_RADII)), np.ones(4, np.float32)])
"""What a point's features are multiplied with to become those that its mate should have."""


@dataclass(frozen=True)
class Relief:
    """Points of a break with smooth normals, how far they are from the rim, and the original surface's normal there.

    `rim` is in spacings, at most 6; `original` is zero where the rim is farther. All arrays have a row a point.
    """

    points: Float32[np.ndarray, "p 3"]
    normals: Float32[np.ndarray, "p 3"]
    smooth: Float32[np.ndarray, "p 3"]
    rim: Float32[np.ndarray, "p"]
    original: Float32[np.ndarray, "p 3"]
    features: Float32[np.ndarray, "p f"]


def relief(here: Sample, broken: Bool[np.ndarray, "p"], spacing: float) -> Relief:
    """The break of a fragment, seen without the rest of its surface."""
    points, normals = here.points[broken], here.normals[broken]
    smooth = smoothed_normals(points, normals, 2.5 * spacing)
    rim, original = _rim(here, broken, spacing)
    face = Sample(points, smooth, here.area)
    supports = (face, face.thinned(1.6 * spacing), face.thinned(3.2 * spacing))
    columns = [
        neighbourhood(points, smooth, support, radius * spacing)
        for support, radius in zip(supports, _RADII, strict=True)
    ]
    at_rim = (rim < _RIM).astype(np.float32)
    angle = (smooth * original).sum(1)
    edge = np.stack([rim / _RIM, at_rim, angle * at_rim, (rim < 2).astype(np.float32)], 1)
    return Relief(points, normals, smooth, rim, original, np.concatenate([*columns, edge], 1))


def _rim(here: Sample, broken: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Distance of the broken points to the rim in spacings, and the normal of the original surface there."""
    points = here.points[broken]
    rim, original = np.full(len(points), _RIM, np.float32), np.zeros((len(points), 3), np.float32)
    if broken.all() or not len(points):
        return rim, original
    outer = here.points[~broken]
    smooth = smoothed_normals(outer, here.normals[~broken], 2.5 * spacing)
    near = nearest_within(points, outer, _RIM * spacing)
    found = near >= 0
    rim[found] = np.linalg.norm(points[found] - outer[near[found]], axis=1) / spacing
    original[found] = smooth[near[found]]
    return np.minimum(rim, np.float32(_RIM)), original
