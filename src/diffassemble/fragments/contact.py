"""How two surfaces meet when one is moved towards the other, and the pose at which they meet best (ICP).

A pose is 12 numbers: rotation row by row, then translation; it moves the points of the first surface into the second's
frame.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64
from numba import types
from numba.extending import intrinsic

from diffassemble.core import Poses
from diffassemble.fragments.spatial import INSIDE, Voxels, inner, kernel, look_up

Pose = Float64[np.ndarray, "12"]
PoseRows = Float64[np.ndarray, "_ 12"]
Points = Float32[np.ndarray, "_ 3"]
Target = tuple[Voxels, Points, Points]
"""A surface to be met: voxels, points and normals."""
IDENTITY = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])


class Touch(NamedTuple):
    """When a point counts as lying on another surface."""

    reach: float
    """greatest distance from the nearest point, in spacings"""
    plane: float
    """greatest distance from the tangent plane there, in spacings"""
    facing: float
    """greatest cosine between the two outward normals"""


LOOSE, TIGHT = Touch(2.2, 1.2, -0.4), Touch(1.5, 0.5, -0.7)


class Contact(NamedTuple):
    """Points of one surface, seen from another: the nearest point there (−1 if there is none), the distance to it, the
    height above its tangent plane (both in spacings), and the cosine between the normals."""

    near: Int64[np.ndarray, "p"]
    far: Float32[np.ndarray, "p"]
    height: Float32[np.ndarray, "p"]
    facing: Float32[np.ndarray, "p"]

    @staticmethod
    def of(pose: Pose, points: Points, normals: Points, target: Target, spacing: float) -> Contact:
        """The contact of points that are moved by the pose."""
        near, numbers = meet(pose, points, normals, *target)
        return Contact(near, numbers[:, 0] / spacing, np.abs(numbers[:, 1]) / spacing, numbers[:, 2])

    def touching(self, limits: Touch) -> Bool[np.ndarray, "p"]:
        """Which of the points touch."""
        close = (self.near >= 0) & (self.far < limits.reach) & (self.height < limits.plane)
        return close & (self.facing < limits.facing)


def compose(outer: Pose, inner: Pose) -> Pose:
    """First the inner motion, then the outer."""
    rotation = outer[:9].reshape(3, 3)
    turned = rotation @ inner[:9].reshape(3, 3)
    return np.concatenate([turned.ravel(), rotation @ inner[9:] + outer[9:]])


def moved(pose: Pose, points: Points, normals: Points) -> tuple[Points, Points]:
    """Points and normals where a pose puts them."""
    return transformed(pose, points), normals @ pose[:9].reshape(3, 3).T.astype(np.float32)


def transformed(pose: Pose, points: Points) -> Points:
    """Points where a pose puts them."""
    return points @ pose[:9].reshape(3, 3).T.astype(np.float32) + pose[9:].astype(np.float32)


def close(one: Pose, two: Pose, middle: Float32[np.ndarray, "3"], degrees: float, distance: float) -> bool:
    """Whether two poses turn alike to some degrees, and bring the middle to places within a distance."""
    cosine = ((one[:9] * two[:9]).sum() - 1) / 2
    off = (one[:9] - two[:9]).reshape(3, 3) @ middle + one[9:] - two[9:]
    near = float(np.linalg.norm(off)) < distance
    return near and bool(np.degrees(np.arccos(np.clip(cosine, -1, 1))) < degrees)


def pose_rows(poses: Poses) -> PoseRows:
    """Poses as rows of 12 numbers."""
    return torch.cat([poses.rotation.flatten(1), poses.translation], 1).double().numpy()


def poses_of(rows: PoseRows) -> Poses:
    """Rows of 12 numbers as poses."""
    moved = torch.from_numpy(rows.astype(np.float32))
    return Poses(moved[:, :9].reshape(-1, 3, 3), moved[:, 9:])


@intrinsic
def fma(_: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once, as BLAS does; numba takes many times longer to compile a call of BLAS."""
    number = types.float64
    return number(number, number, number), lambda _context, builder, _signature, values: builder.fma(*values)


@inner
def rotation_about(x, y, z, c, s):
    """The rotation about a unit axis by an angle of cosine c and sine s, as three rows."""
    d = 1 - c
    return (
        (c + x * x * d, x * y * d - z * s, x * z * d + y * s),
        (y * x * d + z * s, c + y * y * d, y * z * d - x * s),
        (z * x * d - y * s, z * y * d + x * s, c + z * z * d),
    )


@inner
def turn(pose, n):
    """A direction, turned."""
    return (
        pose[0] * n[0] + pose[1] * n[1] + pose[2] * n[2],
        pose[3] * n[0] + pose[4] * n[1] + pose[5] * n[2],
        pose[6] * n[0] + pose[7] * n[1] + pose[8] * n[2],
    )


@inner
def place(pose, p):
    """A point, moved."""
    x, y, z = turn(pose, p)
    return x + pose[9], y + pose[10], z + pose[11]


@inner
def touched(pose, point, normal, voxels, points, normals, reach, plane, facing):
    """Which point of the other break a moved point lies on, near it, in its plane, and facing it; or −1."""
    x, y, z = place(pose, point)
    j = look_up(x, y, z, voxels.low, voxels.side, voxels.directory, voxels.blocks)
    if j < 0:
        return -1
    u, v, w = x - points[j, 0], y - points[j, 1], z - points[j, 2]
    a, b, c = normals[j, 0], normals[j, 1], normals[j, 2]
    if u * u + v * v + w * w > reach * reach or abs(u * a + v * b + w * c) > plane:
        return -1
    p, q, r = turn(pose, normal)
    return j if p * a + q * b + r * c < facing else -1


@inner
def buried(pose, point, voxels, points, normals, depth):
    """Whether a moved point lies inside the other body, deeper than `depth`."""
    x, y, z = place(pose, point)
    j = look_up(x, y, z, voxels.low, voxels.side, voxels.directory, voxels.blocks)
    if j < 0:
        return j == INSIDE
    u, v, w = x - points[j, 0], y - points[j, 1], z - points[j, 2]
    height = u * normals[j, 0] + v * normals[j, 1] + w * normals[j, 2]
    # Beside a sharp rim the nearest point's plane says little: the place must lie rather below it than beside it.
    return height < -depth and 2 * height * height > u * u + v * v + w * w


@kernel
def count_buried(pose, body, step, voxels, points, normals, depth):
    """How many of every `step`-th of the points lie inside the other body."""
    count = 0
    for i in range(0, len(body), step):
        if buried(pose, body[i], voxels, points, normals, depth):
            count += 1
    return count


@kernel
def count_touching(pose, own, own_normals, voxels, points, normals, reach, plane, facing):
    """How many of the points lie on the other break."""
    count = 0
    for i in range(len(own)):
        if touched(pose, own[i], own_normals[i], voxels, points, normals, reach, plane, facing) >= 0:
            count += 1
    return count


@kernel
def meet(pose, own, own_normals, voxels, points, normals):
    """For each point: its nearest on the other break or −1, distance, height above it, and product of normals."""
    near = np.full(len(own), -1, np.int64)
    numbers = np.zeros((len(own), 3), np.float32)
    for i in range(len(own)):
        x, y, z = place(pose, own[i])
        j = look_up(x, y, z, voxels.low, voxels.side, voxels.directory, voxels.blocks)
        if j < 0:
            continue
        u, v, w = x - points[j, 0], y - points[j, 1], z - points[j, 2]
        p, q, r = turn(pose, own_normals[i])
        near[i] = j
        numbers[i, 0] = np.sqrt(u * u + v * v + w * w)
        numbers[i, 1] = u * normals[j, 0] + v * normals[j, 1] + w * normals[j, 2]
        numbers[i, 2] = p * normals[j, 0] + q * normals[j, 1] + r * normals[j, 2]
    return near, numbers


@kernel
def inverse(pose):
    """The pose that moves back."""
    back = np.empty(12)
    for i in range(3):
        for j in range(3):
            back[3 * i + j] = pose[3 * j + i]
    for i in range(3):
        back[9 + i] = -(back[3 * i] * pose[9] + back[3 * i + 1] * pose[10] + back[3 * i + 2] * pose[11])
    return back


def refine(
    pose: Pose, own: Points, own_normals: Points, target: Target, first: float, last: float, rounds: int
) -> Pose:
    """The pose after some rounds of symmetric point-to-plane ICP, within a radius that falls from `first` to `last`."""
    found = pose.copy()
    refine_some(found, own, own_normals, np.arange(len(own)), *target, first, last, rounds)
    return found


@kernel
def refine_some(pose, own, own_normals, part, voxels, points, normals, first, last, rounds):
    """Refine a pose in place, by a part of the points."""
    for number in range(rounds):
        radius = first + (last - first) * number / max(1, rounds - 1)
        matrix, vector, count, middle = _equations(pose, own, own_normals, part, voxels, points, normals, radius)
        if count < 6:
            break
        _solve(matrix, vector)
        _move(pose, vector, middle)


@inner
def _solve(matrix, vector):
    """Solve for a symmetric, positive matrix by Cholesky's way; the answer takes the place of the vector."""
    size = len(vector)
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = np.sqrt(max(total, 1e-30)) if i == j else total / matrix[j, j]
    for i in range(size):
        for k in range(i):
            vector[i] -= matrix[i, k] * vector[k]
        vector[i] /= matrix[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            vector[i] -= matrix[k, i] * vector[k]
        vector[i] /= matrix[i, i]


@inner
def _equations(pose, own, own_normals, part, voxels, points, normals, radius):
    """Normal equations of the motion (turn about the middle of the matched points, then shift)."""
    matrix, vector, middle = np.zeros((6, 6)), np.zeros(6), np.zeros(3)
    pairs = np.empty((len(part), 7))
    count = 0
    for i in part:
        x, y, z = place(pose, own[i])
        j = look_up(x, y, z, voxels.low, voxels.side, voxels.directory, voxels.blocks)
        if j < 0:
            continue
        u, v, w = points[j, 0] - x, points[j, 1] - y, points[j, 2] - z
        if u * u + v * v + w * w > radius * radius:
            continue
        p, q, r = turn(pose, own_normals[i])
        a, b, c = normals[j, 0] - p, normals[j, 1] - q, normals[j, 2] - r
        if p * normals[j, 0] + q * normals[j, 1] + r * normals[j, 2] > -0.4:
            continue
        length = np.sqrt(a * a + b * b + c * c)
        pairs[count, 0], pairs[count, 1], pairs[count, 2] = x + u / 2, y + v / 2, z + w / 2
        pairs[count, 3], pairs[count, 4], pairs[count, 5] = a / length, b / length, c / length
        pairs[count, 6] = (u * a + v * b + w * c) / length
        for k in range(3):
            middle[k] += pairs[count, k]
        count += 1
    for k in range(3):
        middle[k] /= max(1, count)
    row = np.empty(6)
    for i in range(count):
        x, y, z = pairs[i, 0] - middle[0], pairs[i, 1] - middle[1], pairs[i, 2] - middle[2]
        a, b, c = pairs[i, 3], pairs[i, 4], pairs[i, 5]
        row[0], row[1], row[2] = y * c - z * b, z * a - x * c, x * b - y * a
        row[3], row[4], row[5] = a, b, c
        for k in range(6):
            vector[k] += row[k] * pairs[i, 6]
            for m in range(6):
                matrix[k, m] += row[k] * row[m]
    scale = (matrix[0, 0] + matrix[1, 1] + matrix[2, 2]) / 3
    for k in range(6):
        # Where the break is flat nothing holds the pose: then it shall stay.
        matrix[k, k] += 1e-3 * scale if k < 3 else 1e-3 * count
    return matrix, vector, count, middle


@inner
def _move(pose, motion, middle):
    """Turn the pose about the middle by a rotation vector, and shift it, in place."""
    angle = np.sqrt(motion[0] ** 2 + motion[1] ** 2 + motion[2] ** 2)
    x, y, z, c, s = 0.0, 0.0, 0.0, 1.0, 0.0
    if angle > 1e-12:
        x, y, z, c, s = motion[0] / angle, motion[1] / angle, motion[2] / angle, np.cos(angle), np.sin(angle)
    old, spin = pose.copy(), rotation_about(x, y, z, c, s)
    u, v, w = old[9] - middle[0], old[10] - middle[1], old[11] - middle[2]
    for i in range(3):
        p, q, r = spin[i]
        for j in range(3):
            pose[3 * i + j] = fma(r, old[6 + j], fma(q, old[3 + j], p * old[j]))
        pose[9 + i] = fma(r, w, fma(p, u, q * v)) + middle[i] + motion[3 + i]
