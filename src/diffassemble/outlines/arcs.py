"""Matching of free outlines: which arcs of two rims were one before the break.

Every stretch of every rim is laid against every other (`seeds`); what a small network takes for possible is refined
until the rims lie on each other (`contact`), judged again, and at last judged among its rivals: an arc has one true
partner. Where sure contacts show that all rims were worn away evenly, the search is made again at that distance.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, no_type_check

import numpy as np
import torch
from jaxtyping import Float32, Int64
from numba import njit

from diffassemble.core import Matches, OutlinePieces, Poses
from diffassemble.outlines.arc_model import RIVALRY, ArcModel
from diffassemble.outlines.contact import FEATURES, describe, refine
from diffassemble.outlines.rims import Rims, rims_of
from diffassemble.outlines.seeds import seed_poses, stretches

# Stretches that are tried: length, smoothing and step along the rim in working pixels; how far rims may stray; the
# difference of colours, in units of `Rims.like`, that counts as much (0: colours are not asked).
LOOKS = (
    (24.0, 1.5, 4.0, 1.5, 0.7),
    (40.0, 2.0, 4.0, 2.0, 0.7),
    (80.0, 3.0, 4.0, 3.0, 0.0),
    (80.0, 3.0, 4.0, 3.0, 0.7),
    (60.0, 4.0, 4.0, 4.0, 1.0),
)
# Seeds of a look: at most so many of a pair, and of a piece with all others.
PAIR_SEEDS, PIECE_SEEDS = 60, 1500
# How many seeds of a pair are refined, and how many ways of a pair to touch are kept.
REFINED, KEPT = 16, 5
# Two poses closer than this (working pixels, radians) are the same way to touch.
SAME_PLACE, SAME_TURN = 7.0, 0.1
# Contacts less likely than this are dropped.
HOPELESS = -6.0
# Gaps that are tried (working pixels); on how many contacts, of at least which log odds; how uneven they may be.
GAPS = tuple(float(gap) for gap in range(0, 25, 2))
SURE_ENOUGH, MEASURED, FEWEST, EVEN = 1.4, 24, 4, 1.7
# Differences of contacts below this (working pixels) mean nothing.
LEAST_UNEVEN = 0.05
# Contacts are searched for at this share of the gap: where rims are ragged, they hold each other by their tips. Most
# evidence for the contacts of torn training photographs was there, and most pieces came out right.
SEARCHED = 0.5


class Candidates(NamedTuple):
    """Ways in which pairs of pieces may touch: poses of the first in the frame of the second, in working pixels.

    `features` are the numbers of `contact.describe`, `arcs` bits for what touches, `logit` log odds without rivals.
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


def match_arcs(pieces: OutlinePieces, model: ArcModel | None = None) -> Matches:
    """All likely ways in which two free outlines touch, the probable ones first."""
    model = model or bundled_model()
    rims = rims_of(pieces)
    found, logit = _judged_among_rivals(rims, model)
    gap = usual_gap(rims, found, logit)
    if gap > 0:
        rims = rims._replace(gap=SEARCHED * gap)
        found, logit = _judged_among_rivals(rims, model)
    order = np.argsort(-logit, kind="stable")
    return as_matches(found, logit, order, rims.scale)


def _judged_among_rivals(rims: Rims, model: ArcModel) -> tuple[Candidates, Float32[np.ndarray, "m"]]:
    """Likely ways to touch and their log odds."""
    found = find_candidates(rims, model)
    return found, model.judge("rivals", rivalry(found, len(rims.cells)))


def as_matches(found: Candidates, logit: Float32[np.ndarray, "m"], order: np.ndarray, scale: float) -> Matches:
    """Candidates as matches in pixels of the pictures, in this order; slots tell ways of one pair apart."""
    poses = torch.from_numpy(found.poses[order]).float()
    cosine, sine = poses[:, 0], poses[:, 1]
    relative = Poses(torch.stack([cosine, -sine, sine, cosine], 1).reshape(-1, 2, 2), poses[:, 2:] / scale)
    likely = torch.from_numpy(logit[order]).double().sigmoid().float()
    quality = torch.from_numpy(found.logit[order]).double().sigmoid().float()
    rank = 1 - torch.arange(len(order)) / max(len(order), 1)
    slot, seen = np.zeros(len(order), np.int64), dict[tuple[int, int], int]()
    for place, number in enumerate(order):
        pair = (int(found.first[number]), int(found.second[number]))
        slot[place] = seen.get(pair, 0)
        seen[pair] = slot[place] + 1
    return Matches(
        torch.from_numpy(found.first[order]),
        torch.from_numpy(found.second[order]),
        relative,
        torch.from_numpy(slot),
        torch.stack([likely, rank, quality], 1),
    )


def usual_gap(rims: Rims, found: Candidates, logit: Float32[np.ndarray, "m"]) -> float:
    """How far true neighbours lie apart all along, since both lost their rims: where sure contacts run most evenly.

    Rims that were worn away evenly are no longer alike: bulges have shrunk and bays have grown. They run parallel again
    at the distance that was lost.
    """
    sure = np.flatnonzero(logit > SURE_ENOUGH)
    sure = sure[np.argsort(-logit[sure], kind="stable")][:MEASURED]
    if len(sure) < FEWEST:
        return 0.0
    uneven = np.zeros((len(GAPS), len(sure)), np.float32)
    numbers, arcs = np.zeros((1, FEATURES), np.float32), np.zeros((1, 2), np.int64)
    for row, gap in enumerate(GAPS):
        wider = rims._replace(gap=gap)
        for column, number in enumerate(sure):
            pose = found.poses[number : number + 1].copy()
            pose[0, 2:] *= 1 + gap / max(float(np.hypot(pose[0, 2], pose[0, 3])), 1.0)
            refine(wider, found.first[number], found.second[number], pose, 15, 10.0)
            describe(wider, found.first[number], found.second[number], pose, numbers, arcs)
            uneven[row, column] = numbers[0, 3]
    typical = np.exp(np.log(uneven + LEAST_UNEVEN).mean(1))
    # Touching rims look more even than they are, since they were moved until they do.
    best = 1 + int(typical[1:].argmin())
    return GAPS[best] if typical[best] < EVEN * typical[0] else 0.0


def find_candidates(rims: Rims, model: ArcModel) -> Candidates:
    """For every pair the few ways to touch that look true by themselves."""
    return best_of_each(find_refined(rims, model), KEPT)


def find_refined(rims: Rims, model: ArcModel) -> Candidates:
    """The likeliest seeds of every pair, moved to where the rims lie on each other, and judged there."""
    count = len(rims.cells)
    looks = [(stretches(rims, *look[:3]), look[3], look[4] * rims.like) for look in LOOKS]
    parts = []
    for first in range(count - 1):
        seeds = [
            seed_poses(found, first, blur, colour, rims.gap, PAIR_SEEDS, PIECE_SEEDS) for found, blur, colour in looks
        ]
        poses = [np.concatenate(own) for own in zip(*seeds, strict=True)]
        seconds = np.repeat(np.arange(first + 1, count), [len(own) for own in poses])
        likely = judged(rims, model, "seeds", np.full(len(seconds), first), seconds, np.concatenate(poses))
        chosen = best_of_each(likely, REFINED)
        refined = chosen.poses.copy()
        for second in np.unique(chosen.second):
            own = np.flatnonzero(chosen.second == second)
            moved = refined[own]
            refine(rims, first, second, moved, 12, 12.0)
            refined[own] = moved
        parts.append(judged(rims, model, "contacts", chosen.first, chosen.second, refined))
    if not parts:
        return _none()
    return Candidates(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def judged(
    rims: Rims, model: ArcModel, judge: str, first: np.ndarray, second: np.ndarray, poses: Float32[np.ndarray, "m 4"]
) -> Candidates:
    """Poses with the numbers that describe their contacts, and what a judge makes of these; ordered by pairs."""
    features, arcs = np.zeros((len(poses), FEATURES), np.float32), np.zeros((len(poses), 2), np.int64)
    begins = np.flatnonzero(np.diff(first, prepend=-1) | np.diff(second, prepend=-1))
    for begin, end in zip(begins, [*begins[1:], len(poses)][: len(begins)], strict=True):
        describe(rims, first[begin], second[begin], poses[begin:end], features[begin:end], arcs[begin:end])
    return Candidates(first, second, poses, features, arcs, model.judge(judge, features))


def best_of_each(found: Candidates, most: int) -> Candidates:
    """Of every pair at most so many poses, the likeliest first, no two of them alike."""
    order = np.lexsort((-found.logit, found.second, found.first))
    kept = _distinct(found.first[order], found.second[order], found.poses[order], found.logit[order], most)
    return Candidates(*(column[order][kept] for column in found))


def rivalry(found: Candidates, count: int) -> Float32[np.ndarray, "m 7"]:
    """What tells a candidate among rivals: log odds, its own and theirs on either arc and in its pair; its size."""
    numbers = np.full((len(found.first), RIVALRY), -8.0, np.float32)
    if len(numbers):
        numbers[:, 0] = found.logit
        _rivals(found.first, found.second, found.arcs, found.logit, numbers)
        numbers[:, 4] = found.features[:, 0]
        numbers[:, 5] = found.features[:, 6]
        numbers[:, 6] = np.log(count)
    return numbers


def _none() -> Candidates:
    return Candidates(
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros((0, 4), np.float32),
        np.zeros((0, FEATURES), np.float32),
        np.zeros((0, 2), np.int64),
        np.zeros(0, np.float32),
    )


@njit(cache=True)
@no_type_check
def _distinct(first, second, poses, logit, most):
    """Which of the poses, ordered by pairs and then by log odds, are neither hopeless nor like a better one."""
    kept = np.zeros(len(poses), np.bool_)
    chosen = np.zeros(most, np.int64)
    count = 0
    for number in range(len(poses)):
        if number == 0 or first[number] != first[number - 1] or second[number] != second[number - 1]:
            count = 0
        if count == most or logit[number] < HOPELESS:
            continue
        alike = False
        for k in range(count):
            other = chosen[k]
            if np.hypot(poses[number, 2] - poses[other, 2], poses[number, 3] - poses[other, 3]) < SAME_PLACE:
                cosine = poses[number, 0] * poses[other, 0] + poses[number, 1] * poses[other, 1]
                alike = alike or cosine > 1 - SAME_TURN**2 / 2
        if not alike:
            kept[number] = True
            chosen[count] = number
            count += 1
    return kept


@njit(cache=True)
@no_type_check
def _rivals(first, second, arcs, logit, numbers):
    """The highest log odds of what else wants the same arc of the first, of the second, and of the same pair."""
    for a in range(len(first)):
        for b in range(len(first)):
            if a == b:
                continue
            if first[a] == first[b] and second[a] == second[b]:
                numbers[a, 3] = max(numbers[a, 3], logit[b])
                continue
            for mine in range(2):
                piece = second[a] if mine else first[a]
                for theirs in range(2):
                    if piece == (second[b] if theirs else first[b]):
                        shared = _bits(arcs[a, mine] & arcs[b, theirs])
                        if 3 * shared >= min(_bits(arcs[a, mine]), _bits(arcs[b, theirs])):
                            numbers[a, 1 + mine] = max(numbers[a, 1 + mine], logit[b])


@njit(cache=True)
@no_type_check
def _bits(word):
    """How many bits are set."""
    count = 0
    while word != 0:
        word &= word - 1
        count += 1
    return count
