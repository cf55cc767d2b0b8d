"""Matching of free outlines: which arcs of two rims were one before the break.

1. seeds       every stretch of every rim is laid against every other (`seeds`); a network keeps the possible ones
2. contacts    these are refined until the rims coincide (`contact`), and judged again
3. rivals      each is judged among those for the same arcs: an arc has one true partner
4. gap         where confident contacts show uniform erosion, all is searched again at the distance that was lost
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Complex64, Float, Float32, Int64
from torch import Tensor, nn

from diffassemble.core import Matches, OutlinePieces, Poses
from diffassemble.core.settings import Width
from diffassemble.network.pretrained import Pretrained
from diffassemble.outlines.contact import FEATURES, SIGNED, describe, refine
from diffassemble.outlines.rims import RIMS, RimConfig, Rims, rims_of, smoothed

SAMPLES = 20
"""points of a stretch"""
RIVALRY = 7
"""numbers of a candidate among its rivals (`arcs.rivalry`)"""


@dataclass(frozen=True)
class SeedConfig:
    """One length of stretches that are compared; lengths are working pixels (`rims`)."""

    length: float
    smooth: float
    """deviation of the filter that smooths the rim"""
    blur: float
    """residual that costs 1: how far rims of broken pieces stray from each other at this length"""
    colour: float
    """difference of colours that costs 1, in units of `Rims.like`; 0: colours are not compared"""
    step: float = 4.0
    """distance of stretches along the rim; the time of the comparison grows with its inverse square"""
    of_pair: int = 60
    """seeds of a pair, at most …"""
    of_piece: int = 1500
    """… and of a piece with all others"""


@dataclass(frozen=True)
class ArcSearchConfig:
    """The search of contacts; lengths are working pixels (`rims`), angles radians, evidence log odds.

    Seeds and counts are those of the networks' training; the gap was chosen on torn training photographs.
    """

    rims: RimConfig = RIMS
    seeds: tuple[SeedConfig, ...] = (
        SeedConfig(length=24.0, smooth=1.5, blur=1.5, colour=0.7),
        SeedConfig(length=40.0, smooth=2.0, blur=2.0, colour=0.7),
        SeedConfig(length=80.0, smooth=3.0, blur=3.0, colour=0.0),
        SeedConfig(length=80.0, smooth=3.0, blur=3.0, colour=0.7),
        SeedConfig(length=60.0, smooth=4.0, blur=4.0, colour=1.0),
    )
    refined: int = 16
    """seeds of a pair that are refined; time is proportional to it"""
    kept: int = 5
    """matches of a pair"""
    same_place: float = 7.0
    """poses of a pair that are nearer to each other than this, …"""
    same_turn: float = 0.1
    """… and turned by less, are the same"""
    least: float = -6.0
    """log odds of a seed or contact below which it is dropped"""
    rounds: int = 12
    """steps of refinement, of points within …"""
    reach: float = 12.0
    """… this distance at first"""
    gaps: tuple[float, ...] = tuple(float(gap) for gap in range(0, 25, 2))
    """gaps that are tried for uniform erosion, in steps of the precision that refinement reaches"""
    gap_least: float = 1.4
    """log odds (0.8) of the contacts on which the gap is measured: …"""
    gap_contacts: tuple[int, int] = (4, 24)
    """… at least and at most so many"""
    gap_excess: float = 1.7
    """a gap may deviate along the seam so many times as much as touching rims, which were moved until they fit"""
    searched_share: float = 0.5
    """share of the gap at which the second search is made: ragged rims touch with their tips"""


ARC_SEARCH = ArcSearchConfig()


@dataclass(frozen=True)
class ArcConfig:
    """Sizes of the networks."""

    width: Width = 32


class Judge(nn.Module):
    """Two hidden layers on inputs of zero mean and unit deviation; gives log odds."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("deviation", torch.ones(inputs))
        self.layers = nn.ModuleList([nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, 1)])

    def forward(self, numbers: Float[Tensor, "m f"]) -> Float[Tensor, "m"]:
        """Log odds; inputs farther than 5 deviations from the mean count as 5."""
        hidden = ((numbers - self.mean) / self.deviation).clamp(-5, 5)
        for layer in list(self.layers)[:-1]:
            hidden = F.silu(layer(hidden))
        return self.layers[-1](hidden)[:, 0]


class ArcModel(Pretrained):
    """Four judges: of seeds, of contacts after refinement, of these among their rivals, and of implied contacts.

    A contact is implied if its pose follows from those of other pieces. It is not the best of a search, so its log odds
    are those among equally many true and false ones: evidence that may be added up.
    """

    config_class = ArcConfig

    def __init__(self, config: ArcConfig) -> None:
        super().__init__()
        self.config = config
        self.seeds = Judge(FEATURES, config.width)
        self.contacts = Judge(FEATURES, config.width)
        self.rivals = Judge(RIVALRY, config.width // 2)
        self.following = Judge(FEATURES, config.width)

    @torch.inference_mode()
    def judge(self, judge: str, numbers: Float32[np.ndarray, "m f"]) -> Float32[np.ndarray, "m"]:
        """Log odds by one of the judges from numbers as `contact.describe` or `arcs.rivalry` give them."""
        if len(numbers) == 0:
            return np.zeros(0, np.float32)
        given = torch.from_numpy(numbers)
        return getattr(self, judge)(given if judge == "rivals" else unskewed(given)).numpy()


def unskewed(numbers: Float[Tensor, "m f"]) -> Float[Tensor, "m f"]:
    """The same features, with the logarithm of those that are never negative and mostly small."""
    skewed = torch.ones(FEATURES, dtype=torch.bool)
    skewed[SIGNED] = False
    return torch.where(skewed, (numbers.clamp(min=0) + 0.05).log(), numbers)


class Candidates(NamedTuple):
    """m poses of pairs of pieces: of the first in the frame of the second, in working pixels.

    `features` are those of `contact.describe`, `arcs` bits for what touches, `logit` log odds without rivals.
    """

    first: Int64[np.ndarray, "m"]
    second: Int64[np.ndarray, "m"]
    poses: Float32[np.ndarray, "m 4"]
    features: Float32[np.ndarray, "m f"]
    arcs: Int64[np.ndarray, "m 2"]
    logit: Float32[np.ndarray, "m"]


@cache
def bundled_model() -> ArcModel:
    """The networks that come with the package."""
    return ArcModel.from_pretrained("arcs")


def match_arcs(pieces: OutlinePieces, model: ArcModel | None = None, config: ArcSearchConfig = ARC_SEARCH) -> Matches:
    """All likely contacts of free outlines, the probable ones first; slots number those of one pair."""
    model, rims = model or bundled_model(), rims_of(pieces, config.rims)
    found, logit = _among_rivals(rims, model, config)
    if (gap := usual_gap(rims, found, logit, config)) > 0:
        found, logit = _among_rivals(rims._replace(gap=config.searched_share * gap), model, config)
    order = np.argsort(-logit, kind="stable")
    found, count = Candidates(*(column[order] for column in found)), len(order)
    chances = [torch.from_numpy(odds).double().sigmoid().float() for odds in (logit[order], found.logit)]
    turns, shifts = torch.from_numpy(found.poses).split(2, 1)
    cosine, sine = turns.unbind(1)
    # Candidates of one pair are numbered in this order.
    pair = found.first * len(pieces) + found.second
    same = np.argsort(pair, kind="stable")
    slot = np.empty(count, np.int64)
    slot[same] = np.arange(count) - np.searchsorted(pair[same], pair[same])
    return Matches(
        torch.from_numpy(found.first),
        torch.from_numpy(found.second),
        Poses(torch.stack([cosine, -sine, sine, cosine], 1).reshape(-1, 2, 2), shifts / rims.scale),
        torch.from_numpy(slot),
        torch.stack([chances[0], 1 - torch.arange(count) / max(count, 1), chances[1]], 1),
    )


def usual_gap(rims: Rims, found: Candidates, logit: Float32[np.ndarray, "m"], config: ArcSearchConfig) -> float:
    """The distance of true neighbours after uniform erosion, 0 without: where confident contacts are most parallel.

    Eroded rims are no longer alike: bulges have shrunk and bays have grown. They run parallel at the distance lost.
    """
    fewest, most = config.gap_contacts
    sure = np.flatnonzero(logit > config.gap_least)
    sure = sure[np.argsort(-logit[sure], kind="stable")][:most]
    if len(sure) < fewest:
        return 0.0
    deviation = np.zeros((len(config.gaps), len(sure)), np.float32)
    for row, gap in enumerate(config.gaps):
        wider, poses = rims._replace(gap=gap), found.poses[sure].copy()
        poses[:, 2:] *= 1 + gap / np.maximum(np.hypot(poses[:, 2], poses[:, 3]), 1.0)[:, None]
        for column, number in enumerate(sure):
            refine(wider, found.first[number], found.second[number], poses[column : column + 1], 15, 10.0)
        deviation[row] = contacts_at(wider, found.first[sure], found.second[sure], poses)[0][:, 3]
    # Differences below a twentieth of a pixel mean nothing.
    typical = np.exp(np.log(deviation + 0.05).mean(1))
    best = 1 + int(typical[1:].argmin())
    return config.gaps[best] if typical[best] < config.gap_excess * typical[0] else 0.0


def _among_rivals(rims: Rims, model: ArcModel, config: ArcSearchConfig) -> tuple[Candidates, Float32[np.ndarray, "m"]]:
    """The few likely contacts of every pair, and their log odds among all rivals."""
    found = best_of_each(find_refined(rims, model, config), config.kept, config)
    return found, model.judge("rivals", rivalry(found, len(rims.cells)))


def find_refined(rims: Rims, model: ArcModel, config: ArcSearchConfig = ARC_SEARCH) -> Candidates:
    """The likeliest seeds of every pair, refined and judged again."""
    count, none = len(rims.cells), np.zeros(0, np.int64)
    every = [(stretches(rims, seeds), seeds) for seeds in config.seeds]
    parts = [judged(rims, model, "contacts", none, none, np.zeros((0, 4), np.float32))]
    for first in range(count - 1):
        seeds = [seed_poses(found, first, rims, own) for found, own in every]
        poses = [np.concatenate(own) for own in zip(*seeds, strict=True)]
        seconds = np.repeat(np.arange(first + 1, count), [len(own) for own in poses])
        likely = judged(rims, model, "seeds", np.full(len(seconds), first), seconds, np.concatenate(poses))
        chosen = best_of_each(likely, config.refined, config)
        for _, second, own in pairs_of(chosen.first, chosen.second):
            refine(rims, first, second, chosen.poses[own], config.rounds, config.reach)
        parts.append(judged(rims, model, "contacts", chosen.first, chosen.second, chosen.poses))
    return Candidates(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def judged(
    rims: Rims,
    model: ArcModel,
    judge: str,
    first: Int64[np.ndarray, "m"],
    second: Int64[np.ndarray, "m"],
    poses: Float32[np.ndarray, "m 4"],
) -> Candidates:
    """Poses, ordered by pairs, with the features of their contacts, and the log odds that a judge gives these."""
    features, arcs = contacts_at(rims, first, second, poses)
    return Candidates(first, second, poses, features, arcs, model.judge(judge, features))


def contacts_at(
    rims: Rims, first: Int64[np.ndarray, "m"], second: Int64[np.ndarray, "m"], poses: Float32[np.ndarray, "m 4"]
) -> tuple[Float32[np.ndarray, "m f"], Int64[np.ndarray, "m 2"]]:
    """The features of contacts at poses, and bits for the arcs that touch."""
    features, arcs = np.zeros((len(poses), FEATURES), np.float32), np.zeros((len(poses), 2), np.int64)
    for one, two, own in pairs_of(first, second):
        describe(rims, one, two, poses[own], features[own], arcs[own])
    return features, arcs


def pairs_of(first: Int64[np.ndarray, "m"], second: Int64[np.ndarray, "m"]) -> Iterator[tuple[int, int, slice]]:
    """Runs of candidates of one pair: its pieces, and which candidates."""
    begins = np.flatnonzero(np.diff(first, prepend=-1) | np.diff(second, prepend=-1))
    for begin, end in pairwise([*begins, len(first)]):
        yield first[begin], second[begin], slice(begin, end)


def best_of_each(found: Candidates, most: int, config: ArcSearchConfig = ARC_SEARCH) -> Candidates:
    """Of every pair at most so many poses, the likeliest first, no two of them alike."""
    order = np.lexsort((-found.logit, found.second, found.first))
    order = order[found.logit[order] >= config.least]
    kept: list[int] = []
    for _, _, own in pairs_of(found.first[order], found.second[order]):
        left = order[own]
        for _ in range(most):
            kept.append(left[0])
            c, s, x, y = found.poses[left].T
            near = np.hypot(x - x[0], y - y[0]) < config.same_place
            left = left[~(near & (c * c[0] + s * s[0] > 1 - config.same_turn**2 / 2))]
            if not len(left):
                break
    return Candidates(*(column[np.array(kept, np.int64)] for column in found))


def rivalry(found: Candidates, count: int) -> Float32[np.ndarray, "m 7"]:
    """What distinguishes a candidate among rivals: log odds, its own and the highest of others on either arc and of its
    pair (−8 without); its length, how far it can slide, and log n. Rivals share a third of the smaller arc."""
    pair, bits = found.first * count + found.second, found.arcs.view(np.uint64)
    numbers = np.full((len(pair), RIVALRY), -8.0, np.float32)
    numbers[:, 0], numbers[:, 4], numbers[:, 5] = found.logit, found.features[:, 0], found.features[:, 6]
    numbers[:, 6] = np.log(count)
    for piece in range(count):
        row, side = np.nonzero(np.stack([found.first, found.second], 1) == piece)
        own, logit = bits[row, side], found.logit[row]
        size, shared = np.bitwise_count(own).astype(int), np.bitwise_count(own[:, None] & own).astype(int)
        other = pair[row][:, None] != pair[row]
        rival = other & (3 * shared >= np.minimum(size[:, None], size))
        numbers[row, 1 + side] = np.where(rival, logit, -8.0).max(1, initial=-8.0)
        same = ~other & ~np.eye(len(row), dtype=bool)
        numbers[row, 3] = np.where(same, logit, -8.0).max(1, initial=-8.0)
    return numbers


class Stretches(NamedTuple):
    """Stretches of one length along all rims: s of them; `start[i]` to `start[i + 1]` belong to piece i.

    A stretch is 20 complex numbers about their middle; the product of one with a reversed other gives the turn between
    the two and the residual after it. Colours along the rim are compared by the same kind of product.
    """

    start: Int64[np.ndarray, "n+1"]
    shape: Complex64[np.ndarray, "s 20"]
    middle: Complex64[np.ndarray, "s"]
    colour: Float32[np.ndarray, "s 60"]
    bent: Float32[np.ndarray, "s"]


def stretches(rims: Rims, config: SeedConfig) -> Stretches:
    """All stretches of this length; `bent` is the square of how far each strays from a line."""
    shapes, middles, colours, counts = [], [], [], [0]
    for piece in range(len(rims.cells)):
        curve = smoothed(rims.of(piece).astype(float), config.smooth)
        colour = smoothed(rims.near[rims.start[piece] : rims.start[piece + 1]].astype(float), 3.0)
        begins = np.arange(0, len(curve), config.step)
        places = begins[:, None] + np.linspace(-config.length / 2, config.length / 2, SAMPLES)
        along = places.round().astype(int) % len(curve)
        plane = curve[along, 0] + 1j * curve[along, 1]
        middle = plane.mean(1)
        shapes.append(plane - middle[:, None])
        middles.append(middle)
        colours.append(colour[along].reshape(len(begins), -1))
        counts.append(len(begins))
    shape = np.concatenate(shapes)
    bent = ((np.abs(shape) ** 2).sum(1) - np.abs((shape**2).sum(1))) / 2 / SAMPLES
    return Stretches(
        np.cumsum(counts),
        shape.astype(np.complex64),
        np.concatenate(middles).astype(np.complex64),
        np.concatenate(colours).astype(np.float32),
        bent.astype(np.float32),
    )


def seed_poses(found: Stretches, first: int, rims: Rims, config: SeedConfig) -> list[Float32[np.ndarray, "k 4"]]:
    """For each piece after `first`, the best poses of `first` in its frame, with rims laid `rims.gap` apart."""
    own, rest = slice(found.start[first], found.start[first + 1]), slice(found.start[first + 1], None)
    there = found.shape[rest][:, ::-1]
    product = found.shape[own].conj() @ there.T
    power = (np.abs(found.shape[own]) ** 2).sum(1)[:, None] + (np.abs(there) ** 2).sum(1)
    left = np.maximum(power - 2 * np.abs(product), 0) / SAMPLES
    bent = np.minimum(found.bent[own][:, None], found.bent[rest])
    cost = left / (config.blur**2 + 0.3 * bent)
    if config.colour > 0:
        mine = found.colour[own]
        theirs = found.colour[rest].reshape(-1, SAMPLES, 3)[:, ::-1].reshape(-1, SAMPLES * 3)
        unlike = (mine**2).sum(1)[:, None] + (theirs**2).sum(1) - 2 * mine @ theirs.T
        cost = cost + np.maximum(unlike, 0) / SAMPLES / (config.colour * rims.like) ** 2
    turn = product / np.maximum(np.abs(product), 1e-9)
    middle = found.middle[own]
    bounds = found.start[first + 1 :] - found.start[first + 1]
    parts = [slice(begin, end) for begin, end in pairwise(bounds)]
    chosen = [_local_minima(cost[:, part])[: config.of_pair] for part in parts]
    costs = [cost[:, part][at[:, 0], at[:, 1]] for part, at in zip(parts, chosen, strict=True)]
    every = np.concatenate(costs)
    limit = np.inf if len(every) <= config.of_piece else np.partition(every, config.of_piece)[config.of_piece]
    poses = []
    for part, at, paid in zip(parts, chosen, costs, strict=True):
        a, b = at[paid < limit].T
        turned = turn[:, part][a, b]
        chord = there[part][b, 0] - there[part][b, -1]  # reversed: from the first point to the last
        outward = -1j * chord / np.maximum(np.abs(chord), 1e-9)
        shift = found.middle[rest][part][b] + rims.gap * outward - turned * middle[a]
        poses.append(np.stack([turned.real, turned.imag, shift.real, shift.imag], 1).astype(np.float32))
    return poses


def _local_minima(cost: Float32[np.ndarray, "a b"]) -> Int64[np.ndarray, "k 2"]:
    """Rows and columns of the entries that no neighbour undercuts, the lowest first; rows and columns close to rings.

    Neighbours across are those in which both stretches advance: one rim runs clockwise, the other one back.
    """
    shifts = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))
    found = np.argwhere(cost <= np.minimum.reduce([np.roll(cost, shift, (0, 1)) for shift in shifts]))
    return found[np.argsort(cost[found[:, 0], found[:, 1]], kind="stable")]
