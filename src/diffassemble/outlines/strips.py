"""Shredded pages: which long sides of strips continue each other, and the order of the strips.

Sides are compared by how they are torn and by what runs across them (`strip_model`), with a free shift along the side
and half turns; empty paper between straight cuts says nothing, and is told as doubt. Poses are in pixels: strips stand
upright by their own axes, side by side without a gap, shifted along as matched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.core import Locks, Matches, OutlinePieces, Placements, Poses
from diffassemble.core.thresholds import LIKELY
from diffassemble.outlines.strip_model import Comparison, load_strip_model
from diffassemble.outlines.strip_order import best_path
from diffassemble.outlines.strip_sides import LEFT, RIGHT, StripFrame, looks_like_strips, read_sides, strip_frame

__all__ = ["looks_like_strips", "match_strips", "order_strips"]

# Partners of a side that are told at most.
_KEEP = 40
# Log odds beyond this are not told apart.
_CERTAIN = 14.0
# Log odds of what the locks say, which nothing outweighs.
_LOCKED = 1e3
# Locked strips lie beside each other if they are turned and shifted by no more than this against their match.
_SAME_TURN, _SAME_PLACE = 0.97, 0.5
# Rounds of balancing, after which probabilities no longer change.
_ROUNDS = 60
# How far pages in one bag are laid apart, in widths of a strip.
_APART = 2.0


def match_strips(pieces: OutlinePieces) -> Matches:
    """All likely joins of long sides, each once; slots are 4 · side + side, where 0 is right and 2 left."""
    frames = [strip_frame(contour) for contour in pieces.contours]
    if len(pieces) < 2:
        none = torch.zeros(0, dtype=torch.long)
        return Matches(none, none, Poses.identity(0, 2), none, torch.zeros(0, 3))
    model, sides = load_strip_model(), read_sides(pieces, frames)
    compared = model(sides.bands, sides.lengths)
    odds = model.calibrated(balanced(compared))
    first, second = _likely(odds).unbind(1)
    shifts = compared.shifts[first, second] / sides.scale
    chance = odds.sigmoid()
    ranks = (odds[first] > odds[first, second][:, None]).sum(1) + (odds[second] > odds[first, second][:, None]).sum(1)
    quality = (compared.fits[first, second] - compared.alone).sigmoid()
    return Matches(
        first // 2,
        second // 2,
        _relatives(frames, first, second, shifts),
        4 * 2 * (first % 2) + 2 * (second % 2),
        torch.stack([chance[first, second], 1 / (1 + ranks), quality], 1),
    )


def balanced(compared: Comparison) -> Float[Tensor, "s s"]:
    """Log odds of all joins if each side has one neighbour at most: with `alone`, the chances of each sum to one."""
    level = torch.zeros(len(compared.fits))
    for _ in range(_ROUNDS):
        total = torch.logaddexp((compared.fits + level).logsumexp(1), compared.alone)
        level = (level - total) / 2
    chance = (compared.fits + level + level[:, None]).double().exp().clamp(1e-9, 1 - 1e-9)
    return chance.logit().float().clamp(-_CERTAIN, _CERTAIN)


def _likely(odds: Float[Tensor, "s s"]) -> Int[Tensor, "m 2"]:
    """The best partners of every side, each pair once, of two strips."""
    count = len(odds)
    best = odds.topk(min(_KEEP, count), dim=1).indices
    chosen = torch.zeros(count, count, dtype=torch.bool)
    chosen[torch.arange(count)[:, None], best] = True
    strip = torch.arange(count) // 2
    return ((chosen | chosen.T) & (strip[:, None] < strip)).nonzero()


def _relatives(
    frames: Sequence[StripFrame], first: Int[Tensor, "m"], second: Int[Tensor, "m"], shifts: Float[Tensor, "m"]
) -> Poses:
    """How the strip of the first side, on its right, lies to that of the second, whose first row is at `shifts`."""
    motions = []
    for one, other, shift in zip(first.tolist(), second.tolist(), shifts.tolist(), strict=True):
        here, there = frames[one // 2], frames[other // 2]
        turned, turned_there = one % 2 == LEFT, other % 2 == RIGHT
        down = here.begins(turned) + shift - there.begins(turned_there)
        beside = torch.tensor([[here.reach[one % 2] + there.reach[other % 2], down]])
        standing = Poses(there.placed(turned_there).rotation, beside)
        motions.append(standing.inverse() @ here.placed(turned))
    return Poses(
        torch.cat([motion.rotation for motion in motions]), torch.cat([motion.translation for motion in motions])
    )


def order_strips(
    pieces: OutlinePieces, matches: Matches, locks: Locks | None, several: bool = False, until: float = math.inf
) -> Placements:
    """Lay all strips side by side along the path of most evidence; `until` is when to stop, by the monotonic clock.

    With `several` pages, a path ends where a join is less likely than not, and strips that hold to nothing are left
    out, laid beside the others.
    """
    count = len(pieces)
    frames = [strip_frame(contour) for contour in pieces.contours]
    # One chance in a thousand stands for joins that are not told.
    odds = np.full((2 * count, 2 * count), -7.0)
    row = np.full((2 * count, 2 * count), -1)
    first = (2 * matches.first + matches.slot // 8).numpy()
    second = (2 * matches.second + matches.slot % 4 // 2).numpy()
    told = matches.log_odds.numpy()
    odds[first, second] = odds[second, first] = told
    row[first, second] = row[second, first] = np.arange(len(matches))
    worth = odds if locks is None else _with_locks(odds, matches, first, second, locks, frames)
    path = best_path(worth, until)
    chances = np.array([1 / (1 + np.exp(-worth[a ^ 1, b])) for a, b in pairwise(path)])
    poses = _laid(path, frames, matches, row, chances < LIKELY if several else np.zeros(count - 1, bool))
    order = path // 2
    confidence, objects = torch.zeros(count), torch.zeros(count, dtype=torch.long)
    confidence[order] = torch.from_numpy(_sureness(chances)).float()
    notes = [""] * count
    parts = np.concatenate([[0], np.cumsum(chances < LIKELY)])
    if several:
        sizes = np.bincount(parts)
        number = np.cumsum(sizes > 1) - 1 if count > 1 else np.zeros(1, int)
        for part in range(len(sizes)):
            inside = order[parts == part]
            alone = sizes[part] == 1 < count
            objects[inside] = -1 if alone else int(number[part])
            sure = _sureness(chances[np.flatnonzero(parts == part)[:-1]])
            confidence[inside] = torch.from_numpy(0 * sure if alone else sure).float()
    if locks is not None:
        confidence[locks.held] = 1.0
    for place, strip in enumerate(order):
        doubtful = [
            name
            for name, join in (("left", place - 1), ("right", place))
            if 0 <= join < count - 1 and chances[join] < LIKELY
        ]
        if doubtful:
            notes[strip] = f"what lies to its {' and '.join(doubtful)} is a guess: too little runs across"
    return Placements(poses, confidence, objects, notes=tuple(notes))


def _sureness(chances: Float[np.ndarray, "j"]) -> Float[np.ndarray, "n"]:
    """How sure each strip of a path is: all joins between it and the strip from which the others are reached best."""
    doubt = np.concatenate([[0], np.cumsum(-np.log(np.maximum(chances, 1e-9)))])
    apart = np.exp(-np.abs(doubt[:, None] - doubt))
    return apart[apart.sum(1).argmax()]


def _laid(
    path: Int[np.ndarray, "n"],
    frames: Sequence[StripFrame],
    matches: Matches,
    row: Int[np.ndarray, "s s"],
    apart: Bool[np.ndarray, "j"],
) -> Poses:
    """Poses of all strips in listing order, one after the other from the left; most of them stay as they were given."""
    sides = path.tolist()
    standing = [frames[sides[0] // 2].placed(sides[0] % 2 == RIGHT)]
    for before, side, break_here in zip(sides[:-1], sides[1:], apart, strict=True):
        match = int(row[before ^ 1, side])
        if match < 0:
            one, other = torch.tensor([before ^ 1]), torch.tensor([side])
            here, there = (
                frames[s // 2].begins(t) for s, t in ((before, before % 2 == RIGHT), (side, side % 2 == RIGHT))
            )
            # Side by side, their middles level.
            level = (here + frames[before // 2].length / 2) - (there + frames[side // 2].length / 2)
            relative = _relatives(frames, one, other, torch.tensor([level - here + there]))
        else:
            relative = matches[torch.tensor([match])].pose
            if int(matches.first[match]) != before // 2:
                relative = relative.inverse()
        following = standing[-1] @ relative.inverse()
        if break_here:
            width = float(np.mean(frames[side // 2].widths))
            following = Poses(following.rotation, following.translation + torch.tensor([[_APART * width, 0.0]]))
        standing.append(following)
    if 2 * np.sum(path % 2 == RIGHT) > len(path):
        turn = Poses(-torch.eye(2)[None], torch.zeros(1, 2))
        standing = [turn @ pose for pose in standing]
    back = torch.from_numpy(np.argsort(path // 2))
    poses = Poses(torch.cat([pose.rotation for pose in standing]), torch.cat([pose.translation for pose in standing]))
    return Poses(poses.rotation[back], (poses.translation - poses.translation.mean(0))[back])


def _with_locks(
    odds: Float[np.ndarray, "s s"],
    matches: Matches,
    first: Int[np.ndarray, "m"],
    second: Int[np.ndarray, "m"],
    locks: Locks,
    frames: Sequence[StripFrame],
) -> Float[np.ndarray, "s s"]:
    """The same log odds, with joins of two locked strips as certain as they are locked, or impossible."""
    held = locks.held.repeat_interleave(2).numpy()
    worth = np.where(held[:, None] & held, -_LOCKED, odds)
    both = (locks.held[matches.first] & locks.held[matches.second]).nonzero().flatten()
    wanted = locks.poses[matches.second[both]].inverse() @ locks.poses[matches.first[both]]
    given = matches.pose[both]
    cosine = (wanted.rotation * given.rotation).sum((1, 2)) / 2
    missed = (wanted.translation - given.translation).norm(dim=1)
    for index, turn, apart in zip(both.tolist(), cosine.tolist(), missed.tolist(), strict=True):
        a, b = first[index], second[index]
        if turn > _SAME_TURN and apart < _SAME_PLACE * float(np.mean(frames[a // 2].widths)):
            worth[a, b] = worth[b, a] = _LOCKED
    return worth
