"""What matches say about poses: votes of each piece's matches, and clusters of pieces that hang together.

Votes are the synchronisation step of a graph connection Laplacian: a linear map on all poses at once. So on noisy poses
its answer is unbiased for the scaled true ones, and repeating it averages the noise over ever more pieces. Clusters
carry that to its limit: matches that don't contradict each other settle all relative poses within a cluster, so the
noisy poses of its members can be averaged as one. On boards, which know few places, they say which of those it is at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor

from diffassemble.assembly.forest import join
from diffassemble.core import Matches, Poses, turn_matrix
from diffassemble.core.thresholds import LIKELY, SURE
from diffassemble.network.encoders.image import TURNS

POWERS = (1, 2, 4, 8, 16)
"""rounds of voting after which votes are read"""
THRESHOLDS = (SURE, LIKELY, 0.1)
"""probabilities from which on matches join clusters"""


def vote_matrix(matches: Matches, count: int) -> Float[Tensor, "flat flat"]:
    """The sparse matrix that maps flattened poses of `count` pieces halfway to their matches' mean vote.

    Halfway, because a lattice is a checkerboard: whole steps would only ever mix pieces of one colour.
    A piece without matches stays where it is, and a true assembly is a fixed point.
    """
    dimension = matches.pose.translation.shape[-1]
    width = dimension + dimension**2
    rows, cols, factors = _blocks(matches.pose)
    everyone = torch.arange(count * width, device=matches.first.device)
    row = torch.cat([(matches.first[:, None] * width + rows).flatten(), everyone])
    col = torch.cat([(matches.second[:, None] * width + cols).flatten(), everyone])
    order = row.argsort(stable=True)
    starts = torch.cat([row.new_zeros(1), torch.bincount(row, minlength=count * width).cumsum(0)])
    total = matches.probability.new_zeros(count).index_add(0, matches.first, matches.probability)
    heard = 0.5 * (total > 1e-9)
    share = heard[matches.first] * matches.probability / total.clamp(min=1e-9)[matches.first]
    value = torch.cat([(share[:, None] * factors).flatten(), (1 - heard).repeat_interleave(width)])[order]
    parts = starts, col[order], value, (count * width, count * width)
    return torch.sparse_csr_tensor(*parts, device=value.device, check_invariants=False)


def _blocks(relative: Poses) -> tuple[Int[Tensor, "x"], Int[Tensor, "x"], Float[Tensor, "m x"]]:
    """Composition with `relative` as a matrix on [t, R]: where its entries stand, and their values for every match."""
    count, dimension = relative.translation.shape
    entries: list[tuple[int, int, Tensor]] = []
    for a in range(dimension):
        entries.append((a, a, relative.translation.new_ones(count)))  # t_first = t_second + R_second t_relative
        for c in range(dimension):
            seen = dimension + a * dimension + c
            entries.append((a, seen, relative.translation[:, c]))
            for b in range(dimension):  # R_first = R_second R_relative
                entries.append((dimension + a * dimension + b, seen, relative.rotation[:, c, b]))
    rows, cols, values = zip(*entries, strict=True)
    device = relative.translation.device
    return torch.tensor(rows, device=device), torch.tensor(cols, device=device), torch.stack(values, -1)


def cast_votes(
    matrix: Float[Tensor, "flat flat"], flat: Float[Tensor, "n width k"]
) -> Float[Tensor, "n votes width k"]:
    """Votes after 1, 2, 4, 8 and 16 rounds, for k sets of flattened poses at once."""
    votes = []
    current = flat.reshape(-1, flat.shape[-1])
    for round_number in range(1, POWERS[-1] + 1):
        current = matrix @ current
        if round_number in POWERS:
            votes.append(current.view(flat.shape))
    return torch.stack(votes, 1)


def flatten_poses(poses: Poses) -> Float[Tensor, "n width"]:
    """[translation, rotation row by row]: the order that vote matrices speak of."""
    return torch.cat([poses.translation, poses.rotation.flatten(1)], 1)


def unflatten_poses(flat: Float[Tensor, "n width"]) -> Poses:
    """Back from the flattened order."""
    dimension = round((flat.shape[1] + 0.25) ** 0.5 - 0.5)  # width = d + d²
    return Poses(flat[:, dimension:].unflatten(1, (dimension, dimension)), flat[:, :dimension])


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

    def reach(self, pairs: int = 2**22) -> Float[Tensor, "n two_d"]:
        """How far a piece's cluster extends beyond it along its own axes, forwards then backwards.

        So many `pairs` of pieces are compared at once.
        """
        rotation = self.frame.rotation
        if torch.equal(rotation, rotation.round()):  # quarter turns: what counts are the sides of the cluster's box
            return self._reach_of_box()
        every = torch.arange(len(self.label), device=self.label.device)
        return torch.cat([self._reach_of(pieces) for pieces in every.split(max(1, pairs // len(every)))])

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


def grow_clusters(
    matches: Matches, count: int, room: Float[Tensor, "n d"] | None = None, apart: float = 0.5
) -> list[Clusters]:
    """Clusters of all matches at least as probable as each of THRESHOLDS.

    A match that would put two pieces closer together than a share `apart` of its own distance is passed over, and so is
    one that would make a cluster too large for its board: `room` holds, for every piece, the sides of the board.
    """
    ranked = matches[matches.probability.argsort(descending=True, stable=True)]
    pairs = torch.stack([ranked.first, ranked.second], 1).cpu().numpy()
    dimension = matches.pose.translation.shape[-1]
    # In the plane z is 0 and the box is flat.
    relative = np.tile(np.eye(3, 4), (len(ranked), 1, 1))
    relative[:, :dimension, :dimension] = ranked.pose.rotation.double().cpu().numpy()
    relative[:, :dimension, 3] = ranked.pose.translation.double().cpu().numpy()
    closest = apart**2 * np.square(relative[..., 3]).sum(1)
    limits = np.zeros((count, 3))
    limits[:, 3 - dimension :] = np.inf if room is None else np.sort(room.double().cpu().numpy(), 1) + 1e-4
    label, frame = np.arange(count), np.tile(np.eye(3, 4), (count, 1, 1))
    trees = label, np.arange(count), np.ones(count, np.int64), frame
    none = np.zeros(0, np.int64)
    clusters, done = [], 0
    for threshold in THRESHOLDS:
        enough = int((ranked.probability.double() >= threshold).sum())
        chosen, refused = slice(done, enough), np.empty(enough - done, np.bool_)
        along = pairs[chosen], relative[chosen], enough - done, refused
        join(*along, *trees, closest[chosen], limits, none, none, 0, 0)
        clusters.append(_snapshot(label, frame[:, :dimension, [*range(dimension), 3]], matches.first.device))
        done = enough
    return clusters


def _snapshot(label: Int64[np.ndarray, "n"], frame: Float64[np.ndarray, "n d e"], device: torch.device) -> Clusters:
    """The clusters as they are now, told from the middle of each one's box."""
    translation = frame[:, :, -1]
    low, high = np.full_like(translation, np.inf), np.full_like(translation, -np.inf)
    np.minimum.at(low, label, translation)
    np.maximum.at(high, label, translation)
    centred = translation - (low[label] + high[label]) / 2
    rotation, centred = (torch.from_numpy(part.astype(np.float32, order="C")) for part in (frame[:, :, :-1], centred))
    return Clusters(torch.from_numpy(label.copy()).to(device), Poses(rotation.to(device), centred.to(device)))


@dataclass(frozen=True)
class BoardPosterior:
    """All poses that c clusters can take on their boards: four quarter turns, and each shift that keeps them within.

    `owner` is each piece's cluster; `shifts` are places of its frame's origin along x and y, of which `open` count.
    """

    owner: Int[Tensor, "n"]
    frame: Poses
    shifts: Float[Tensor, "c 4 2 j"]
    open: Bool[Tensor, "c 4 2 j"]

    def mean(self, noisy: Poses, alpha_bar: Float[Tensor, "n k"]) -> Poses:
        """The mean pose of a cluster's frame, told to every member, given noisy poses of all its members.

        Takes and gives k poses of every piece (n·k, piece by piece). All places are equally probable beforehand;
        then each counts by its likelihood under the Gaussian noise. Along x and y the shifts are independent.
        """
        samples = alpha_bar.shape[1]
        place, turn = noisy.translation.unflatten(0, (-1, samples)), noisy.rotation.unflatten(0, (-1, samples))
        offset, own_turn = self.frame.translation, self.frame.rotation
        count = self._total(torch.ones_like(alpha_bar))
        signal = (alpha_bar.sqrt() / (1 - alpha_bar)) / count[self.owner]
        signal, certain = self._total(signal), self._total(signal * alpha_bar.sqrt())
        quarter = turn_matrix(torch.arange(TURNS, device=place.device))

        seen = self._total(place[..., :, None] * offset[:, None, None, :] + turn @ own_turn[:, None].mT / 2)
        by_turn = signal[..., None] * torch.einsum("tab,ckab->ckt", quarter, seen)
        middle = torch.einsum("tab,cb->cta", quarter, self._total(offset))
        slope = signal[..., None, None] * self._total(place)[:, :, None] - certain[..., None, None] * middle[:, None]
        curve = (certain * count)[..., None, None, None] / 2
        shifts = self.shifts[:, None]
        by_shift = (slope[..., None] - curve * shifts) * shifts
        by_shift = by_shift.masked_fill(~self.open[:, None], torch.finfo(by_shift.dtype).min / 4)
        chance = torch.softmax(by_turn + by_shift.logsumexp(-1).sum(-1), -1)
        best = (by_shift.softmax(-1) * shifts).sum(-1)
        rotation = torch.einsum("ckt,tab->ckab", chance, quarter)
        translation = torch.einsum("ckt,cktd->ckd", chance, best)
        return Poses(rotation[self.owner].flatten(0, 1), translation[self.owner].flatten(0, 1))

    def _total(self, values: Float[Tensor, "n *rest"]) -> Float[Tensor, "c *rest"]:
        """The sum over the members of each cluster."""
        return values.new_zeros(len(self.shifts), *values.shape[1:]).index_add(0, self.owner, values)


def board_posterior(clusters: Clusters, room: Float[Tensor, "n 2"], pitch: Float[Tensor, "n"]) -> BoardPosterior:
    """The places of clusters on boards whose outermost cells are `room` apart along x and y, neighbours by `pitch`."""
    labels, owner = clusters.label.unique(return_inverse=True)

    def of_cluster(values: Tensor) -> Tensor:
        index = owner[:, None].expand_as(values)
        return values.new_zeros(len(labels), values.shape[1]).scatter_reduce(0, index, values, "amax")

    extent, room, step = 2 * of_cluster(clusters.frame.translation), of_cluster(room), of_cluster(pitch[:, None])
    turned = torch.stack([extent, extent.flip(1)] * (TURNS // 2), 1)
    spare = ((room[:, None] - turned) / step[:, None]).round()
    number = torch.arange(int(spare.max()) + 1, device=spare.device)
    shifts = (number - spare.clamp(min=0)[..., None] / 2) * step[:, None, None]
    return BoardPosterior(owner, clusters.frame, shifts, number <= spare[..., None])
