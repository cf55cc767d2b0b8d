"""Pieces that hang together: matings joined greedily, the most probable first.

Within a cluster all relative poses are settled, so the noisy poses of its members can be averaged as one: the
synchronisation step of `votes` carried to its limit, on matings that don't contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int, Int64
from torch import Tensor

from diffassemble.compatibility.joining import join
from diffassemble.geometry import Poses
from diffassemble.puzzle import Mates

THRESHOLDS = (0.9, 0.5, 0.1)
# How many pairs of pieces are looked at at once.
_BLOCK = 2**22


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
        count, device = len(self.label), self.label.device
        label = self.label.repeat_interleave(samples) * samples + torch.arange(samples, device=device).repeat(count)
        return label, self.frame[torch.arange(count, device=device).repeat_interleave(samples)]

    def reach(self) -> Float[Tensor, "n two_d"]:
        """How far a piece's cluster stretches beyond it along its own axes, forwards then backwards."""
        rotation = self.frame.rotation
        if torch.equal(rotation, rotation.round()):  # quarter turns: what counts are the sides of the cluster's box
            return self._reach_of_box()
        every = torch.arange(len(self.label), device=self.label.device)
        return torch.cat([self._reach_of(pieces) for pieces in every.split(max(1, _BLOCK // len(every)))])

    def _reach_of_box(self) -> Float[Tensor, "n two_d"]:
        place, index = self.frame.translation, self.label[:, None].expand_as(self.frame.translation)
        low, high = (
            torch.zeros_like(place).scatter_reduce(0, index, place, way, include_self=False) for way in ("amin", "amax")
        )
        above, below = high[self.label] - place, place - low[self.label]
        along, against = self.frame.rotation.clamp(min=0), (-self.frame.rotation).clamp(min=0)

        def seen(forth: Tensor, back: Tensor) -> Tensor:
            return torch.einsum("nc,nca->na", above, forth) + torch.einsum("nc,nca->na", below, back)

        return torch.cat([seen(along, against), seen(against, along)], -1)

    def _reach_of(self, pieces: Int[Tensor, "m"]) -> Float[Tensor, "m two_d"]:
        apart = self.frame.translation[None] - self.frame.translation[pieces, None]
        seen = torch.einsum("ijc,ica->ija", apart, self.frame.rotation[pieces])
        other = self.label[pieces, None] != self.label
        both = torch.cat([seen, -seen], -1).masked_fill(other[..., None], 0)
        return both.amax(1)


def grow_clusters(mates: Mates, count: int, room: Float[Tensor, "n d"] | None = None) -> list[Clusters]:
    """Clusters of all matings at least as probable as each of THRESHOLDS.

    A mating that would put two pieces closer together than half its own distance is passed over, and so is one that
    would make a cluster too large for its board: `room` holds, for every piece, the sides of the board.
    """
    ranked = mates[mates.weight.argsort(descending=True, stable=True)]
    pairs = torch.stack([ranked.first, ranked.second], 1).cpu().numpy()
    relative = _matrices(ranked.relative)
    closest = 0.25 * np.square(relative[:, :-1, -1]).sum(1)
    limits = (
        np.full((count, relative.shape[-1] - 1), np.inf)
        if room is None
        else np.sort(room.double().cpu().numpy(), 1) + 1e-4
    )
    label, following, size = np.arange(count), np.arange(count), np.ones(count, np.int64)
    frame = np.tile(np.eye(relative.shape[-1]), (count, 1, 1))
    clusters, done = [], 0
    for threshold in THRESHOLDS:
        enough = int((ranked.weight.double() >= threshold).sum())
        chosen = slice(done, enough)
        join(pairs[chosen], relative[chosen], closest[chosen], limits, label, following, size, frame)
        clusters.append(_snapshot(label, frame, mates.first.device))
        done = enough
    return clusters


def _matrices(poses: Poses) -> Float64[np.ndarray, "m e e"]:
    """Poses as matrices with one more row and column."""
    count, dimension = poses.translation.shape
    matrices = np.tile(np.eye(dimension + 1), (count, 1, 1))
    matrices[:, :-1, :-1] = poses.rotation.cpu().numpy()
    matrices[:, :-1, -1] = poses.translation.cpu().numpy()
    return matrices


def _snapshot(label: Int64[np.ndarray, "n"], frame: Float64[np.ndarray, "n e e"], device: torch.device) -> Clusters:
    """The clusters as they are now, told from the middle of each one's box."""
    translation = frame[:, :-1, -1]
    low, high = np.full_like(translation, np.inf), np.full_like(translation, -np.inf)
    np.minimum.at(low, label, translation)
    np.maximum.at(high, label, translation)
    centred = translation - (low[label] + high[label]) / 2
    rotation, centred = (torch.from_numpy(part.astype(np.float32, order="C")) for part in (frame[:, :-1, :-1], centred))
    return Clusters(torch.from_numpy(label.copy()).to(device), Poses(rotation.to(device), centred.to(device)))
