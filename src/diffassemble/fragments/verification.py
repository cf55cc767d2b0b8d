"""Verification: the probability that two fracture surfaces, brought together by a pose, belong there.

A small network turns the numbers that describe the contact (`match_features`) into a probability. Colours that go on
across the seam, or do not, change its log odds (`colour_evidence`); what could slide along the contact without leaving
it is capped (`can_slide`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64
from scipy.spatial import cKDTree

from diffassemble.core.thresholds import SURE
from diffassemble.fragments.clusters import BodySurface, FractureSide
from diffassemble.fragments.contact import LOOSE, TIGHT, Contact, Pose, Touch, inverse, transformed
from diffassemble.fragments.descriptors import FractureSurface
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import PAIR_SEARCH, Hypotheses, PairSearchConfig, rating
from diffassemble.fragments.spatial import thin


@dataclass(frozen=True)
class SlidingConfig:
    """When a contact leaves a motion free, as two sawn planes do. Lengths in spacings of the level."""

    points: int = 1500
    """points of a break that are looked at, at most"""
    touch: Touch = TIGHT
    rim: float = 2.5
    """points this near to the rim on both sides are of the common rim"""
    either_rim: float = 2.0
    """points this near to the rim on either side are of the rim that could be common"""
    step: float = 0.5
    """greatest step between the two original surfaces where they go on into each other"""
    alike: float = 0.8
    """least cosine between the normals of the two original surfaces there"""
    fewest: int = 6
    """touching points below which nothing holds"""
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
    touch: Touch = TIGHT
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
    """points of a surface that are looked at, at most"""
    loose: Touch = LOOSE
    tight: Touch = TIGHT
    rim: float = 2.5
    either_rim: float = 2.0
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


SLIDING, COLOURS, VERIFICATION = SlidingConfig(), ColourConfig(), VerificationConfig()


@dataclass(frozen=True)
class Match:
    """A candidate contact of two clusters: if the second stays, the first has the pose."""

    pose: Pose
    probability: float
    level: int
    votes: int
    features: Float32[np.ndarray, "v"]
    slides: bool = False
    """whether a motion along the contact is free, and no rims say where to stop"""
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
    candidates: Hypotheses,
    own: FractureSide,
    other: FractureSide,
    spacing: float,
    level: int,
    models: FractureModels,
    config: VerificationConfig = VERIFICATION,
    search: PairSearchConfig = PAIR_SEARCH,
) -> list[Match]:
    """Matches of two sides at candidate poses, the most probable first."""
    poses, votes = candidates
    if not len(poses):
        return []
    ratings = np.array([rating(pose, own, other, spacing, search) for pose in poses])
    rows = []
    for i, pose in enumerate(poses):
        rivals = np.delete(ratings, i)
        margin = ratings[i] / max(config.least_rating, rivals.max()) if len(rivals) else config.alone
        rows.append(match_features(pose, own, other, spacing, level, int(votes[i]), float(margin), config))
    table = np.stack(rows)
    chance = models.verification(table)
    colours = colour_evidence(poses, own, other, spacing, config.colours)
    known = colours != 0
    both = chance[known] / (chance[known] + (1 - chance[known]) * np.exp(-colours[known]))
    chance[known] = np.minimum(both, np.maximum(chance[known], config.colours.ceiling))
    sliding = config.sliding
    slides = np.array(
        [
            sliding.ceiling < 1 and one >= sliding.least and can_slide(pose, own, other, spacing, sliding)
            for pose, one in zip(poses, chance, strict=True)
        ]
    )
    chance = np.where(slides, np.minimum(chance, sliding.ceiling), chance)
    parts = zip(poses, chance, votes, table, slides, strict=True)
    matches = [Match(pose, float(sure), level, int(vote), row, bool(free)) for pose, sure, vote, row, free in parts]
    return sorted(matches, key=lambda match: -match.probability)


# How the two sides meet


def match_features(
    pose: Pose,
    first: FractureSide,
    second: FractureSide,
    spacing: float,
    level: int,
    votes: int,
    margin: float,
    config: VerificationConfig = VERIFICATION,
) -> Float32[np.ndarray, "v"]:
    """How the first side, moved by the pose, meets the second; lengths in spacings, areas in their squares.

    `votes` hypotheses led to this pose; `margin` is its rating over that of the best other pose of the two sides.
    """
    here = _meeting(pose, first, second, spacing, config)
    there = _meeting(inverse(pose), second, first, spacing, config)
    body, other = first.body, second.body
    sunk = other.holds(pose, first.probe) / len(first.probe)
    held = body.holds(inverse(pose), second.probe) / len(second.probe)
    area = min(here["tight"], there["tight"])
    entered = (sunk * len(body.points) + held * len(other.points)) * (body.spacing / spacing) ** 2
    breaks, mixed, intact = _contact_of_bodies(pose, body, other, config)
    everything = breaks + mixed + intact
    numbers = [
        *(np.log1p(area), np.log1p(max(here["tight"], there["tight"])), np.log1p(here["loose"])),
        here["tight"] / max(1.0, here["loose"]),
        *(here["tight"] / len(first.points), there["tight"] / len(second.points)),
        *(here["loose"] / len(first.points), there["loose"] / len(second.points)),
        *(here["height"], there["height"], here["facing"], there["facing"]),
        *(np.log1p(entered), entered / max(10.0, area)),
        *(here["rim"], there["rim"], here["original"], np.log1p(here["rims"]), here["likeness"]),
        *(float(level), np.log1p(len(first.points)), np.log1p(len(second.points))),
        *(here["relief"], here["stretch"], np.log1p(votes), np.clip(margin, 0, config.alone)),
        *(np.log1p(breaks), np.log1p(mixed), np.log1p(intact), breaks / max(5.0, everything)),
        *(here["ledge"], here["even"], here["hold"], here["width"]),
    ]
    return np.array(numbers, np.float32)


def _some(side: FractureSide, most: int) -> tuple[int, Float32[np.ndarray, "p 3"], Float32[np.ndarray, "p 3"]]:
    """Every so many points of a break and their smoothed normals, at most twice `most` of them, and the step."""
    step = max(1, len(side.points) // most)
    return step, np.ascontiguousarray(side.points[::step]), np.ascontiguousarray(side.smooth[::step])


def _contact_of_bodies(
    pose: Pose, first: BodySurface, second: BodySurface, config: VerificationConfig
) -> tuple[int, int, int]:
    """Points of the whole first surface that lie on the second: break on break, break on intact, intact on intact."""
    step = max(1, len(first.points) // config.points)
    points, normals = np.ascontiguousarray(first.points[::step]), np.ascontiguousarray(first.normals[::step])
    target = second.voxels, second.points, second.normals
    contact = Contact.of(pose, points, normals, target, first.spacing)
    touching = contact.touching(config.tight)
    count = first.broken[::step][touching].astype(int) + second.broken[contact.near[touching]]
    breaks, mixed, intact = (step * int((count == number).sum()) for number in (2, 1, 0))
    return breaks, mixed, intact


def _meeting(
    pose: Pose, first: FractureSide, second: FractureSide, spacing: float, config: VerificationConfig
) -> dict[str, float]:
    """Sums over the points of the first break that touch the second."""
    step, points, smooth = _some(first, config.points)
    contact = Contact.of(pose, points, smooth, second.target, spacing)
    loose = contact.touching(config.loose)
    tight = loose & contact.touching(config.tight)
    count = max(1, int(loose.sum()))
    partners = contact.near[tight]
    own = slice(None, None, step)
    rim, other_rim = first.surface.rim[own][tight], second.surface.rim[partners]
    both = (rim < config.rim) & (other_rim < config.rim)
    either = (rim < config.either_rim) | (other_rim < config.either_rim)
    turned = first.surface.original[own][tight] @ pose[:9].reshape(3, 3).T.astype(np.float32)
    alike = (turned * second.surface.original[partners]).sum(1)
    likeness = (first.surface.counterparts[own][tight] * second.surface.descriptors[partners]).sum(1)
    held = max(1, int(tight.sum()))
    rows = np.flatnonzero(tight)[both] * step
    ledge = _ledges(pose, first.surface, rows, second.surface, partners[both]) / spacing
    return {
        "tight": float(tight.sum()) * step,
        "loose": float(loose.sum()) * step,
        "height": float(contact.height[loose].sum()) / count,
        "facing": float(contact.facing[loose].sum()) / count,
        "rim": float((np.abs(rim - other_rim)[either] < config.rims_agree).sum()) / max(1, int(either.sum())),
        "rims": float(both.sum()) * step,
        "original": float(alike[both].sum()) / max(1, int(both.sum())),
        "likeness": float(likeness.sum()) / held,
        "ledge": float(np.minimum(ledge, config.highest_step).mean()) if len(ledge) else config.highest_step,
        "even": float((ledge < config.even).mean()) if len(ledge) else 0.0,
        "width": float(rim.mean()) if len(rim) else 0.0,
        **_spread(points[tight], smooth[tight], spacing),
    }


def _ledges(
    pose: Pose, first: FractureSurface, own: np.ndarray, second: FractureSurface, other: np.ndarray
) -> Float32[np.ndarray, "p"]:
    """Height of the step between the original surfaces beside points of two rims that lie on each other."""
    apart = transformed(pose, first.points[own] + first.edge[own]) - second.points[other] - second.edge[other]
    return np.abs((apart * second.original[other]).sum(1))


def _spread(points: np.ndarray, normals: np.ndarray, spacing: float) -> dict[str, float]:
    """Of the touching part: roughness, extent across its length, and how firmly it holds against sliding.

    The last is √λ of the least eigenvalue λ of Σ r rᵀ / n, where r = [p × n / size, n] is what a point p with normal n
    tells of a small motion: 0 where one motion changes nothing.
    """
    if len(points) < 6:
        return {"relief": 0.0, "stretch": 0.0, "hold": 0.0}
    centred = points - points.mean(0)
    widths = np.sqrt(np.maximum(np.linalg.eigvalsh(centred.T @ centred / len(points)), 0)) / spacing
    turned = np.sqrt(np.maximum(np.linalg.eigvalsh(normals.T @ normals / len(points)), 0))
    size = max(float(np.sqrt((centred**2).sum(1).mean())), 1e-9)
    rows = np.concatenate([np.cross(centred, normals) / size, normals], 1)
    return {
        "relief": float(turned[0] + turned[1]),
        "stretch": float(np.log1p(widths[1])),
        "hold": _root_of_least(rows.T @ rows / len(points)),
    }


# Free motions


class Hold(NamedTuple):
    """How firmly a contact is held against the motion that is held least, 0 where nothing holds it."""

    breaks: float
    """by the two breaks alone"""
    rims: float
    """with the original surfaces that go on into each other"""
    around: float
    """share of the rim at which they do"""


def can_slide(
    pose: Pose, own: FractureSide, other: FractureSide, spacing: float, config: SlidingConfig = SLIDING
) -> bool:
    """Whether one side could move along the other without leaving it, and no rim says where to stop."""
    held = hold(pose, own, other, spacing, config)
    return held.breaks < config.firm and (held.rims < config.pinned or held.around < config.around)


def hold(
    pose: Pose, first: FractureSide, second: FractureSide, spacing: float, config: SlidingConfig = SLIDING
) -> Hold:
    """The less of what the points of either side see, if the first has the pose."""
    here = _hold_seen(pose, first, second, spacing, config)
    there = _hold_seen(inverse(pose), second, first, spacing, config)
    return Hold(*(min(pair) for pair in zip(here, there, strict=True)))


def _hold_seen(pose: Pose, first: FractureSide, second: FractureSide, spacing: float, config: SlidingConfig) -> Hold:
    step, points, smooth = _some(first, config.points)
    contact = Contact.of(pose, points, smooth, second.target, spacing)
    touching = contact.touching(config.touch)
    if touching.sum() < config.fewest:
        return Hold(0.0, 0.0, 0.0)
    rows, partners = np.flatnonzero(touching) * step, contact.near[touching]
    own, other = first.surface.part(rows), second.surface.part(partners)
    turn = pose[:9].reshape(3, 3)
    mate, beside = other.smooth @ turn, other.original @ turn
    even = _ledges(pose, first.surface, rows, second.surface, partners) < config.step * spacing
    even &= (own.original * beside).sum(1) > config.alike
    rims = (own.rim < config.rim) & (other.rim < config.rim)
    either = (own.rim < config.either_rim) | (other.rim < config.either_rim)
    centred = own.points - own.points.mean(0)
    breaks = information(centred, own.smooth, -mate)
    goes_on = rims & even
    outer = information(centred, own.original * goes_on[:, None], beside)
    around = float((goes_on & either).sum() / max(1, either.sum()))
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


def colour_evidence(
    poses: Float64[np.ndarray, "m 12"],
    first: FractureSide,
    second: FractureSide,
    spacing: float,
    config: ColourConfig = COLOURS,
) -> Float64[np.ndarray, "m"]:
    """Log odds that colours add to matches of two sides, the first moved by each pose (see `ColourConfig`).

    They are exactly 0 where one of the two has no colours, or where colours hardly vary.
    """
    measured = contrasts(poses, first, second, spacing, config) if config.most else None
    if measured is None:
        return np.zeros(len(poses))
    weight, (across, along, points) = measured[0], measured[1].T
    odds = np.clip(config.even + config.along * along - config.across * across, -config.most, config.most)
    return weight * points / (points + config.points) * odds


def contrasts(
    poses: Iterable[Pose],
    first: FractureSide,
    second: FractureSide,
    spacing: float,
    config: ColourConfig = COLOURS,
) -> tuple[float, Float64[np.ndarray, "m 3"]] | None:
    """The weight of colours, from 0 to 1, and for each pose the squared difference of colours across the seam, their
    variance along it, both over that of any two points of both rims, and how many points that is; none if weight 0."""
    known = [_coloured(side.surface, config) for side in (first, second)]
    if min(int(rim.sum()) for rim in known) < config.fewest:
        return None
    own, other = (side.surface.part(rim) for side, rim in zip((first, second), known, strict=True))
    weight = min(_weight(own, first.body.spacing, config), _weight(other, second.body.spacing, config))
    if weight == 0:
        return None
    means = own.colours.mean(0) - other.colours.mean(0)
    anyhow = float(own.colours.var(0).sum() + other.colours.var(0).sum() + (means**2).sum())
    rows = []
    for pose in poses:
        contact = Contact.of(pose, own.points, own.smooth, second.target, spacing)
        met = np.flatnonzero(contact.touching(config.touch))
        met = met[known[1][contact.near[met]]]
        turned = own.original[met] @ pose[:9].reshape(3, 3).T.astype(np.float32)
        met = met[(turned * second.surface.original[contact.near[met]]).sum(1) > config.same_side]
        here, there = own.colours[met], second.surface.colours[contact.near[met]]
        across = float(((here - there) ** 2).sum(1).mean()) if len(met) else 0.0
        along = float(here.var(0).sum() + there.var(0).sum()) if len(met) else 0.0
        rows.append([across / anyhow, along / anyhow, len(met)])
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
