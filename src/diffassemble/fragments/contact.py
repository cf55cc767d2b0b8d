"""How two surfaces meet when one is moved towards the other, and the pose at which they meet best (ICP).

Kernels read a pose as 12 numbers: rotation row by row, then translation. It moves the points of the first surface into
the frame of the second; arrays of poses have any leading shape.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Float64, Int64
from scipy.spatial.transform import Rotation

from diffassemble.core import Poses
from diffassemble.fragments.spatial import INSIDE, Voxels, kernel, look_up

Pose = Float64[np.ndarray, "12"]
PoseRows = Float64[np.ndarray, "_ 12"]
PoseArray = Float64[np.ndarray, "... 12"]
Points = Float32[np.ndarray, "_ 3"]
Target = tuple[Voxels, Points, Points]
"""A surface to be met: voxels, points and normals."""
IDENTITY = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])


def rotations(poses: PoseArray) -> Float64[np.ndarray, "*n 3 3"]:
    """The rotation matrices of poses."""
    return poses[..., :9].reshape(*poses.shape[:-1], 3, 3)


def packed(rotation: Float[np.ndarray, "*n 3 3"], translation: Float[np.ndarray, "*n 3"]) -> PoseArray:
    """Rotations and translations as poses."""
    flat = rotation.reshape(*translation.shape[:-1], 9)
    return np.concatenate([flat, translation], -1).astype(np.float64, copy=False)


def compose(outer: PoseArray, inner: PoseArray) -> PoseArray:
    """First the inner motion, then the outer."""
    turn = rotations(outer)
    return packed(turn @ rotations(inner), (turn @ inner[..., 9:, None])[..., 0] + outer[..., 9:])


def inverse(poses: PoseArray) -> PoseArray:
    """The poses that move back."""
    back = np.swapaxes(rotations(poses), -1, -2)
    return packed(back, -(back @ poses[..., 9:, None])[..., 0])


def moved(pose: Pose, points: Points, normals: Points) -> tuple[Points, Points]:
    """Points and normals where a pose puts them."""
    return transformed(pose, points), normals @ rotations(pose).T.astype(np.float32)


def transformed(pose: Pose, points: Points) -> Points:
    """Points where a pose puts them."""
    return points @ rotations(pose).T.astype(np.float32) + pose[9:].astype(np.float32)


def close(one: Pose, two: Pose, middle: Float32[np.ndarray, "3"], degrees: float, distance: float) -> bool:
    """Whether two poses turn alike to some degrees, and bring the middle to places within a distance."""
    cosine = ((one[:9] * two[:9]).sum() - 1) / 2
    off = rotations(one - two) @ middle + one[9:] - two[9:]
    near = float(np.linalg.norm(off)) < distance
    return near and bool(np.degrees(np.arccos(np.clip(cosine, -1, 1))) < degrees)


def pose_rows(poses: Poses) -> PoseRows:
    """Poses as rows of 12 numbers."""
    return packed(poses.rotation.double().numpy(), poses.translation.double().numpy())


def poses_of(rows: PoseRows) -> Poses:
    """Rows of 12 numbers as poses."""
    numbers = torch.from_numpy(rows.astype(np.float32))
    return Poses(numbers[:, :9].reshape(-1, 3, 3), numbers[:, 9:])


class Touch(NamedTuple):
    """When a point counts as touching another surface."""

    reach: float
    """greatest distance from the nearest point, in spacings"""
    plane: float
    """greatest distance from the tangent plane there, in spacings"""
    facing: float
    """greatest cosine between the two outward normals"""


LOOSE, TIGHT = Touch(2.2, 1.2, -0.4), Touch(1.5, 0.5, -0.7)
PROPOSED, SETTLED = Touch(2.2, 1.2, -0.5), Touch(1.5, 0.6, -0.6)


class Contact(NamedTuple):
    """Points of one surface, moved to another: the nearest point there (OUTSIDE or INSIDE if none is near), the
    distance to it, the height above its tangent plane (both in spacings), and the cosine between the normals."""

    near: Int64[np.ndarray, "*c p"]
    far: Float32[np.ndarray, "*c p"]
    height: Float32[np.ndarray, "*c p"]
    facing: Float32[np.ndarray, "*c p"]

    @staticmethod
    def of(
        poses: PoseArray,
        points: Points,
        normals: Points,
        target: Target,
        spacing: float,
        rows: Int64[np.ndarray, "_ p"] | None = None,
    ) -> Contact:
        """The contact of points moved by each pose: of all, or of a row of them for each pose, or one row for all."""
        rows = np.arange(len(points))[None] if rows is None else np.ascontiguousarray(rows)
        near, numbers = meet(np.ascontiguousarray(poses.reshape(-1, 12)), points, normals, rows, *target)
        shape = (*poses.shape[:-1], rows.shape[1])
        near, numbers = near.reshape(shape), numbers.reshape(3, *shape)
        return Contact(near, numbers[0] / np.float32(spacing), numbers[1] / np.float32(spacing), numbers[2])

    def touching(self, limits: Touch) -> Bool[np.ndarray, "*c p"]:
        """Which of the points touch."""
        close = (self.near >= 0) & (self.far < limits.reach) & (np.abs(self.height) < limits.plane)
        return close & (self.facing < limits.facing)

    def buried(self, depth: float) -> Bool[np.ndarray, "*c p"]:
        """Which of the points are inside the other body, deeper than so many spacings.

        Beside a sharp rim the tangent plane of the nearest point is no measure: what counts is below that point rather
        than beside it.
        """
        below = (self.height < -depth) & (2 * self.height**2 > self.far**2)
        return (self.near == INSIDE) | ((self.near >= 0) & below)


def buried_share(
    poses: PoseArray, probe: Points, target: Target, spacing: float, depth: float = 1.0
) -> Float64[np.ndarray, "*c"]:
    """Share of the probe, moved by each pose, that is inside the body, deeper than so many spacings."""
    return np.asarray(Contact.of(poses, probe, probe, target, spacing).buried(depth).mean(-1))


@kernel
def meet(poses, points, normals, rows, voxels, others, other_normals):
    """For each pose and each of its points: the nearest other one (c, p), distance, height and cosine (3, c, p).

    `rows` are the points of each pose, or a single row for all.
    """
    near = np.empty((len(poses), rows.shape[1]), np.int64)
    numbers = np.zeros((3, len(poses), rows.shape[1]), np.float32)
    for c in range(len(poses)):
        pose, part = poses[c], rows[min(c, len(rows) - 1)]
        for k in range(len(part)):
            p, n = points[part[k]], normals[part[k]]
            x = pose[0] * p[0] + pose[1] * p[1] + pose[2] * p[2] + pose[9]
            y = pose[3] * p[0] + pose[4] * p[1] + pose[5] * p[2] + pose[10]
            z = pose[6] * p[0] + pose[7] * p[1] + pose[8] * p[2] + pose[11]
            j = look_up(x, y, z, voxels.low, voxels.side, voxels.directory, voxels.blocks)
            near[c, k] = j
            if j < 0:
                continue
            u, v, w = x - others[j, 0], y - others[j, 1], z - others[j, 2]
            m = other_normals[j]
            numbers[0, c, k] = np.sqrt(u * u + v * v + w * w)
            numbers[1, c, k] = u * m[0] + v * m[1] + w * m[2]
            for i in range(3):
                numbers[2, c, k] += m[i] * (pose[3 * i] * n[0] + pose[3 * i + 1] * n[1] + pose[3 * i + 2] * n[2])
    return near, numbers


def refine(
    poses: PoseArray,
    points: Points,
    normals: Points,
    target: Target,
    radii: tuple[float, float],
    rounds: int,
    rows: Int64[np.ndarray, "c p"] | None = None,
) -> PoseArray:
    """Poses after some rounds of symmetric point-to-plane ICP, within a radius that falls from the first to the last.

    Each pose is refined by all points, or by its row of them. A round solves for a small turn ω about the middle of the
    touching points and a shift τ: min Σ (n · (r + ω × (x − middle) + τ))², where x is half way between two
    points, r what is between them, and n the mean of their normals.
    """
    found, rows = poses.reshape(-1, 12), np.arange(len(points))[None] if rows is None else rows
    own, facing = points[rows].astype(np.float64), normals[rows].astype(np.float64)
    for radius in np.linspace(*radii, rounds):
        contact = Contact.of(found, points, normals, target, 1.0, rows)
        turn, near = rotations(found), np.maximum(contact.near, 0)
        used = (contact.near >= 0) & (contact.far <= radius) & (contact.facing <= -0.4)
        here, there = own @ np.swapaxes(turn, 1, 2) + found[:, None, 9:], target[1][near].astype(np.float64)
        normal = target[2][near] - facing @ np.swapaxes(turn, 1, 2)
        normal *= (used / np.maximum(np.linalg.norm(normal, axis=2), 1e-9))[..., None]
        count, halfway = used.sum(1), (here + there) / 2
        middle = (halfway * used[..., None]).sum(1) / np.maximum(count, 1)[:, None]
        motion = np.concatenate([np.cross(halfway - middle[:, None], normal), normal], 2)
        matrix = np.swapaxes(motion, 1, 2) @ motion
        vector = np.swapaxes(motion, 1, 2) @ ((there - here) * normal).sum(2)[..., None]
        # Where the break is flat nothing holds the pose, and damping keeps it.
        scale = np.trace(matrix[:, :3, :3], axis1=1, axis2=2) / 3
        damping = np.stack([scale] * 3 + [count] * 3, 1)
        matrix += 1e-3 * np.eye(6) * np.maximum(damping, 1e-30)[:, None]
        solved = np.linalg.solve(matrix, vector)[..., 0]
        spin = Rotation.from_rotvec(solved[:, :3]).as_matrix()
        shifted = (spin @ (found[:, 9:] - middle)[..., None])[..., 0] + middle + solved[:, 3:]
        found = np.where((count < 6)[:, None], found, packed(spin @ turn, shifted))
    return found.reshape(poses.shape)
