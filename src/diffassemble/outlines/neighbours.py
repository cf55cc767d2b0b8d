"""Which flat pieces touch where they are, and which joins to make next."""

from __future__ import annotations

import math
from dataclasses import dataclass
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

_DIRECTIONS = ["right of", "below right of", "below", "below left of"]
_DIRECTIONS += ["left of", "above left of", "above", "above right of"]


@dataclass(frozen=True)
class ContactConfig:
    """When flat pieces touch; pieces that meet in a corner only do not."""

    reach: float = 0.15
    """outlines touch within this share of the narrower piece's width"""
    least_reach: float = 3.0
    """or this many pixels, if that is more"""
    contact: float = 0.5
    """pieces are neighbours if they touch along this share of that width"""
    step: int = 2
    """every so manieth point of an outline is used"""
    fine: int = 24
    """but at least so many a width"""


CONTACT = ContactConfig()


class Contacts(NamedTuple):
    """Pairs of pieces that touch: how long, in pixels, and how far apart they are there on average."""

    pairs: Int[Tensor, "m 2"]
    length: Float[Tensor, "m"]
    gap: Float[Tensor, "m"]


def touching(pieces: OutlinePieces, poses: Poses, config: ContactConfig = CONTACT) -> Contacts:
    """All pairs of neighbours, the first piece listed before the second."""
    wide = pieces.widths.numpy()
    step = max(1, min(config.step, int(wide.min() / config.fine)))
    moved = [outline[::step] for outline in pieces.placed_contours(poses)]
    trees = [cKDTree(points) for points in moved]
    low, high = (np.stack([getattr(points, name)(0) for points in moved]) for name in ("min", "max"))
    pairs, lengths, gaps = [], [], []
    for first in range(len(pieces)):
        narrower = np.minimum(wide[first], wide)
        reaches = np.maximum(config.least_reach, config.reach * narrower)
        near = (low - reaches[:, None] < high[first]).all(1) & (low[first] < high + reaches[:, None]).all(1)
        for second in (np.flatnonzero(near[first + 1 :]) + first + 1).tolist():
            apart, _ = trees[second].query(moved[first], distance_upper_bound=reaches[second])
            met = apart[np.isfinite(apart)]
            if len(met) * step >= config.contact * narrower[second]:
                pairs.append((first, second))
                lengths.append(float(len(met) * step))
                gaps.append(float(met.mean()))
    return Contacts(torch.tensor(pairs, dtype=torch.long).reshape(-1, 2), torch.tensor(lengths), torch.tensor(gaps))


def next_joins(assembly: Answer, count: int = 10) -> list[NextJoin]:
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
        x, y = (assembly.poses.translation[second] - assembly.poses.translation[first]).tolist()
        direction = _DIRECTIONS[round(math.atan2(y, x) / (math.pi / 4)) % 8]
        turns = ", ".join(f"turn {names[one]} by {round(degrees[one]) % 360}°" for one in (first, second))
        words = f"{names[second]} {direction} {names[first]}, {float(sure[index]):.2f} sure: {turns}"
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
