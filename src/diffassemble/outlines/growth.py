"""Growing free outlines together: the surest join first, again and again, and other beginnings where matches disagree.

Every attempt joins groups of pieces by the match for which most speaks, counting all contacts that follow from it.
Matches that the result contradicts begin further attempts; the assembly for which most speaks is the answer.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Complex128, Float64, Int64

from diffassemble.core import Locks, Matches, OutlinePieces, Placements, Poses
from diffassemble.outlines.arc_model import ArcModel
from diffassemble.outlines.arcs import bundled_model
from diffassemble.outlines.contact import separation
from diffassemble.outlines.joining import Groups, Ways
from diffassemble.outlines.pose_graph import complex_of, poses_of
from diffassemble.outlines.rims import Rims, rims_of

# Log odds below which a match is not tried, and below which a piece is rather left out.
HOPELESS, LEFT_OUT = -5.0, -2.5
# The least log odds of a join if pieces may be of several wholes.
APART = 0.0
# How many further attempts begin with a match that the best assembly contradicts.
ATTEMPTS = 6
# Evidence for a join is counted as if contacts were independent, which they are not: so much of it is taken off, and
# the rest counts less, before it is told as log odds.
DOUBTED, SHARPNESS = 4.0, 1.2
# Where less than this share of all pieces is told above this, parts of the whole may be joined wrongly, and nobody
# knows which of them is the one that is right: then no more than this is told of any piece.
HELD, SURE, IN_DOUBT = 0.5, 0.9, 0.85
# The most that is told of pieces in a part whose place in the whole is not known.
ASTRAY = 0.3
# On how many matches the usual gap is measured, and between which bounds it counts as one (working pixels).
SHOWING, NARROWEST, FARTHEST = 24, 1.6, 28.0


class Attempt(NamedTuple):
    """Groups as they were joined: the matches, in this order, and the log odds of each at that time."""

    groups: Groups
    joins: tuple[int, ...]
    odds: tuple[float, ...]

    @property
    def total(self) -> float:
        """How much speaks for the whole."""
        return float(sum(self.odds))


def grow_free(
    pieces: OutlinePieces,
    matches: Matches,
    locks: Locks | None = None,
    several: bool = False,
    until: float = math.inf,
    model: ArcModel | None = None,
) -> Placements:
    """Join pieces along matches, best first; locked ones stay. Further attempts begin `until` that time is over.

    What fits nowhere is left out (object −1) and lies beside; parts that hold together by themselves are told apart,
    the largest being 0. Unless the pieces may be of `several` wholes, nobody knows where the other parts belong.
    """
    model, rims = model or bundled_model(), rims_of(pieces)
    ways = _ways(matches, rims.scale)
    rims = rims._replace(gap=matched_gap(rims, ways))
    least = APART if several else LEFT_OUT
    best = attempt(rims, model, ways, locks, (), least)
    tried: set[int] = set()
    for _ in range(ATTEMPTS):
        doubted = [way for way in contradicted(best) if way not in tried][:1]
        if not doubted or time.monotonic() > until:
            break
        tried.update(doubted)
        other = attempt(rims, model, ways, locks, tuple(doubted), least)
        if other.total > best.total + 1e-6:
            best = other
    return answer(best, rims, several)


def _ways(matches: Matches, scale: float) -> Ways:
    """Matches in working pixels with log odds, without the hopeless ones."""
    turn, shift = complex_of(matches.pose)
    logit = matches.log_odds.numpy()
    kept = logit > HOPELESS
    first, second = matches.first.numpy(), matches.second.numpy()
    return Ways(first[kept], second[kept], turn[kept], shift[kept] * scale, logit[kept])


def matched_gap(rims: Rims, ways: Ways) -> float:
    """How far apart sure matches leave their pieces, in working pixels."""
    sure = np.argsort(-ways.logit, kind="stable")[:SHOWING]
    sure = sure[ways.logit[sure] > 1]
    poses = np.stack([ways.turn.real, ways.turn.imag, ways.shift.real, ways.shift.imag], 1).astype(np.float32)
    apart = [separation(rims, ways.first[way], ways.second[way], poses[way], FARTHEST) for way in sure]
    gap = float(np.median(apart)) if len(apart) >= 3 else 0.0
    return gap if gap >= NARROWEST else 0.0


def attempt(
    rims: Rims, model: ArcModel, ways: Ways, locks: Locks | None, begin: tuple[int, ...], least: float
) -> Attempt:
    """Join groups, after the joins to begin with, until none is left with at least these log odds."""
    count = len(rims.cells)
    held = np.zeros(count, bool) if locks is None else locks.held.numpy()
    groups = Groups(rims, model, ways, held, Poses.identity(count, 2) if locks is None else locks.poses)
    joins: list[int] = []
    odds: list[float] = []
    value = ways.logit.copy()
    fresh = np.ones(len(value), bool)
    if held.sum() > 1:  # what is locked is one group from the start
        fresh[:] = ~(held[ways.first] | held[ways.second])
        value[held[ways.first] & held[ways.second]] = -np.inf

    def join(way: int, found: float) -> None:
        groups.join(way)
        joins.append(way)
        odds.append(found)
        label = groups.label
        grown = label[ways.first[way]]
        value[label[ways.first] == label[ways.second]] = -np.inf
        fresh[(label[ways.first] == grown) | (label[ways.second] == grown)] = False

    for way in begin:
        found = groups.evidence(way)
        if found > -np.inf:
            join(way, found)
    while True:
        for stale in np.flatnonzero(~fresh & (value > -np.inf)):
            value[stale] = groups.evidence(int(stale))
            fresh[stale] = True
        if not len(value) or value.max() < least:
            return Attempt(groups, tuple(joins), tuple(odds))
        best = int(value.argmax())
        join(best, groups.evidence(best))


def contradicted(found: Attempt) -> list[int]:
    """Likely matches that an assembly does not show, the likeliest first."""
    groups, ways = found.groups, found.groups.ways
    first, second = ways.first, ways.second
    there = groups.turn[second] * ways.shift + groups.place[second]
    turned = groups.turn[second] * ways.turn * np.conj(groups.turn[first])
    shown = (np.abs(there - groups.place[first]) < 0.15 * groups.rims.unit) & (np.abs(np.angle(turned)) < 0.2)
    shown &= groups.label[first] == groups.label[second]
    shown |= groups.held[first] & groups.held[second]  # what is locked stays, whatever a match says
    doubted = np.flatnonzero(~shown & (ways.logit > -1))
    return [int(way) for way in doubted[np.argsort(-ways.logit[doubted], kind="stable")]]


def answer(found: Attempt, rims: Rims, several: bool) -> Placements:
    """Poses in pixels with the wholes side by side, and how sure each place is."""
    groups = found.groups
    objects = _objects(groups)
    sure = certainty(found, objects)
    if np.mean(sure > SURE) < HELD:
        sure = np.minimum(sure, IN_DOUBT)
    place = _side_by_side(groups, objects)
    astray = objects > 0 if not several else np.zeros_like(objects, bool)
    confidence = np.where(objects < 0, 0.0, np.where(astray, np.minimum(sure, ASTRAY), sure))
    poses = poses_of(groups.turn, place / rims.scale)
    notes = tuple(
        "left out: nothing that fits was found"
        if whole < 0
        else "holds to a part that fits nowhere yet"
        if lost
        else ""
        for whole, lost in zip(objects, astray, strict=True)
    )
    told = Poses(poses.rotation.float(), poses.translation.float())
    order = np.full(len(objects), len(found.joins))
    for number, way in reversed(list(enumerate(found.joins))):
        order[[groups.ways.first[way], groups.ways.second[way]]] = number
    sure_of = torch.from_numpy(confidence).float()
    return Placements(told, sure_of, torch.from_numpy(objects), notes=notes, order=torch.from_numpy(order))


def _objects(groups: Groups) -> Int64[np.ndarray, "n"]:
    """Numbers of the wholes, the one with what is locked first, then the largest; −1 for single pieces."""
    labels, sizes = np.unique(groups.label, return_counts=True)
    area = np.array([groups.area[groups.label == label].sum() for label in labels])
    locked = np.array([bool(groups.held[groups.label == label].any()) for label in labels])
    objects = np.full(len(groups.label), -1)
    number = 0
    for k in np.lexsort((-area, ~locked)):
        if sizes[k] > 1 or locked[k] or len(labels) == len(objects) == 1:
            objects[groups.label == labels[k]] = number
            number += 1
    return objects


def certainty(found: Attempt, objects: Int64[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
    """How sure each place is relative to its whole: as sure as the weakest join between it and the whole's core.

    A join is as strong as all contacts together that hold its two sides to each other in the end.
    """
    groups = found.groups
    count = len(objects)
    strength = np.full(count, -np.inf)
    for whole in range(objects.max() + 1):
        members = np.flatnonzero(objects == whole)
        edges = [way for way in found.joins if objects[groups.ways.first[way]] == whole]
        strength[members] = _weakest(groups, members, edges)
    return 1 / (1 + np.exp(-np.clip((strength - DOUBTED) / SHARPNESS, -30, 30)))


def _weakest(groups: Groups, members: Int64[np.ndarray, "k"], edges: list[int]) -> Float64[np.ndarray, "k"]:
    """For each member the weakest cut between it and the largest part that everything hangs on."""
    position = {int(piece): k for k, piece in enumerate(members)}
    pairs = [(position[int(groups.ways.first[way])], position[int(groups.ways.second[way])]) for way in edges]
    told = [(touch.first, touch.second, groups.told(touch)) for touch in groups.touches if touch.first in position]
    sides, cuts = [], []
    for left in range(len(pairs)):
        side = _reached(len(members), [pair for k, pair in enumerate(pairs) if k != left], pairs[left][0])
        crossing = [odds for first, second, odds in told if side[position[first]] != side[position[second]]]
        sides.append(side)
        cuts.append(sum(crossing))
    # The core is where the strongest joins meet: the member from which all others are reached most surely.
    best = np.full(len(members), np.inf)
    score = -np.inf
    for core in range(len(members)):
        weakest = np.full(len(members), np.inf)
        for side, cut in zip(sides, cuts, strict=True):
            across = side != side[core]
            weakest[across] = np.minimum(weakest[across], cut)
        worth = np.minimum(weakest, 10.0).sum()
        if worth > score:
            best, score = weakest, worth
    return np.where(np.isinf(best), best[np.isfinite(best)].max(initial=-np.inf), best)


def _reached(count: int, pairs: list[tuple[int, int]], start: int) -> np.ndarray:
    """What hangs together with the start by these pairs."""
    reached = np.zeros(count, bool)
    reached[start] = True
    grew = True
    while grew:
        grew = False
        for a, b in pairs:
            if reached[a] != reached[b]:
                reached[a] = reached[b] = grew = True
    return reached


def _side_by_side(groups: Groups, objects: Int64[np.ndarray, "n"]) -> Complex128[np.ndarray, "n"]:
    """Places in one plane: the first whole stays, all else lies to its right."""
    place = groups.place.copy()
    right = None
    parts = [np.flatnonzero(objects == whole) for whole in range(objects.max() + 1)]
    parts += [np.array([piece]) for piece in np.flatnonzero(objects < 0)]
    for members in parts:
        left = (place[members].real - groups.radius[members]).min()
        if right is not None:
            place[members] += right + 0.1 * groups.rims.unit - left
        right = (place[members].real + groups.radius[members]).max()
    return place
