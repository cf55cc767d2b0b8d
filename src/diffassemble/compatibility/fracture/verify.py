"""Is a fit a true one: numbers that tell how two sides meet, for a trained judge."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Float64

from diffassemble.compatibility.fracture.contact import count_buried, meet, undone
from diffassemble.compatibility.fracture.sides import Side

VERIFIED = 26
"""How many numbers a fit is judged by."""

_MOST = 2500


def fit_numbers(
    pose: Float64[np.ndarray, "12"],
    first: Side,
    second: Side,
    spacing: float,
    level: int,
    votes: int,
    margin: float,
) -> Float32[np.ndarray, "v"]:
    """How the first side, moved by the pose, meets the second; lengths in spacings, areas in their squares.

    `votes` guesses led to this pose, and `margin` is its rating over that of the best other pose of the same two sides.
    """
    here, there = _meeting(pose, first, second, spacing), _meeting(undone(pose), second, first, spacing)
    depth = first.body.spacing
    body, other = first.body, second.body
    sunk = count_buried(pose, first.probe, other.voxels, other.points, other.normals, depth) / len(first.probe)
    swallowed = count_buried(undone(pose), second.probe, body.voxels, body.points, body.normals, depth)
    area = min(here["tight"], there["tight"])
    entered = (sunk * len(body.points) + swallowed / len(second.probe) * len(other.points)) * (depth / spacing) ** 2
    numbers = [
        np.log1p(area),
        np.log1p(max(here["tight"], there["tight"])),
        np.log1p(here["loose"]),
        here["tight"] / max(1.0, here["loose"]),
        here["tight"] / len(first.points),
        there["tight"] / len(second.points),
        here["loose"] / len(first.points),
        there["loose"] / len(second.points),
        here["height"],
        there["height"],
        here["facing"],
        there["facing"],
        np.log1p(entered),
        entered / max(10.0, area),
        here["rim"],
        there["rim"],
        here["original"],
        np.log1p(here["rims"]),
        here["likeness"],
        float(level),
        np.log1p(len(first.points)),
        np.log1p(len(second.points)),
        here["relief"],
        here["stretch"],
        np.log1p(votes),
        np.clip(margin, 0, 5),
    ]
    return np.array(numbers, np.float32)


def _meeting(pose: np.ndarray, first: Side, second: Side, spacing: float) -> dict[str, float]:
    """Sums over the points of the first break that touch the second."""
    step = max(1, len(first.points) // _MOST)
    own = slice(None, None, step)
    near, numbers = meet(pose, first.points[own], first.smooth[own], second.voxels, second.points, second.smooth)
    far, height, facing = numbers[:, 0] / spacing, np.abs(numbers[:, 1]) / spacing, numbers[:, 2]
    loose = (near >= 0) & (far < 2.2) & (height < 1.2) & (facing < -0.4)
    tight = loose & (far < 1.5) & (height < 0.5) & (facing < -0.7)
    count = max(1, int(loose.sum()))
    mates = near[tight]
    rim, other_rim = first.rim[own][tight], second.rim[mates]
    both = (rim < 2.5) & (other_rim < 2.5)
    either = (rim < 2.0) | (other_rim < 2.0)
    turned = first.original[own][tight] @ pose[:9].reshape(3, 3).T.astype(np.float32)
    alike = (turned * second.original[mates]).sum(1)
    likeness = (first.sought[own][tight] * second.seen[mates]).sum(1)
    held = max(1, int(tight.sum()))
    return {
        "tight": float(tight.sum()) * step,
        "loose": float(loose.sum()) * step,
        "height": float(height[loose].sum()) / count,
        "facing": float(facing[loose].sum()) / count,
        "rim": float((np.abs(rim - other_rim)[either] < 1.5).sum()) / max(1, int(either.sum())),
        "rims": float(both.sum()) * step,
        "original": float(alike[both].sum()) / max(1, int(both.sum())),
        "likeness": float(likeness.sum()) / held,
        **_spread(first.points[own][tight], first.smooth[own][tight], spacing),
    }


def _spread(points: np.ndarray, normals: np.ndarray, spacing: float) -> dict[str, float]:
    """How rough the touching part is, and how far it stretches across its length."""
    if len(points) < 4:
        return {"relief": 0.0, "stretch": 0.0}
    centred = points - points.mean(0)
    widths = np.sqrt(np.maximum(np.linalg.eigvalsh(centred.T @ centred / len(points)), 0)) / spacing
    turned = np.sqrt(np.maximum(np.linalg.eigvalsh(normals.T @ normals / len(points)), 0))
    return {"relief": float(turned[0] + turned[1]), "stretch": float(np.log1p(widths[1]))}
