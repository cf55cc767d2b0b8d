"""Poses that matches imply: estimates of every pose by votes of matches and by clusters of pieces that hang together.

Votes repeat half steps towards the mean of the poses that matches imply: the synchronisation step of a graph connection
Laplacian. Clusters are its limit: matches fix all relative poses, and the noisy poses of all members are averaged.

On boards estimates are linear in the noisy poses, and a cluster's posterior over the board is added. Off boards a match
counts by the probability that it is true given the noisy poses; lengths are in sizes of the whole, and accuracies of
matches in units: the size of the whole for broken objects, twice that of a typical flat piece.

Shapes: n pieces, m matches, k samples, o estimates, d dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.assembly.forest import join
from diffassemble.core import Locks, Matches, Poses, turn_matrix
from diffassemble.core.thresholds import LIKELY, SURE
from diffassemble.diffusion.rotations import ROTATIONS, Rotations, angle_between, nearest_rotation
from diffassemble.network.encoders.image import TURNS

Places = Float[Tensor, "*n d"]
POWERS = (1, 2, 4, 8, 16)
"""rounds of voting after which votes are read"""
THRESHOLDS = (SURE, LIKELY, 0.1)
"""probabilities from which on matches join clusters"""
ESTIMATES = 1 + len(POWERS) + len(THRESHOLDS)
NUMBERS = 2 * ESTIMATES + ESTIMATES * (ESTIMATES - 1)
"""of every piece: how far its matches support each estimate, and angles and distances between estimates"""


@dataclass(frozen=True)
class EstimateConfig:
    """Accuracy of matches, and the weight of poses against them; the networks were trained with these numbers."""

    spread: float = 0.25
    """deviation of places within the whole, in sizes of the whole"""
    turn: float = 0.09
    """error of true matches, in radians"""
    shift: float = 0.02
    """error of true matches, in units"""
    shown_turn: float = 0.15
    """poses support a match if they differ from it by less than about this angle, in radians"""
    shown_shift: float = 0.05
    """the same for places, in units"""
    against: float = -15.0
    """least log odds that rotation and place can each add to a match"""
    favour: float = 5.0
    """most log odds that rotation and place can each add to a match"""
    faint: float = 0.02
    """sum of the probabilities of a piece's matches at which they move it half as far as certain ones"""


DEFAULT = EstimateConfig()


@dataclass(frozen=True)
class Clusters:
    """Clusters by `label`; `frame` is each piece's pose about the middle of the box around its cluster."""

    label: Int[Tensor, "n"]
    frame: Poses

    def sizes(self) -> Int[Tensor, "n"]:
        """The number of pieces in each piece's cluster."""
        return torch.bincount(self.label, minlength=len(self.label))[self.label]

    def members(self, turn: Rotations, shift: Places) -> tuple[Rotations, Places]:
        """Poses (n, k) of all pieces, given those of their clusters' frames."""
        frame = self.frame.rotation[:, None], self.frame.translation[:, None, :, None]
        return turn @ frame[0], shift + (turn @ frame[1])[..., 0]

    def placed(
        self, rotation: Rotations, place: Places, locked: Bool[Tensor, "n"] | None = None, rigid: bool = False
    ) -> tuple[Rotations, Places]:
        """Poses (n, k) by the mean of the clusters' members, or of those that are locked; its rotation made `rigid`."""
        label = self.label
        weight = own = torch.ones_like(label, dtype=place.dtype)
        if locked is not None:
            own = locked.to(place)
            fixed = torch.zeros_like(own).index_add(0, label, own)[label] > 0
            weight = torch.where(fixed, own, 1.0)
        weight = weight / torch.zeros_like(own).index_add(0, label, weight)[label].clamp(min=1e-9)

        def mean(values: Tensor) -> Tensor:
            scaled = weight.view(-1, *[1] * (values.dim() - 1)) * values
            return torch.zeros_like(values).index_add(0, label, scaled)[label]

        turn = mean(rotation @ self.frame.rotation[:, None].mT)
        turn = nearest_rotation(turn) if rigid else turn
        shift = mean(place) - (turn @ mean(self.frame.translation[:, None])[..., None])[..., 0]
        return self.members(turn, shift)

    def reach(self, pairs: int = 2**22) -> Float[Tensor, "n two_d"]:
        """How far a piece's cluster extends beyond it along its own axes, forwards then backwards."""
        rotation, place = self.frame.rotation, self.frame.translation
        if torch.equal(rotation, rotation.round()):  # quarter turns: two corners of the cluster's box are enough
            index, zeros = self.label[:, None].expand_as(place), torch.zeros_like(place)
            corners = [zeros.scatter_reduce(0, index, place, way, include_self=False) for way in ("amin", "amax")]
            seen = torch.stack([torch.einsum("nc,nca->na", c[self.label] - place, rotation) for c in corners])
            return torch.cat([seen.amax(0), -seen.amin(0)], -1)
        parts = []
        for rows in torch.arange(len(place), device=place.device).split(max(1, pairs // len(place))):
            seen = torch.einsum("ijc,ica->ija", place[None] - place[rows, None], rotation[rows])
            other = self.label[rows, None] != self.label
            parts.append(torch.cat([seen, -seen], -1).masked_fill(other[..., None], 0).amax(1))
        return torch.cat(parts)


def grow_clusters(
    matches: Matches, count: int, room: Float[Tensor, "n d"] | None = None, apart: float = 0.5
) -> list[Clusters]:
    """Clusters of all matches at least as probable as each of THRESHOLDS.

    A match that would put two pieces closer together than a share `apart` of its own distance is refused, and so is
    one that would make a cluster too large for its board: `room` holds, for every piece, the sides of the board.
    """
    ranked = matches[matches.probability.argsort(descending=True, stable=True)]
    pairs = torch.stack([ranked.first, ranked.second], 1).cpu().numpy()
    dimension, device = matches.pose.translation.shape[-1], matches.first.device
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
        # A copy, in frames whose origin is the middle of the box of each cluster.
        translation = frame[:, :dimension, 3]
        low, high = np.full_like(translation, np.inf), np.full_like(translation, -np.inf)
        np.minimum.at(low, label, translation)
        np.maximum.at(high, label, translation)
        parts = frame[:, :dimension, :dimension], translation - (low[label] + high[label]) / 2
        poses = Poses(*(torch.from_numpy(part.astype(np.float32, order="C")).to(device) for part in parts))
        clusters.append(Clusters(torch.from_numpy(label.copy()).to(device), poses))
        done = enough
    return clusters


@dataclass(frozen=True)
class BoardPosterior:
    """All poses that c clusters can take on their boards: four quarter turns, and each shift that keeps them within.

    `owner` is each piece's cluster; `shifts` are places of its frame's origin along x and y, of which `open` count.
    """

    owner: Int[Tensor, "n"]
    frame: Poses
    shifts: Float[Tensor, "c 4 2 j"]
    open: Bool[Tensor, "c 4 2 j"]

    @staticmethod
    def of(clusters: Clusters, room: Float[Tensor, "n 2"], pitch: Float[Tensor, "n"]) -> BoardPosterior:
        """The places on boards whose outermost cells are `room` apart along x and y, neighbours by `pitch`."""
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

    def mean(self, rotation: Rotations, place: Places, alpha_bar: Float[Tensor, "n k"]) -> tuple[Rotations, Places]:
        """The mean pose (n, k) of each piece's cluster frame, given noisy poses (n, k) of all members.

        All places are equally probable a priori; each is weighted by its likelihood under the Gaussian noise. Along x
        and y the shifts are independent.
        """
        offset, own_turn = self.frame.translation, self.frame.rotation
        count = self._total(torch.ones_like(alpha_bar))
        signal = (alpha_bar.sqrt() / (1 - alpha_bar)) / count[self.owner]
        signal, certain = self._total(signal), self._total(signal * alpha_bar.sqrt())
        quarter = turn_matrix(torch.arange(TURNS, device=place.device))

        seen = self._total(place[..., :, None] * offset[:, None, None, :] + rotation @ own_turn[:, None].mT / 2)
        by_turn = signal[..., None] * torch.einsum("tab,ckab->ckt", quarter, seen)
        middle = torch.einsum("tab,cb->cta", quarter, self._total(offset))
        slope = signal[..., None, None] * self._total(place)[:, :, None] - certain[..., None, None] * middle[:, None]
        curve = (certain * count)[..., None, None, None] / 2
        shifts = self.shifts[:, None]
        by_shift = (slope[..., None] - curve * shifts) * shifts
        by_shift = by_shift.masked_fill(~self.open[:, None], torch.finfo(by_shift.dtype).min / 4)
        chance = torch.softmax(by_turn + by_shift.logsumexp(-1).sum(-1), -1)
        best = (by_shift.softmax(-1) * shifts).sum(-1)
        mean_turn = torch.einsum("ckt,tab->ckab", chance, quarter)
        return mean_turn[self.owner], torch.einsum("ckt,cktd->ckd", chance, best)[self.owner]

    def _total(self, values: Float[Tensor, "n *rest"]) -> Float[Tensor, "c *rest"]:
        """The sum over the members of each cluster."""
        return values.new_zeros(len(self.shifts), *values.shape[1:]).index_add(0, self.owner, values)


def implied(
    matches: Matches, rotation: Float[Tensor, "n *k d d"], place: Float[Tensor, "n *k d"]
) -> tuple[Float[Tensor, "m *k d d"], Float[Tensor, "m *k d"]]:
    """Poses (m, …) of each match's first piece given those of the second; linear in the poses."""
    extra = (1,) * (place.dim() - 2)
    relative = matches.pose
    turn = relative.rotation.view(-1, *extra, *relative.rotation.shape[1:])
    shift = relative.translation.view(-1, *extra, relative.translation.shape[1], 1)
    theirs = rotation[matches.second]
    return theirs @ turn, place[matches.second] + (theirs @ shift)[..., 0]


def residuals(
    matches: Matches, rotation: Float[Tensor, "n *k d d"], place: Float[Tensor, "n *k d"]
) -> tuple[Float[Tensor, "m *k"], Float[Tensor, "m *k"]]:
    """By how much poses differ from those that each match implies for its first piece: angle and distance."""
    turned, moved = implied(matches, rotation, place)
    first = matches.first
    return angle_between(rotation[first], turned), (place[first] - moved).norm(dim=-1)


def with_locked(locks: Locks | None, rotation: Rotations, place: Places) -> tuple[Rotations, Places]:
    """Poses (n, k, …) of all pieces, with the locked ones at their locked poses."""
    if locks is None:
        return rotation, place
    held, poses = locks.held[:, None, None], locks.poses
    rotation = torch.where(held[..., None], poses.rotation[:, None], rotation)
    return rotation, torch.where(held, poses.translation[:, None], place)


def votes(
    matches: Matches,
    rotation: Float[Tensor, "n k d d"],
    place: Float[Tensor, "n k d"],
    weight: Float[Tensor, "m k"],
    locks: Locks | None,
    faint: float,
) -> tuple[Float[Tensor, "n k v d d"], Float[Tensor, "n k v d"]]:
    """Poses after 1, 2, 4, 8 and 16 rounds, each halfway to the weighted mean of what the matches imply.

    Halfway, because a lattice is a checkerboard: whole steps would only ever mix pieces of one colour. A piece whose
    matches' weights sum to `faint` goes half as far, and a true assembly is a fixed point.
    """
    total = weight.new_zeros(len(place), weight.shape[1]).index_add(0, matches.first, weight)
    step = 0.5 * total / (total + faint)
    share = step[matches.first] * weight / total.clamp(min=1e-9)[matches.first]
    rotations, places = [], []
    for number in range(1, POWERS[-1] + 1):
        turned, moved = implied(matches, rotation, place)
        rotation = ((1 - step)[..., None, None] * rotation).index_add(0, matches.first, share[..., None, None] * turned)
        place = ((1 - step)[..., None] * place).index_add(0, matches.first, share[..., None] * moved)
        rotation, place = with_locked(locks, rotation, place)
        if number in POWERS:
            rotations.append(rotation)
            places.append(place)
    return torch.stack(rotations, 2), torch.stack(places, 2)


def true_given_poses(
    matches: Matches,
    rotation: Float[Tensor, "n k d d"],
    place: Float[Tensor, "n k d"],
    turn_variance: Float[Tensor, "n k"],
    shift_variance: Float[Tensor, "n k"],
    unit: Float[Tensor, "n"],
    config: EstimateConfig = DEFAULT,
) -> Float[Tensor, "m k"]:
    """The probability that each match is true, given poses with these variances an axis; wrong matches are uniform."""
    angle, far = residuals(matches, rotation, place)
    first, second = matches.first, matches.second
    reach = matches.pose.translation.square().sum(-1)[:, None]
    turn = turn_variance[first] + turn_variance[second] + config.turn**2
    shift = shift_variance[first] + shift_variance[second] + reach * turn_variance[second]
    shift = shift + (config.shift * unit[first, None]).square()
    # Densities of the residuals, against those of uniform rotations and of all places within a whole.
    dimension = place.shape[-1]
    group = ROTATIONS[dimension]
    by_turn = math.log(group.volume) - group.axes / 2 * torch.log(2 * math.pi * turn) - angle.square() / (2 * turn)
    by_shift = -dimension / 2 * torch.log(2 * math.pi * shift) - far.square() / (2 * shift)
    # Much noise is no normal distribution on a sphere, and is no evidence.
    known = torch.exp(-2 * turn), (config.spread**2 / (config.spread**2 + shift)).square()
    bounds = config.against, config.favour
    seen = known[0] * by_turn.clamp(*bounds) + known[1] * by_shift.clamp(*bounds)
    chance = matches.probability.clamp(1e-4, 1 - 1e-4)
    return torch.sigmoid(torch.log(chance / (1 - chance))[:, None] + seen)


class Estimates(NamedTuple):
    """Poses of n pieces in k samples by o estimates, numbers that describe them, and the matches' support of each."""

    rotation: Float[Tensor, "n k o d d"]
    place: Float[Tensor, "n k o d"]
    numbers: Float[Tensor, "n k q"]
    support: Float[Tensor, "n k o"]


def estimates(
    rotation: Float[Tensor, "n k d d"],
    place: Float[Tensor, "n k d"],
    alpha_bar: Float[Tensor, "n k"],
    turn_variance: Float[Tensor, "n k"],
    span: float,
    matches: Matches,
    clusters: Sequence[Clusters],
    locks: Locks,
    unit: Float[Tensor, "n"],
    config: EstimateConfig = DEFAULT,
) -> Estimates:
    """Estimates by the noisy poses, by votes and by clusters; `turn_variance` is the rotations' noise."""
    noise, spread = (1 - alpha_bar) / span**2, config.spread
    shrink = alpha_bar.sqrt() * spread**2 / (alpha_bar * spread**2 + noise)
    free = (~locks.held[:, None]).to(place)
    rotation, place = with_locked(locks, rotation, place * shrink[..., None])
    shift_variance = free * spread**2 * noise / (alpha_bar * spread**2 + noise)
    weight = true_given_poses(matches, rotation, place, free * turn_variance, shift_variance, unit, config)
    turned, moved = votes(matches, rotation, place, weight, locks, config.faint)
    joined = [one.placed(rotation, place, locks.held, rigid=True) for one in clusters]
    rotations = torch.cat([rotation[:, :, None], nearest_rotation(turned), *(r[:, :, None] for r, _ in joined)], 2)
    places = torch.cat([place[:, :, None], moved, *(p[:, :, None] for _, p in joined)], 2)
    # The matches of each piece that agree with each estimate: the sum of their probabilities, and its share.
    angle, far = residuals(matches, rotations, places)
    far = far / unit[matches.first, None, None]
    shown = torch.exp(-0.5 * ((angle / config.shown_turn).square() + (far / config.shown_shift).square()))
    known = matches.probability[:, None, None]
    total = shown.new_zeros(places.shape[:3]).index_add(0, matches.first, known * shown)
    share = total / (known.new_zeros(len(place), 1, 1).index_add(0, matches.first, known) + 0.1)
    one, two = torch.triu_indices(ESTIMATES, ESTIMATES, 1, device=place.device)
    turns = angle_between(rotations[:, :, one], rotations[:, :, two]) / math.pi
    apart = (places[:, :, one] - places[:, :, two]).norm(dim=-1) / (spread * unit[:, None, None])
    return Estimates(rotations, places, torch.cat([torch.log1p(total), share, turns, apart.clamp(max=4)], -1), share)


def settled(
    matches: Matches,
    rotation: Float[Tensor, "n k d d"],
    place: Float[Tensor, "n k d"],
    locks: Locks,
    unit: Float[Tensor, "n"],
    config: EstimateConfig = DEFAULT,
) -> tuple[Float[Tensor, "n k d d"], Float[Tensor, "n k d"]]:
    """Poses after many votes of the matches that they nearly agree with."""
    turn_variance = torch.full(place.shape[:2], config.turn**2)
    shift_variance = (config.shift * unit[:, None]).square().expand_as(turn_variance)
    for _ in range(2):
        weight = true_given_poses(matches, rotation, place, turn_variance, shift_variance, unit, config)
        turned, moved = votes(matches, rotation, place, weight, locks, config.faint)
        rotation, place = nearest_rotation(turned[:, :, -1]), moved[:, :, -1]
    return rotation, place


def shown_evidence(
    matches: Matches,
    rotation: Float[Tensor, "n d d"],
    place: Float[Tensor, "n d"],
    unit: Float[Tensor, "n"],
    config: EstimateConfig = DEFAULT,
) -> tuple[Float[Tensor, ""], Float[Tensor, "n"]]:
    """Evidence of the matches that an assembly agrees with, in all and for every piece; each pair of pieces once.

    A match of probability p counts −ln(1 − p), the less the more the poses differ from it: also one that is less
    likely than not is better than none.
    """
    angle, far = residuals(matches, rotation[:, None], place[:, None])
    far = far / unit[matches.first, None]
    shown = torch.exp(-0.5 * ((angle / config.turn).square() + (far / (2 * config.shift)).square()))[:, 0]
    chance = matches.probability.clamp(max=0.995)
    worth = -torch.log(1 - chance) * shown
    # Of several matches of one pair only the best one counts.
    count = len(place)
    pair = matches.first * count + matches.second
    best = worth.new_zeros(count * count).scatter_reduce(0, pair, worth, "amax").view(count, count)
    best = torch.maximum(best, best.T)
    return best.triu().sum(), best.sum(1)
