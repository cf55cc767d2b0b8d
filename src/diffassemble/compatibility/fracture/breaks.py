"""Where is the break: how probable it is that a point of a fragment's surface was once inside the whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float32

from diffassemble.compatibility.fracture.sampling import Sample
from diffassemble.compatibility.fracture.smoothing import smoothed

_SMOOTHING = 2.2


def smooth_breaks(here: Sample, spacing: float, probability: Float32[np.ndarray, "p c"]) -> Float32[np.ndarray, "p c"]:
    """Probabilities averaged twice over close neighbours that face the same way."""
    for _ in range(2):
        probability = smoothed(here.points, here.normals, probability, _SMOOTHING * spacing)
    return probability


def true_breaks(standing: Sequence[Sample], spacing: float) -> list[Bool[np.ndarray, "p"]]:
    """Which points of fragments that stand assembled lie on another fragment that faces them."""
    from scipy.spatial import cKDTree

    trees = [cKDTree(piece.points) if len(piece) else None for piece in standing]
    labels = []
    for number, piece in enumerate(standing):
        touches = np.zeros(len(piece), bool)
        for other, tree in zip(standing, trees, strict=True):
            if tree is None or other is piece:
                continue
            far, near = tree.query(piece.points, 1, distance_upper_bound=1.2 * spacing)
            close = np.isfinite(far)
            at = near[close]
            apart = ((piece.points[close] - other.points[at]) * other.normals[at]).sum(1)
            facing = (piece.normals[close] * other.normals[at]).sum(1)
            touches[close] |= (np.abs(apart) < 0.35 * spacing) & (facing < -0.3)
        labels.append(touches)
        assert len(touches) == len(standing[number])
    return labels
