"""Pieces that hang together: matings joined greedily, the most probable first.

Within a cluster all relative poses are settled, so the noisy poses of its members can be averaged as one: the
synchronisation step of `votes` carried to its limit, on matings that don't contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Float, Int
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.puzzle import Mates

THRESHOLDS = (0.9, 0.5, 0.1)


@dataclass(frozen=True)
class Clusters:
    """`label` is the same for all members of a cluster; `frame` is each piece's pose in the frame of its cluster.

    The frame's origin is the middle of the box around the members.
    """

    label: Int[Tensor, "n"]
    frame: Poses

    def sizes(self) -> Int[Tensor, "n"]:
        """How many pieces each piece's cluster has."""
        return torch.bincount(self.label, minlength=len(self.label))[self.label]

    def placed(self, poses: Poses, samples: int) -> Poses:
        """Where a cluster's frame stands according to the mean of its members, told to every member.

        Takes and gives k poses of every piece (n·k, piece by piece). Linear in the poses.
        """
        label, frame = self._repeated(samples)
        size = torch.bincount(label, minlength=len(label)).clamp(min=1)

        def mean(values: Tensor) -> Tensor:
            total = torch.zeros_like(values).index_add(0, label, values)
            return (total / size.view(-1, *[1] * (values.dim() - 1)))[label]

        rotation = mean(poses.rotation @ frame.rotation.transpose(-1, -2))
        centre = (rotation @ mean(frame.translation)[..., None])[..., 0]
        return Poses(rotation, mean(poses.translation) - centre)

    def members(self, placed: Poses, samples: int) -> Poses:
        """The poses of all pieces, given where their clusters' frames stand."""
        return placed @ self._repeated(samples)[1]

    def _repeated(self, samples: int) -> tuple[Int[Tensor, "nk"], Poses]:
        count = len(self.label)
        label = self.label.repeat_interleave(samples) * samples + torch.arange(samples).repeat(count)
        return label, self.frame[torch.arange(count).repeat_interleave(samples)]

    def reach(self) -> Float[Tensor, "n two_d"]:
        """How far a piece's cluster stretches beyond it along its own axes, forwards then backwards."""
        apart = self.frame.translation[None] - self.frame.translation[:, None]
        seen = torch.einsum("ijc,ica->ija", apart, self.frame.rotation)
        other = self.label[:, None] != self.label
        both = torch.cat([seen, -seen], -1).masked_fill(other[..., None], 0)
        return both.amax(1)


def grow_clusters(mates: Mates, count: int) -> list[Clusters]:
    """Clusters of all matings at least as probable as each of THRESHOLDS.

    A mating that would put two pieces closer together than half its own distance is passed over.
    """
    probability = mates.weight.numpy().astype(np.float64)
    order = np.argsort(-probability, kind="stable")
    labels, rotations, translations = _grow(
        order,
        mates.first.numpy(),
        mates.second.numpy(),
        mates.relative.rotation.numpy().astype(np.float64),
        mates.relative.translation.numpy().astype(np.float64),
        probability,
        np.array(THRESHOLDS),
        count,
    )
    return [
        Clusters(torch.from_numpy(label), Poses(torch.from_numpy(rotation).float(), _centred(label, translation)))
        for label, rotation, translation in zip(labels, rotations, translations, strict=True)
    ]


def _centred(label: NDArray[np.int64], translation: NDArray[np.float64]) -> Float[Tensor, "n d"]:
    """Translations from the middle of each cluster's box."""
    low, high = np.full_like(translation, np.inf), np.full_like(translation, -np.inf)
    np.minimum.at(low, label, translation)
    np.maximum.at(high, label, translation)
    return torch.from_numpy(translation - (low[label] + high[label]) / 2).float()


@njit(cache=True)
@no_type_check  # wrapped by a type checker, as in tests, it could not be compiled
def _grow(
    order: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    relative_rotation: NDArray[np.float64],
    relative_translation: NDArray[np.float64],
    probability: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    count: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Kruskal's way through the matings; a snapshot of all clusters as each threshold is passed."""
    levels, d = len(thresholds), relative_translation.shape[1]
    label, size, following = np.arange(count), np.ones(count, np.int64), np.arange(count)  # `following`: rings
    rotation, translation = np.zeros((count, d, d)), np.zeros((count, d))
    for i in range(count):
        rotation[i] = np.eye(d)
    labels = np.zeros((levels, count), np.int64)
    rotations, translations = np.zeros((levels, count, d, d)), np.zeros((levels, count, d))
    level = 0
    for index in range(len(order) + 1):
        while level < levels and (index == len(order) or probability[order[index]] < thresholds[level]):
            labels[level], rotations[level], translations[level] = label, rotation, translation
            level += 1
        if level == levels:
            break
        mating = order[index]
        turn, step = relative_rotation[mating], relative_translation[mating]
        mover, stayer = first[mating], second[mating]
        if label[mover] == label[stayer]:
            continue
        closest = 0.25 * np.sum(step * step)
        if size[label[mover]] > size[label[stayer]]:  # the smaller cluster moves: invert the mating
            mover, stayer = stayer, mover
            turn = np.ascontiguousarray(turn.T)
            step = -turn @ step
        target = rotation[stayer] @ turn
        swing = target @ np.ascontiguousarray(rotation[mover].T)
        shift = rotation[stayer] @ step + translation[stayer] - swing @ translation[mover]
        if _collides(mover, stayer, following, translation, swing, shift, closest):
            continue
        source, goal = label[mover], label[stayer]
        member = mover
        while True:
            rotation[member] = swing @ rotation[member]
            translation[member] = swing @ translation[member] + shift
            label[member] = goal
            member = following[member]
            if member == mover:
                break
        following[mover], following[stayer] = following[stayer], following[mover]
        size[goal] += size[source]
    return labels, rotations, translations


@njit(cache=True)
@no_type_check  # wrapped by a type checker, as in tests, it could not be compiled
def _collides(
    mover: int,
    stayer: int,
    following: NDArray[np.int64],
    translation: NDArray[np.float64],
    swing: NDArray[np.float64],
    shift: NDArray[np.float64],
    closest: float,
) -> bool:
    """Whether moving the mover's ring would bring one of its pieces too close to one of the stayer's ring."""
    member = mover
    while True:
        moved = swing @ translation[member] + shift
        other = stayer
        while True:
            apart = moved - translation[other]
            if np.sum(apart * apart) < closest:
                return True
            other = following[other]
            if other == stayer:
                break
        member = following[member]
        if member == mover:
            break
    return False
