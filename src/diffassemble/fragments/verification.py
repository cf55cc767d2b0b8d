"""Verification: the probability that two fracture surfaces, brought together by a pose, belong there.

A small network turns the numbers that describe the contact (`match_features`) into a probability. Colours that go on
across the seam, or do not, change its log odds (`colour_evidence`); what could slide along the contact without leaving
it is capped (`can_slide`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int64
from scipy.spatial import cKDTree

from diffassemble.core.thresholds import SURE
from diffassemble.fragments.clusters import BodySurface
from diffassemble.fragments.contact import LOOSE, TIGHT, Contact, Pose, PoseRows, Touch, inverse, rotations, transformed
from diffassemble.fragments.descriptors import FractureSurface
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import PAIR_SEARCH, PairSearchConfig, Sides, rating
from diffassemble.fragments.spatial import thin


@dataclass(frozen=True)
class SlidingConfig:
    """When a contact leaves a motion free, as two sawn planes do. Lengths in spacings of the level."""

    step: float = 0.5
    """greatest step between the two original surfaces where they go on into each other"""
    alike: float = 0.8
    """least cosine between the normals of the two original surfaces there"""
    fewest: int = 6
    """fewer touching points hold nothing"""
    firm: float = 0.08
    """breaks that hold at least so firmly (see `Hold`) cannot slide"""
    pinned: float = 0.05
    """with the original surfaces that go on, contacts that hold less than this can slide"""
    around: float = 0.6
    """share of the rim at which the original surfaces must go on, to stop a sliding break"""
    least: float = 0.1
    """matches of a lower probability are not examined"""
    ceiling: float = 0.6
    """greatest probability of a match that can slide; 1 switches the rule off"""


@dataclass(frozen=True)
class ColourConfig:
    """What colours across a seam are worth. Fitted on painted solids broken by code (benchmarks/calibrate_colours.py).

    Log odds = weight · n/(n + points) · clip(even + along · A − across · D, ±most), where A and D are the variance of
    colours along the seam and their squared difference across it, over that of any two points of both rims.
    """

    rim: float = 2.5
    """points this near to the rim, in spacings, have a colour"""
    fewest: int = 30
    """rims with fewer such points are not compared"""
    deviation: tuple[float, float] = (0.03, 0.06)
    """standard deviation of colours (0 to 1) at which evidence sets in, and from which on it counts in full"""
    steadiness: tuple[float, float] = (0.2, 0.5)
    """the same for the share of their variance that neighbours do not have"""
    apart: float = 4.0
    """distance of these neighbours, in spacings of level 0: wider than what colours are averaged over"""
    length: int = 8
    """least number of such neighbours along a rim"""
    same_side: float = 0.5
    """least cosine between the normals of the original surfaces on either side of the seam"""
    even: float = 0.9
    along: float = 3.6
    across: float = 4.3
    points: float = 10.0
    """touching points at which evidence counts by half"""
    most: float = 2.0
    """greatest log odds that colours add; 0 switches them off"""
    ceiling: float = SURE
    """colours raise no probability above this"""


@dataclass(frozen=True)
class VerificationConfig:
    """How contacts are described. The verification network was trained with these numbers; lengths in spacings."""

    points: int = 2500
    """points of a surface that are compared, at most twice as many"""
    loose: Touch = LOOSE
    tight: Touch = TIGHT
    rim: float = 2.5
    """points this near to the rim on both sides are of the common rim"""
    either_rim: float = 2.0
    """points this near to the rim on either side are of the rim that could be common"""
    rims_agree: float = 1.5
    """greatest difference of the two distances to the rim, where they count as equal"""
    even: float = 0.5
    """greatest step between original surfaces that counts as none"""
    highest_step: float = 3.0
    least_rating: float = 10.0
    """the margin over rivals is at least taken against this rating"""
    alone: float = 5.0
    """margin of a pose without rivals, and the greatest one"""
    sliding: SlidingConfig = SlidingConfig()
    colours: ColourConfig = ColourConfig()


VERIFICATION = VerificationConfig()
INSERTED = -1
"""the level of matches found by inserting a piece into a gap, which have no level of their own"""


@dataclass(frozen=True)
class Match:
    """A candidate contact of two clusters: if the second stays, the first has the pose."""

    pose: Pose
    probability: float
    level: int
    votes: int
    features: Float32[np.ndarray, "v"]
    slides: bool = False
    """whether a motion along the contact is free, and no rims determine where to stop"""
    ceiling: float = 1.0
    """greatest probability that later verification may give, because of how the match was found"""

    def capped(self, ceiling: float) -> Match:
        """The same match with a probability of at most this."""
        ceiling = min(self.ceiling, ceiling)
        return replace(self, probability=min(self.probability, ceiling), ceiling=ceiling)

    def reversed(self) -> Match:
        """The same match with first and second exchanged."""
        return replace(self, pose=inverse(self.pose))


def verify(
    poses: PoseRows,
    votes: Int64[np.ndarray, "m"],
    sides: Sides,
    level: int,
    models: FractureModels,
    config: VerificationConfig = VERIFICATION,
    search: PairSearchConfig = PAIR_SEARCH,
) -> list[Match]:
    """Matches of two sides at candidate poses, the most probable first; `votes` hypotheses led to each pose."""
    if not len(poses):
        return []
    ratings = rating(poses, sides, search)
    rivals = np.array([np.delete(ratings, i).max(initial=-np.inf) for i in range(len(poses))])
    margins = ratings / np.maximum(config.least_rating, rivals) if len(poses) > 1 else np.array([config.alone])
    met = [seams(pose, sides, config) for pose in poses]
    parts = zip(met, votes.tolist(), margins.tolist(), strict=True)
    features = np.stack([match_features(*both, level, count, margin, config) for both, count, margin in parts])
    chance = models.verification(features)
    colours = colour_evidence([here for here, _ in met], config.colours)
    known = colours != 0
    both = chance[known] / (chance[known] + (1 - chance[known]) * np.exp(-colours[known]))
    chance[known] = np.minimum(both, np.maximum(chance[known], config.colours.ceiling))
    matches, sliding = [], config.sliding
    for i, pose in enumerate(poses):
        slides = bool(sliding.ceiling < 1 and chance[i] >= sliding.least and can_slide(*met[i], sliding))
        probability = min(float(chance[i]), sliding.ceiling) if slides else float(chance[i])
        matches.append(Match(pose, probability, level, int(votes[i]), features[i], slides))
    return sorted(matches, key=lambda match: -match.probability)


# How the two sides meet


class Seam(NamedTuple):
    """Where every `step`-th point of a break, moved by a pose, touches another: a row for each that touches tightly.

    `rims` are points at the common rim, `either` at a rim that could be common; `ledge` is the height of the step
    between the two original surfaces in spacings, `goes_on` the cosine between their normals.
    """

    pose: Pose
    sides: Sides
    step: int
    contact: Contact
    loose: Bool[np.ndarray, "p"]
    own: FractureSurface
    other: FractureSurface
    rims: Bool[np.ndarray, "t"]
    either: Bool[np.ndarray, "t"]
    ledge: Float32[np.ndarray, "t"]
    goes_on: Float32[np.ndarray, "t"]


def seams(pose: Pose, sides: Sides, config: VerificationConfig = VERIFICATION) -> tuple[Seam, Seam]:
    """The seam of two sides, the first of them at a pose, as the points of either see it."""

    def seen(pose: Pose, sides: Sides) -> Seam:
        first, second = sides.own, sides.other
        step = max(1, len(first.points) // config.points)
        rows = np.arange(0, len(first.points), step)
        contact = sides.contact(pose, rows[None])
        loose, tight = contact.touching(config.loose), contact.touching(config.tight)
        own, other = first.surface.part(rows[tight]), second.surface.part(contact.near[tight])
        rims = (own.rim < config.rim) & (other.rim < config.rim)
        either = (own.rim < config.either_rim) | (other.rim < config.either_rim)
        apart = transformed(pose, own.points + own.edge) - other.points - other.edge
        ledge = np.abs((apart * other.original).sum(1)) / np.float32(sides.spacing)
        goes_on = ((own.original @ rotations(pose).T.astype(np.float32)) * other.original).sum(1)
        return Seam(pose, sides, step, contact, loose, own, other, rims, either, ledge, goes_on)

    return seen(pose, sides), seen(inverse(pose), sides.swapped)


def match_features(
    here: Seam, there: Seam, level: int, votes: int, margin: float, config: VerificationConfig = VERIFICATION
) -> Float32[np.ndarray, "v"]:
    """How two sides meet; lengths in spacings, areas in their squares.

    `votes` hypotheses led to this pose; `margin` is its rating over that of the best other pose of the two sides.
    """

    def means(seen: Seam) -> Float64[np.ndarray, "6"]:
        loose, own, other = seen.loose, seen.sides.own, seen.sides.other
        count, either = max(1, int(loose.sum())), seen.either
        agree = (np.abs(seen.own.rim - seen.other.rim)[either] < config.rims_agree).sum() / max(1, either.sum())
        height, facing = np.abs(seen.contact.height[loose]).sum() / count, seen.contact.facing[loose].sum() / count
        entered = other.body.holds(seen.pose, own.probe) / len(own.probe) * len(own.body.points)
        area = seen.step * float(len(seen.own.points))
        return np.array([area, seen.step * float(loose.sum()), height, facing, agree, entered])

    tight, loose, height, facing, agree, inside = np.stack([means(here), means(there)], 1)
    sides, own, at_rims = here.sides, here.own, max(1, here.rims.sum())
    points = [len(side.points) for side in sides[:2]]
    entered = inside.sum() * (sides.own.body.spacing / sides.spacing) ** 2
    breaks, mixed, intact = contact_of_bodies(here.pose, sides.own.body, sides.other.body, config)
    ledge = here.ledge[here.rims] if here.rims.any() else np.array([config.highest_step])
    likeness = float((own.counterparts * here.other.descriptors).sum()) / max(1, len(own.points))
    relief, stretch, firm = _shape(own.points, own.smooth, sides.spacing)
    numbers = [
        *(np.log1p(min(tight)), np.log1p(max(tight)), np.log1p(loose[0]), tight[0] / max(1.0, loose[0])),
        *(tight / points),
        *(loose / points),
        *(*height, *facing, np.log1p(entered), entered / max(10.0, min(tight)), *agree),
        *(here.goes_on[here.rims].sum() / at_rims, np.log1p(here.step * here.rims.sum()), likeness),
        *(float(level), *np.log1p(points), relief, stretch, np.log1p(votes), np.clip(margin, 0, config.alone)),
        *(np.log1p(breaks), np.log1p(mixed), np.log1p(intact), breaks / max(5.0, breaks + mixed + intact)),
        *(np.minimum(ledge, config.highest_step).mean(), (ledge < config.even).mean(), firm),
        own.rim.mean() if len(own.rim) else 0.0,
    ]
    return np.array(numbers, np.float32)


def contact_of_bodies(
    pose: Pose, first: BodySurface, second: BodySurface, config: VerificationConfig = VERIFICATION
) -> tuple[int, int, int]:
    """Points of the whole first surface that touch the second: break on break, break on intact, intact on intact."""
    step = max(1, len(first.points) // config.points)
    rows = np.arange(0, len(first.points), step)
    contact = Contact.of(pose, first.points, first.normals, second.target, first.spacing, rows[None])
    touching = contact.touching(config.tight)
    count = first.broken[rows[touching]].astype(int) + second.broken[contact.near[touching]]
    intact, mixed, breaks = (step * np.bincount(count, minlength=3)).tolist()
    return breaks, mixed, intact


def _shape(points: np.ndarray, normals: np.ndarray, spacing: float) -> tuple[float, float, float]:
    """Of the touching part: roughness, extent across its length, and how firmly it holds against sliding.

    The last is √λ of the least eigenvalue λ of Σ r rᵀ / n, where r = [p × n / size, n] is what a point p with normal n
    contributes against a small motion: 0 where one motion changes nothing.
    """
    if len(points) < 6:
        return 0.0, 0.0, 0.0
    centred = points - points.mean(0)
    widths = np.sqrt(np.maximum(np.linalg.eigvalsh(centred.T @ centred / len(points)), 0)) / spacing
    turned = np.sqrt(np.maximum(np.linalg.eigvalsh(normals.T @ normals / len(points)), 0))
    firm = _root_of_least(information(centred, normals, normals))
    return float(turned[0] + turned[1]), float(np.log1p(widths[1])), firm


# Free motions


class Hold(NamedTuple):
    """How firmly a contact is held against the motion that is held least, 0 where nothing holds it."""

    breaks: float
    """by the two breaks alone"""
    rims: float
    """with the original surfaces that go on into each other"""
    around: float
    """share of the rim at which they do"""


def can_slide(here: Seam, there: Seam, config: SlidingConfig = VERIFICATION.sliding) -> bool:
    """Whether one side could move along the other without leaving it, and no rim determines where to stop."""
    held = hold(here, there, config)
    return held.breaks < config.firm and (held.rims < config.pinned or held.around < config.around)


def hold(here: Seam, there: Seam, config: SlidingConfig = VERIFICATION.sliding) -> Hold:
    """The less of what the points of either side see."""
    return Hold(*(min(pair) for pair in zip(_held(here, config), _held(there, config), strict=True)))


def _held(seen: Seam, config: SlidingConfig) -> Hold:
    own, other, turn = seen.own, seen.other, rotations(seen.pose)
    if len(own.points) < config.fewest:
        return Hold(0.0, 0.0, 0.0)
    goes_on = seen.rims & (seen.ledge < config.step) & (seen.goes_on > config.alike)
    centred = own.points - own.points.mean(0)
    breaks = information(centred, own.smooth, -other.smooth @ turn)
    outer = information(centred, own.original * goes_on[:, None], other.original @ turn)
    around = float((goes_on & seen.either).sum() / max(1, seen.either.sum()))
    return Hold(_root_of_least(breaks), _root_of_least(breaks + outer), around)


def information(
    points: Float[np.ndarray, "p 3"], normals: Float[np.ndarray, "p 3"], others: Float[np.ndarray, "p 3"]
) -> Float[np.ndarray, "6 6"]:
    """Information of two surfaces' normals at the same points about a small turn about the origin and shift, a point.

    The mean of (r sᵀ + s rᵀ) / 2, with r and s the rows [p × n / size, n] of either surface: what only one of the two
    shows, such as noise, holds nothing. Turns are taken at the distance that the points have from the origin.
    """
    size = max(float(np.sqrt((points**2).sum(1).mean())), 1e-9)
    own, other = (np.concatenate([np.cross(points, one) / size, one], 1) for one in (normals, others))
    product = own.T @ other / len(points)
    return (product + product.T) / 2


def _root_of_least(matrix: Float[np.ndarray, "6 6"]) -> float:
    """√ of the least eigenvalue."""
    return float(np.sqrt(max(0.0, float(np.linalg.eigvalsh(matrix)[0]))))


# Colours across the seam


def colour_evidence(met: Sequence[Seam], config: ColourConfig = VERIFICATION.colours) -> Float64[np.ndarray, "m"]:
    """Log odds that colours add to matches of two sides, given the seam at each pose (see `ColourConfig`).

    They are exactly 0 where one of the two has no colours, or where colours hardly vary.
    """
    measured = contrasts(met, config) if config.most else None
    if measured is None:
        return np.zeros(len(met))
    weight, (across, along, points) = measured[0], measured[1].T
    odds = np.clip(config.even + config.along * along - config.across * across, -config.most, config.most)
    return weight * points / (points + config.points) * odds


def contrasts(
    met: Sequence[Seam], config: ColourConfig = VERIFICATION.colours
) -> tuple[float, Float64[np.ndarray, "m 3"]] | None:
    """The weight of colours, from 0 to 1, and for each seam the squared difference of colours across it, their
    variance along it, both over that of any two points of both rims, and how many points that is; none if weight 0."""
    sides = met[0].sides[:2]
    rims = [side.surface.part(_coloured(side.surface, config)) for side in sides]
    if min(len(rim.points) for rim in rims) < config.fewest:
        return None
    weight = min(_weight(rim, side.body.spacing, config) for rim, side in zip(rims, sides, strict=True))
    if weight == 0:
        return None
    means = rims[0].colours.mean(0) - rims[1].colours.mean(0)
    anyhow = float(sum(rim.colours.var(0).sum() for rim in rims) + (means**2).sum())
    rows = []
    for seen in met:
        both = _coloured(seen.own, config) & _coloured(seen.other, config) & (seen.goes_on > config.same_side)
        here, there = seen.own.colours[both], seen.other.colours[both]
        across = float(((here - there) ** 2).sum(1).mean()) if both.any() else 0.0
        along = float(here.var(0).sum() + there.var(0).sum()) if both.any() else 0.0
        rows.append([across / anyhow, along / anyhow, both.sum()])
    return weight, np.array(rows).reshape(-1, 3)


def _coloured(surface: FractureSurface, config: ColourConfig) -> Bool[np.ndarray, "p"]:
    """Which points are of a rim whose colours are known."""
    return (surface.rim < config.rim) & np.isfinite(surface.colours[:, 0])


def _weight(rim: FractureSurface, spacing: float, config: ColourConfig) -> float:
    """Weight of the colours of a rim, from 0 to 1: they have to vary, but not from point to point."""
    variance = float(rim.colours.var(0).sum())
    varies = _ramp(np.sqrt(variance), *config.deviation)
    some = rim.part(thin(rim.points, config.apart * spacing)) if varies > 0 else rim.part(slice(0))
    if len(some.points) < config.length:
        return 0.0
    near = cKDTree(some.points).query(some.points, 2)[1][:, 1]
    beside = float(((some.colours - some.colours[near]) ** 2).sum(1).mean()) / 2
    return varies * _ramp(1 - beside / variance, *config.steadiness)


def _ramp(value: float, low: float, high: float) -> float:
    return float(np.clip((value - low) / (high - low), 0, 1))
