"""Fragments that were joined: one body without the seams, and what is left of the breaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float64

from diffassemble.compatibility.fracture.buckets import nearest_within
from diffassemble.compatibility.fracture.fragments import Fragment
from diffassemble.compatibility.fracture.sides import Body, Break, Side, joined, make_body, make_side

Pose = Float64[np.ndarray, "12"]
STAY = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])


def composed(outer: Pose, inner: Pose) -> Pose:
    """First the inner motion, then the outer."""
    rotation = outer[:9].reshape(3, 3)
    turned = rotation @ inner[:9].reshape(3, 3)
    return np.concatenate([turned.ravel(), rotation @ inner[9:] + outer[9:]])


class Cluster:
    """Some fragments in one frame; sides are made when first asked for."""

    def __init__(self, fragments: Sequence[Fragment], poses: Mapping[int, Pose]) -> None:
        self.fragments, self.poses = fragments, dict(poses)
        self.members = tuple(sorted(self.poses))
        self.area = sum(fragments[i].area for i in self.members)
        self._sides: dict[int, Side] = {}
        self._body: Body | None = None

    def with_other(self, other: Cluster, pose: Pose) -> Cluster:
        """Both, in the frame of the other, in which this one stands at the pose."""
        moved = {piece: composed(pose, own) for piece, own in self.poses.items()}
        return Cluster(self.fragments, {**other.poses, **moved})

    @property
    def points(self) -> int:
        """How many points all breaks of the members have at level 0."""
        return sum(int(self.fragments[i].broken(0).sum()) for i in self.members)

    @property
    def body(self) -> Body:
        """The surface of the whole cluster at level 0."""
        if self._body is None:
            spacing = self.fragments[0].spacing
            points, normals = [], []
            for piece in self.members:
                rotation = self.poses[piece][:9].reshape(3, 3).T.astype(np.float32)
                whole = self.fragments[piece].layers.levels[0]
                points.append(whole.points @ rotation + self.poses[piece][9:].astype(np.float32))
                normals.append(whole.normals @ rotation)
            kept = np.concatenate(free_points(points, normals, 1.3 * spacing, -0.3))
            if not kept.any():
                kept[:] = True
            every, facing = np.concatenate(points)[kept], np.concatenate(normals)[kept]
            self._body = make_body(np.ascontiguousarray(every), np.ascontiguousarray(facing), spacing)
        return self._body

    def broken(self, level: int) -> Break:
        """What is left of the breaks at a level: points that no other member covers."""
        spacing = self.fragments[0].spacing / 2**level
        parts = [self.fragments[piece].breaks(level).moved(self.poses[piece]) for piece in self.members]
        free = free_points([p.points for p in parts], [p.smooth for p in parts], 2.2 * spacing, -0.2)
        return joined([part.part(kept) for part, kept in zip(parts, free, strict=True)])

    def side(self, level: int) -> Side | None:
        """Break and body, ready to be matched; none where hardly any break is left."""
        if level not in self._sides:
            face = self.broken(level)
            if len(face.points) < 20:
                return None
            self._sides[level] = make_side(face, self.body, self.fragments[0].spacing / 2**level)
        return self._sides[level]


def free_points(
    points: Sequence[np.ndarray], normals: Sequence[np.ndarray], reach: float, facing: float
) -> list[Bool[np.ndarray, "p"]]:
    """Which points of each member have no point of another member near that faces them."""
    free = [np.ones(len(part), bool) for part in points]
    lows = [part.min(0) - reach if len(part) else np.full(3, np.inf) for part in points]
    highs = [part.max(0) + reach if len(part) else np.full(3, -np.inf) for part in points]
    for a in range(len(points)):
        for b in range(len(points)):
            if a == b or (lows[a] > highs[b]).any() or (lows[b] > highs[a]).any():
                continue
            near = nearest_within(points[a], points[b], reach)
            found = near >= 0
            opposed = (normals[a][found] * normals[b][near[found]]).sum(1) < facing
            free[a][np.flatnonzero(found)[opposed]] = False
    return free
