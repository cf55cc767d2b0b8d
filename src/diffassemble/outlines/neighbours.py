"""Which flat pieces touch where they stand, and which joins to make next."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.kind import NextJoin
from diffassemble.core import OutlinePieces, Poses
from diffassemble.core.poses import angles
from diffassemble.core.puzzle import labels

# Outlines touch within this share of the narrower piece's width, or this many pixels if that is more; pieces are
# neighbours if they do along this share of the width. Pieces that meet in a corner only are none.
REACH, LEAST_REACH, LEAST_CONTACT = 0.15, 3.0, 0.5
# Points of outlines are looked at in steps of so many pixels at most, and at least so many a width.
_STEP, _FINE = 2, 24
NEXT = 10


class Contacts(NamedTuple):
    """Pairs of pieces that touch: how long, in pixels, and how far apart they are there on average."""

    pairs: Int[Tensor, "m 2"]
    length: Float[Tensor, "m"]
    gap: Float[Tensor, "m"]


def touching(pieces: OutlinePieces, poses: Poses) -> Contacts:
    """All pairs that are neighbours where they stand, the first piece listed before the second."""
    wide = pieces.widths
    step = max(1, min(_STEP, int(wide.min() / _FINE)))
    moved = [
        (contour[::step].double() @ turn.double().T + shift.double()).numpy()
        for contour, turn, shift in zip(pieces.contours, poses.rotation.cpu(), poses.translation.cpu(), strict=True)
    ]
    trees = [cKDTree(points) for points in moved]
    low, high = (np.stack([getattr(points, name)(0) for points in moved]) for name in ("min", "max"))
    pairs, lengths, gaps = [], [], []
    for first in range(len(pieces)):
        reaches = np.maximum(LEAST_REACH, REACH * np.minimum(wide[first].item(), wide.numpy()))
        near = (low - reaches[:, None] < high[first]).all(1) & (low[first] < high + reaches[:, None]).all(1)
        for second in (np.flatnonzero(near[first + 1 :]) + first + 1).tolist():
            apart, _ = trees[second].query(moved[first], distance_upper_bound=reaches[second])
            met = apart[np.isfinite(apart)]
            if len(met) * step >= LEAST_CONTACT * min(wide[first].item(), wide[second].item()):
                pairs.append((first, second))
                lengths.append(float(len(met) * step))
                gaps.append(float(met.mean()))
    return Contacts(torch.tensor(pairs, dtype=torch.long).reshape(-1, 2), torch.tensor(lengths), torch.tensor(gaps))


def next_joins(assembly: Answer, count: int = NEXT) -> list[NextJoin]:
    """The surest joins that are still to make: of pieces that have a place and are not both locked to it.

    A join is as sure as the less sure of its pieces; of equally sure ones, long and tight contacts come first.
    """
    puzzle = assembly.puzzle
    contacts = touching(puzzle.outlines, assembly.poses)
    sure = assembly.placements.trust[contacts.pairs].amin(1)
    fit = contacts.length / (1 + contacts.gap)
    open_ = (sure > 0) & ~_made(assembly, contacts.pairs)
    order = sorted(open_.nonzero().flatten().tolist(), key=lambda i: (-round(float(sure[i]), 3), -float(fit[i])))
    names, degrees = labels(puzzle.names), np.degrees(angles(assembly.poses))
    joins = []
    for index in order[:count]:
        first, second = contacts.pairs[index].tolist()
        way = (assembly.poses.translation[second] - assembly.poses.translation[first]).tolist()
        turns = (f"turn {names[one]} by {round(degrees[one]) % 360}°" for one in (first, second))
        words = f"{names[second]} {_direction(*way)} {names[first]}, {float(sure[index]):.2f} sure: {', '.join(turns)}"
        joins.append(NextJoin(first, second, float(sure[index]), words))
    return joins


def _made(assembly: Answer, pairs: Int[Tensor, "m 2"]) -> Bool[Tensor, "m"]:
    """Which pairs are locked to their places, or of different wholes, so that there is nothing to join."""
    locks, objects = assembly.puzzle.locks, assembly.objects
    made = torch.zeros(len(pairs), dtype=torch.bool) if locks is None else locks.held[pairs].all(1)
    if objects is not None:
        own = objects[pairs]
        made |= (own < 0).any(1) | (own[:, 0] != own[:, 1])
    return made


def _direction(x: float, y: float) -> str:
    """Where something lies, in words."""
    words = (
        "right of",
        "below right of",
        "below",
        "below left of",
        "left of",
        "above left of",
        "above",
        "above right of",
    )
    return words[round(math.atan2(y, x) / (math.pi / 4)) % 8]
