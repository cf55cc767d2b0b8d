"""Shredded pages: which long sides of strips continue each other, and the order of the strips.

Sides are compared by their course and by what crosses them (`strip_sides`), with a free shift along the side and half
turns; empty paper between straight cuts is no evidence. The order is grown (`assembly.paths`). Poses are in pixels:
strips are upright by their own axes, side by side without a gap, shifted along as matched. Sides are numbered
2 · strip + side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from diffassemble.assembly.confidence import calibration, path_confidence
from diffassemble.assembly.locks import realises
from diffassemble.assembly.paths import best_path
from diffassemble.core import Locks, Matches, OutlinePieces, Placements, Poses
from diffassemble.core.thresholds import LIKELY
from diffassemble.outlines.strip_sides import (
    LEFT,
    RIGHT,
    Comparison,
    StripFrame,
    load_strip_model,
    looks_like_strips,
    read_sides,
    strip_frame,
)

__all__ = ["looks_like_strips", "match_strips", "order_strips"]


@dataclass(frozen=True)
class StripConfig:
    """Matching and ordering of strips; evidence is log odds. Rivals were chosen on made pages (decisions/017)."""

    partners: int = 40
    """matches of a side, at most"""
    certain: float = 14.0
    """larger odds are not distinguished"""
    rounds: int = 60
    """steps of balancing, after which probabilities no longer change"""
    unlisted: float = -7.0
    """odds of joins that are not among the matches: one in a thousand"""
    rivals: int = 24
    """orders that begin with a join that the best order contradicts"""
    locked: float = 1e3
    """odds of joins of two locked strips, which no evidence outweighs"""
    realised: tuple[float, float] = (0.5, 0.245)
    """distance, in widths, and angle within which locked strips realise a match"""
    apart: float = 2.0
    """distance of pages of one bag, in widths of a strip"""


STRIPS = StripConfig()


def match_strips(pieces: OutlinePieces, config: StripConfig = STRIPS) -> Matches:
    """All likely joins of long sides, each once; slots are 4 · side + side, where 0 is right and 2 left."""
    if len(pieces) < 2:
        return Matches.none(2)
    frames = [strip_frame(contour) for contour in pieces.contours]
    model, sides = load_strip_model(), read_sides(pieces, frames)
    compared = model(sides.bands, sides.lengths)
    odds = model.calibrated(balanced(compared, config))
    # The best partners of every side, each pair once.
    best = odds.topk(min(config.partners, len(odds)), dim=1).indices
    chosen = torch.zeros(odds.shape, dtype=torch.bool).scatter(1, best, True)
    strip = torch.arange(len(odds)) // 2
    first, second = ((chosen | chosen.T) & (strip[:, None] < strip)).nonzero().unbind(1)
    poses = [
        relative_pose(frames, one, other, shift / sides.scale)
        for one, other, shift in zip(
            first.tolist(), second.tolist(), compared.shifts[first, second].tolist(), strict=True
        )
    ]
    own = odds[first, second]
    ranks = (odds[first] > own[:, None]).sum(1) + (odds[second] > own[:, None]).sum(1)
    quality = (compared.fits[first, second] - compared.alone).sigmoid()
    return Matches(
        first // 2,
        second // 2,
        stacked(poses),
        4 * 2 * (first % 2) + 2 * (second % 2),
        torch.stack([own.sigmoid(), 1 / (1 + ranks), quality], 1),
    )


def balanced(compared: Comparison, config: StripConfig = STRIPS) -> Float[Tensor, "s s"]:
    """Log odds of all joins if each side has one neighbour at most: with `alone`, the chances of each sum to one."""
    level = torch.zeros(len(compared.fits))
    for _ in range(config.rounds):
        total = torch.logaddexp((compared.fits + level).logsumexp(1), compared.alone)
        level = (level - total) / 2
    chance = (compared.fits + level + level[:, None]).double().exp().clamp(1e-9, 1 - 1e-9)
    return chance.logit().float().clamp(-config.certain, config.certain)


def relative_pose(frames: Sequence[StripFrame], one: int, other: int, shift: float) -> Poses:
    """The pose of the strip of the first side, on its right, in the frame of the other's, whose first row is at
    `shift` of the first strip."""
    here, there = frames[one // 2], frames[other // 2]
    turned, turned_there = one % 2 == LEFT, other % 2 == RIGHT
    down = here.begins(turned) + shift - there.begins(turned_there)
    beside = torch.tensor([[here.reach[one % 2] + there.reach[other % 2], down]])
    return Poses(there.placed(turned_there).rotation, beside).inverse() @ here.placed(turned)


def stacked(poses: Sequence[Poses]) -> Poses:
    """Several poses as one."""
    return Poses(torch.cat([pose.rotation for pose in poses]), torch.cat([pose.translation for pose in poses]))


def order_strips(
    pieces: OutlinePieces,
    matches: Matches,
    locks: Locks | None,
    several: bool = False,
    until: float = math.inf,
    config: StripConfig = STRIPS,
) -> Placements:
    """All strips side by side along the path of most evidence; after `until` no other path is tried.

    With `several` pages, a path ends where a join is less likely than not, and strips without a likely join are
    unplaced, beside the others.
    """
    # 1. Evidence of all pairs of sides.
    count, sides = len(pieces), 2 * len(pieces)
    frames = [strip_frame(contour) for contour in pieces.contours]
    worth, row = np.full((sides, sides), config.unlisted), np.full((sides, sides), -1)
    first = (2 * matches.first + matches.slot // 8).numpy()
    second = (2 * matches.second + matches.slot % 4 // 2).numpy()
    worth[first, second] = worth[second, first] = matches.log_odds.numpy()
    row[first, second] = row[second, first] = np.arange(len(matches))
    if locks is not None:
        held = locks.held.repeat_interleave(2).numpy()
        worth[held[:, None] & held] = -config.locked
        widths = torch.tensor([float(np.mean(frame.widths)) for frame in frames])[matches.first]
        kept = realises(matches, locks.poses, config.realised[0] * widths, config.realised[1])
        both = (kept & locks.held[matches.first] & locks.held[matches.second]).numpy()
        worth[first[both], second[both]] = worth[second[both], first[both]] = config.locked
    # 2. The order, and where pages end.
    path = best_path(worth, config.rivals, until)
    order, joins = path // 2, np.array([worth[a ^ 1, b] for a, b in pairwise(path)])
    chances = calibration("strips")(joins)
    doubtful = chances < LIKELY
    page = np.concatenate([[0], np.cumsum(doubtful if several else 0 * doubtful)]).astype(int)
    sizes = np.bincount(page)
    number = np.where((sizes > 1) | (count == 1), np.cumsum(sizes > 1) - (count > 1), -1)
    # 3. Confidence and notes.
    confidence, objects, notes = torch.zeros(count), torch.zeros(count, dtype=torch.long), [""] * count
    for part in range(len(sizes)):
        inside = np.flatnonzero(page == part)
        objects[order[inside]] = int(number[part])
        if number[part] >= 0:
            confidence[order[inside]] = torch.from_numpy(path_confidence(chances[inside[:-1]])).float()
    if locks is not None:
        confidence[locks.held] = 1.0
    for place, strip in enumerate(order):
        beside = {"left": place - 1, "right": place}
        guessed = [side for side, join in beside.items() if 0 <= join < count - 1 and doubtful[join]]
        if guessed:
            notes[strip] = f"its neighbour on the {' and '.join(guessed)} is a guess: too little crosses the cut"
    poses = _laid(path, frames, matches, row, doubtful & several, config)
    return Placements(poses, confidence, objects, notes=tuple(notes))


def _laid(
    path: Int64[np.ndarray, "n"],
    frames: Sequence[StripFrame],
    matches: Matches,
    row: Int64[np.ndarray, "s s"],
    apart: Bool[np.ndarray, "j"],
    config: StripConfig,
) -> Poses:
    """Poses of all strips in listing order, one after the other from the left; most of them stay as they were given."""
    sides = path.tolist()
    poses = [frames[sides[0] // 2].placed(sides[0] % 2 == RIGHT)]
    for before, side, break_here in zip(sides[:-1], sides[1:], apart, strict=True):
        if (match := int(row[before ^ 1, side])) >= 0:
            relative = matches[torch.tensor([match])].pose
            relative = relative if int(matches.first[match]) == before // 2 else relative.inverse()
        else:  # side by side, their middles level
            level = (frames[before // 2].length - frames[side // 2].length) / 2
            relative = relative_pose(frames, before ^ 1, side, level)
        following = poses[-1] @ relative.inverse()
        gap = config.apart * float(np.mean(frames[side // 2].widths)) if break_here else 0.0
        poses.append(Poses(following.rotation, following.translation + torch.tensor([[gap, 0.0]])))
    whole = stacked(poses)
    if 2 * np.sum(path % 2 == RIGHT) > len(path):
        whole = Poses(-whole.rotation, -whole.translation)
    whole = whole[torch.from_numpy(np.argsort(path // 2))]
    return Poses(whole.rotation, whole.translation - whole.translation.mean(0))
