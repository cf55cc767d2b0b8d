"""Flat pieces and their matches as the network hears them: in sizes of the whole, so that it is free of scale.

The length that counts as one is the side of a square of the area of all pieces together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import Locks, Matches, OutlinePieces, Poses, Puzzle
from diffassemble.network.evidence import grow_clusters

# Matches of a piece that are heard: so many of the most probable ones, none below this.
_MOST, _LEAST = 12, 0.003


class Heard(NamedTuple):
    """A puzzle and its matches, both ways, told in `length`, which is a number of pixels."""

    puzzle: Puzzle
    matches: Matches
    length: float

    def in_pixels(self, poses: Poses) -> Poses:
        """Poses as everybody else tells them."""
        return resized(poses, self.length)


def resized(poses: Poses, by: float) -> Poses:
    """The same poses of things that are larger by that factor."""
    return Poses(poses.rotation, by * poses.translation)


def heard(puzzle: Puzzle, matches: Matches) -> Heard:
    """A puzzle in pixels, and what its matches say, as the network hears them."""
    pieces = puzzle.outlines
    length = float(pieces.areas.sum().sqrt())
    small = OutlinePieces(
        pieces.textures, tuple(contour / length for contour in pieces.contours), pieces.origins, pieces.coloured
    )
    locks, truth = puzzle.locks, puzzle.truth
    told = replace(
        puzzle,
        pieces=small,
        truth=None if truth is None else resized(truth, 1 / length),
        locks=None if locks is None else Locks(locks.held, resized(locks.poses, 1 / length)),
    )
    likely = _most_likely(both_ways(matches), len(puzzle))
    likely = replace(likely, pose=resized(likely.pose, 1 / length), slot=torch.zeros_like(likely.slot))
    return Heard(told, likely, length)


def both_ways(matches: Matches) -> Matches:
    """Every match one way, then the other way round, however they were listed."""
    forth = matches.first < matches.second
    ahead = set(zip(matches.first[forth].tolist(), matches.second[forth].tolist(), strict=True))
    pairs = zip(matches.first.tolist(), matches.second.tolist(), strict=True)
    alone = torch.tensor([one > two and (two, one) not in ahead for one, two in pairs], dtype=torch.bool)
    kept = matches[(forth | alone).nonzero()[:, 0]]
    back = kept.pose.inverse()
    return Matches(
        torch.cat([kept.first, kept.second]),
        torch.cat([kept.second, kept.first]),
        Poses(
            torch.cat([kept.pose.rotation, back.rotation]),
            torch.cat([kept.pose.translation, back.translation]),
        ),
        kept.slot.repeat(2),
        kept.evidence.repeat(2, 1),
    )


def _most_likely(matches: Matches, count: int) -> Matches:
    """What is heard of matches that are listed both ways; a pair is, if either of its pieces has it among its best."""
    order = (matches.first - matches.probability.double().clamp(max=0.999)).argsort(stable=True)
    starts = torch.bincount(matches.first, minlength=count).cumsum(0) - torch.bincount(matches.first, minlength=count)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - starts[matches.first[order]]
    chosen = (rank < _MOST) & (matches.probability >= _LEAST)
    half = len(matches) // 2
    either = chosen[:half] | chosen[half:]
    return matches[either.repeat(2).nonzero()[:, 0]]


def standing(matches: Matches, count: int) -> Float[Tensor, "n"]:
    """How much speaks for seeing all others from each piece: the size of its likely cluster, then its own matches."""
    own = torch.zeros(count).index_add(0, matches.first, matches.probability)
    return grow_clusters(matches, count, apart=0.0)[1].sizes() + own / (1 + own)
