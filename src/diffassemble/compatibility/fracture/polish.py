"""All members of an assembly moved a little at once, until their breaks lie on each other: loops close."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from jaxtyping import Float64
from scipy.spatial.transform import Rotation

from diffassemble.compatibility.fracture.buckets import nearest_within
from diffassemble.compatibility.fracture.clusters import Cluster, Pose

# In spacings: how far touching points may be apart in the first and in the last round, and which deviation is doubtful.
_FIRST, _LAST, _DOUBT = 1.6, 1.1, 0.25
_FACING = -0.6
_ROUNDS = 5
_LEAST = 12


def polished(cluster: Cluster, held: Collection[int]) -> Cluster:
    """The same members after a joint point-to-plane refinement over all pairs that touch; those held do not move.

    Where nothing touches, poses stay.
    """
    loose = [piece for piece in cluster.members if piece not in held]
    if not loose or len(cluster.members) < 2:
        return cluster
    spacing, poses = cluster.fragments[0].spacing, dict(cluster.poses)
    number = {piece: index for index, piece in enumerate(loose)}
    for reach in np.linspace(_FIRST, _LAST, _ROUNDS):
        matrix, vector = np.zeros((6 * len(loose),) * 2), np.zeros(6 * len(loose))
        parts = {piece: cluster.fragments[piece].breaks(0).moved(poses[piece]) for piece in cluster.members}
        for first in cluster.members:
            for second in cluster.members:
                if first != second:
                    _add_pair(matrix, vector, parts, (first, second), number, (reach * spacing, _DOUBT * spacing))
        scale = np.maximum(np.diag(matrix), 1e-9)
        motion = np.linalg.solve(matrix + np.diag(1e-3 * scale + 1e-9), vector)
        for piece, index in number.items():
            poses[piece] = _moved(poses[piece], motion[6 * index : 6 * index + 6])
    return Cluster(cluster.fragments, poses)


def _add_pair(matrix, vector, parts, pair, number, limits) -> None:  # type: ignore[no-untyped-def]
    """Add the normal equations of the points of the first piece that lie on the second."""
    (first, second), (reach, doubt) = pair, limits
    own, other = parts[first], parts[second]
    if not len(own.points) or not len(other.points):
        return
    apart = np.maximum(own.points.min(0) - other.points.max(0), other.points.min(0) - own.points.max(0))
    if (apart > reach).any():
        return
    near = nearest_within(own.points, other.points, np.float32(reach))
    found = np.flatnonzero(near >= 0)
    found = found[(own.smooth[found] * other.smooth[near[found]]).sum(1) < _FACING]
    if len(found) < _LEAST:
        return
    here, there = own.points[found].astype(np.float64), other.points[near[found]].astype(np.float64)
    normal = other.smooth[near[found]].astype(np.float64) - own.smooth[found]
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    apart = ((there - here) * normal).sum(1)
    weight = 1 / (1 + (apart / doubt) ** 2)
    rows = {first: np.concatenate([np.cross(here, normal), normal], 1)}
    rows[second] = -np.concatenate([np.cross(there, normal), normal], 1)
    for one in pair:
        if one in number:
            a = 6 * number[one]
            vector[a : a + 6] += rows[one].T @ (weight * apart)
            for two in pair:
                if two in number:
                    b = 6 * number[two]
                    matrix[a : a + 6, b : b + 6] += rows[one].T @ (weight[:, None] * rows[two])


def _moved(pose: Pose, motion: Float64[np.ndarray, "6"]) -> Pose:
    """A pose after a turn about the origin and a shift."""
    turn = Rotation.from_rotvec(motion[:3]).as_matrix()
    return np.concatenate([(turn @ pose[:9].reshape(3, 3)).ravel(), turn @ pose[9:] + motion[3:]])
