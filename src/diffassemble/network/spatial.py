"""What matches say about poses in the plane or in space, where some pieces are held at poses that are known.

An opinion is a pose of every piece: the noisy one, votes of its matches, and where clusters put it. Rotations are
averaged as matrices, and the nearest rotation taken (the chordal mean). A match votes by the probability that it is
true, given how well the noisy poses agree with it: the less noise, the more that tells. All numbers that describe
opinions are distances and angles between poses, so they stay the same when the whole is turned and moved.

Places are told in sizes of the whole. How exactly matches tell them goes with a unit of length that every piece has:
the size of the whole for broken objects, twice that of a typical piece in the plane, where pieces are many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.core import Matches
from diffassemble.diffusion.spaces import ROTATIONS
from diffassemble.network.evidence import POWERS, THRESHOLDS, Clusters

Rotations = Float[Tensor, "*n d d"]
Places = Float[Tensor, "*n d"]

OPINIONS = 1 + len(POWERS) + len(THRESHOLDS)
NUMBERS = 2 * OPINIONS + OPINIONS * (OPINIONS - 1)
"""of every piece: how far its matches support each opinion, and how far opinions are apart in turn and place"""


@dataclass(frozen=True)
class OpinionConfig:
    """How exact matches are, and how much poses tell of them; the weights were trained with these numbers."""

    spread: float = 0.25
    """deviation of places within the whole, in sizes of the whole"""
    turn: float = 0.09
    """error of true matches, in radians"""
    shift: float = 0.02
    """error of true matches, in units"""
    shown_turn: float = 0.15
    """poses bear a match out if they differ from it by less than about this angle, in radians"""
    shown_shift: float = 0.05
    """the same for places, in units"""
    against: float = -15.0
    """least log odds that rotation and place can each add to a match"""
    favour: float = 5.0
    """most log odds that rotation and place can each add to a match"""
    faint: float = 0.02
    """sum of the probabilities of a piece's matches at which they move it half as far as sure ones"""


DEFAULT = OpinionConfig()


class Held(NamedTuple):
    """Which pieces stand at poses that are known, and these."""

    pieces: Bool[Tensor, "n"]
    rotation: Float[Tensor, "n d d"]
    place: Float[Tensor, "n d"]

    def applied(self, rotation: Rotations, place: Places) -> tuple[Rotations, Places]:
        """Poses (n, …) of all pieces with the held ones where they stand."""
        between = (1,) * (place.dim() - 2)
        held = self.pieces.view(-1, *between, 1)
        known = tuple(part.view(-1, *between, *part.shape[1:]) for part in (self.rotation, self.place))
        return torch.where(held[..., None], known[0], rotation), torch.where(held, known[1], place)


class Opinions(NamedTuple):
    """Poses of n pieces in k samples by o opinions, numbers that describe them, and how far matches support each."""

    rotation: Float[Tensor, "n k o d d"]
    place: Float[Tensor, "n k o d"]
    numbers: Float[Tensor, "n k q"]
    support: Float[Tensor, "n k o"]


def nearest_rotation(matrices: Rotations) -> Rotations:
    """The chordal mean of what was added up."""
    # Where all cancels out nothing is nearest; any rotation will do.
    flat = matrices.flatten(0, -3) + 1e-6 * torch.eye(matrices.shape[-1], device=matrices.device)
    return ROTATIONS[matrices.shape[-1]].nearest(flat).view_as(matrices)


def angle_between(one: Float[Tensor, "*#n d d"], two: Float[Tensor, "*#n d d"]) -> Float[Tensor, "*n"]:
    """In radians, by the distance of the matrices, which is exact for small angles, too."""
    far = (one - two).square().sum((-1, -2))
    return 2 * torch.asin((far / 8).clamp(0, 1).sqrt())


def residuals(
    matches: Matches, rotation: Float[Tensor, "n *k d d"], place: Float[Tensor, "n *k d"]
) -> tuple[Float[Tensor, "m *k"], Float[Tensor, "m *k"]]:
    """By how much poses differ from what each match says of its first piece: angle and distance."""
    told_rotation, told_place = told(matches, rotation, place)
    first = matches.first
    return angle_between(rotation[first], told_rotation), (place[first] - told_place).norm(dim=-1)


def told(matches: Matches, rotation: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
    """Where each match puts its first piece if the second stands where it does; linear in the poses."""
    extra = (1,) * (place.dim() - 2)
    relative = matches.pose
    turn = relative.rotation.view(-1, *extra, *relative.rotation.shape[1:])
    shift = relative.translation.view(-1, *extra, relative.translation.shape[1], 1)
    theirs = rotation[matches.second]
    return theirs @ turn, place[matches.second] + (theirs @ shift)[..., 0]


def true_given_poses(
    matches: Matches,
    rotation: Float[Tensor, "n k d d"],
    place: Float[Tensor, "n k d"],
    turn_variance: Float[Tensor, "n k"],
    shift_variance: Float[Tensor, "n k"],
    unit: Float[Tensor, "n"],
    config: OpinionConfig = DEFAULT,
) -> Float[Tensor, "m k"]:
    """The probability that each match is true, given poses with so much noise an axis; wrong ones say anything."""
    angle, far = residuals(matches, rotation, place)
    first, second = matches.first, matches.second
    reach = matches.pose.translation.square().sum(-1)[:, None]
    turn = turn_variance[first] + turn_variance[second] + config.turn**2
    shift = shift_variance[first] + shift_variance[second] + reach * turn_variance[second]
    shift = shift + (config.shift * unit[first, None]).square()
    # Densities at what is seen, beside those of all rotations and of all places of a whole alike.
    dimension = place.shape[-1]
    group = ROTATIONS[dimension]
    by_turn = math.log(group.volume) - group.axes / 2 * torch.log(2 * math.pi * turn) - angle.square() / (2 * turn)
    by_shift = -dimension / 2 * torch.log(2 * math.pi * shift) - far.square() / (2 * shift)
    # Much noise is no normal distribution on a sphere, and tells nothing.
    known = torch.exp(-2 * turn), (config.spread**2 / (config.spread**2 + shift)).square()
    bounds = config.against, config.favour
    seen = known[0] * by_turn.clamp(*bounds) + known[1] * by_shift.clamp(*bounds)
    chance = matches.probability.clamp(1e-4, 1 - 1e-4)
    return torch.sigmoid(torch.log(chance / (1 - chance))[:, None] + seen)


def votes(
    matches: Matches,
    rotation: Float[Tensor, "n k d d"],
    place: Float[Tensor, "n k d"],
    weight: Float[Tensor, "m k"],
    held: Held,
    config: OpinionConfig = DEFAULT,
) -> tuple[Float[Tensor, "n k v d d"], Float[Tensor, "n k v d"]]:
    """Where matches put the pieces after 1, 2, 4, 8 and 16 rounds, each halfway to the mean of what they say."""
    total = weight.new_zeros(place.shape[:2]).index_add(0, matches.first, weight)
    heard = 0.5 * total / (total + config.faint)
    share = heard[matches.first] * weight / total.clamp(min=1e-9)[matches.first]
    stays = 1 - heard
    rotations, places = [], []
    for number in range(1, POWERS[-1] + 1):
        turned, moved = told(matches, rotation, place)
        rotation = (stays[..., None, None] * rotation).index_add(0, matches.first, share[..., None, None] * turned)
        place = (stays[..., None] * place).index_add(0, matches.first, share[..., None] * moved)
        rotation, place = held.applied(rotation, place)
        if number in POWERS:
            rotations.append(rotation)
            places.append(place)
    return nearest_rotation(torch.stack(rotations, 2)), torch.stack(places, 2)


def placed_clusters(
    clusters: Clusters, rotation: Float[Tensor, "n k d d"], place: Float[Tensor, "n k d"], held: Held
) -> tuple[Float[Tensor, "n k d d"], Float[Tensor, "n k d"]]:
    """Every piece where its cluster stands by the mean of the members; where some are held, by those alone."""
    label, count = clusters.label, len(clusters.label)
    own = held.pieces.to(place)
    fixed = own.new_zeros(count).index_add(0, label, own)[label] > 0
    weight = torch.where(fixed, own, 1.0)
    weight = weight / own.new_zeros(count).index_add(0, label, weight)[label].clamp(min=1e-9)

    def mean(values: Tensor) -> Tensor:
        scaled = weight.view(-1, *[1] * (values.dim() - 1)) * values
        return torch.zeros_like(values).index_add(0, label, scaled)[label]

    frame, offset = clusters.frame.rotation[:, None], clusters.frame.translation[:, None]
    turn = nearest_rotation(mean(rotation @ frame.mT))
    shift = mean(place) - (turn @ mean(offset)[..., None])[..., 0]
    return turn @ frame, shift + (turn @ offset[..., None])[..., 0]


def supported(
    matches: Matches,
    rotation: Float[Tensor, "n k o d d"],
    place: Float[Tensor, "n k o d"],
    unit: Float[Tensor, "n"],
    config: OpinionConfig = DEFAULT,
) -> tuple[Float[Tensor, "n k o"], Float[Tensor, "n k o"]]:
    """How far an assembly shows the matches of each piece: the sum of their probabilities, and its share of all."""
    angle, far = residuals(matches, rotation, place)
    far = far / unit[matches.first, None, None]
    shown = torch.exp(-0.5 * ((angle / config.shown_turn).square() + (far / config.shown_shift).square()))
    known = matches.probability[:, None, None]
    total = shown.new_zeros(place.shape[:3]).index_add(0, matches.first, known * shown)
    every = known.new_zeros(len(place), 1, 1).index_add(0, matches.first, known)
    return total, total / (every + 0.1)


def opinions(
    rotation: Float[Tensor, "n k d d"],
    place: Float[Tensor, "n k d"],
    alpha_bar: Float[Tensor, "n k"],
    turn_variance: Float[Tensor, "n k"],
    span: float,
    matches: Matches,
    clusters: Sequence[Clusters],
    held: Held,
    unit: Float[Tensor, "n"],
    config: OpinionConfig = DEFAULT,
) -> Opinions:
    """What noisy poses, votes and clusters say; `turn_variance` is the rotations' noise, places have unit noise/span.

    The noisy places are brought to where they are most probably, given how far pieces lie from the middle.
    """
    noise, spread = (1 - alpha_bar) / span**2, config.spread
    shrink = alpha_bar.sqrt() * spread**2 / (alpha_bar * spread**2 + noise)
    free = (~held.pieces[:, None]).to(place)
    rotation, place = held.applied(rotation, place * shrink[..., None])
    shift_variance = free * spread**2 * noise / (alpha_bar * spread**2 + noise)
    weight = true_given_poses(matches, rotation, place, free * turn_variance, shift_variance, unit, config)
    found = [votes(matches, rotation, place, weight, held, config)]
    for one in clusters:
        turned, moved = placed_clusters(one, rotation, place, held)
        found.append((turned[:, :, None], moved[:, :, None]))
    rotations = torch.cat([rotation[:, :, None], *(turned for turned, _ in found)], 2)
    places = torch.cat([place[:, :, None], *(moved for _, moved in found)], 2)
    total, share = supported(matches, rotations, places, unit, config)
    one, two = torch.triu_indices(OPINIONS, OPINIONS, 1, device=place.device)
    turns = angle_between(rotations[:, :, one], rotations[:, :, two]) / math.pi
    apart = (places[:, :, one] - places[:, :, two]).norm(dim=-1) / (spread * unit[:, None, None])
    return Opinions(rotations, places, torch.cat([torch.log1p(total), share, turns, apart.clamp(max=4)], -1), share)


def settled(
    matches: Matches,
    rotation: Float[Tensor, "n k d d"],
    place: Float[Tensor, "n k d"],
    held: Held,
    unit: Float[Tensor, "n"],
    config: OpinionConfig = DEFAULT,
) -> tuple[Float[Tensor, "n k d d"], Float[Tensor, "n k d"]]:
    """Poses after many votes of the matches that they nearly show."""
    turn_variance = torch.full(place.shape[:2], config.turn**2)
    shift_variance = (config.shift * unit[:, None]).square().expand_as(turn_variance)
    for _ in range(2):
        weight = true_given_poses(matches, rotation, place, turn_variance, shift_variance, unit, config)
        turned, moved = votes(matches, rotation, place, weight, held, config)
        rotation, place = turned[:, :, -1], moved[:, :, -1]
    return rotation, place


def shown_evidence(
    matches: Matches,
    rotation: Float[Tensor, "n d d"],
    place: Float[Tensor, "n d"],
    unit: Float[Tensor, "n"],
    config: OpinionConfig = DEFAULT,
) -> tuple[Float[Tensor, ""], Float[Tensor, "n"]]:
    """What the matches that an assembly shows are worth, in all and for every piece; each pair once.

    A match of probability p is worth −ln(1 − p), the less the more the poses differ from it: also one that is less
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
