"""Successive linear programs over matches (Yu 2015, sections 3.2 to 3.4).

Each round takes the best match of every side that is still open, weighs it by how clear it is, and solves the program.
Matches that do not hold in its solution are rejected for good, those that do join trees, which stay rigid from then on;
in the next round, others take the place of the rejected ones. It ends when nothing more can be joined.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from diffassemble.compatibility.image import SIDES
from diffassemble.solvers.framing import FramedForest
from diffassemble.solvers.linear_program import inconsistency
from diffassemble.solvers.matches import Candidates, Matches, on_cycles

# In cells. Solutions lie on corners of the program: what holds, holds to many digits.
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Caution:
    """Which matches are believed: those whose ratio is below `clear` take part, and in the solution must hold.

    Matches that close no cycle hold in any case: they must have a ratio below `sure`.
    """

    clear: float = 0.9
    sure: float = 0.6
    rounds: int = 20


def join_consistent(
    framed: FramedForest,
    candidates: Candidates,
    possible: Bool[np.ndarray, "sides keep"],
    caution: Caution,
    until: float = math.inf,
) -> Iterator[None]:
    """Join trees by one linear program after the other, and say so after each.

    `possible` tells which candidates may be thought of at all, `until` is when to stop, by the monotonic clock.
    """
    pairs = candidates.pairs
    numbers = pairs.min(-1) * len(pairs) + pairs.max(-1)
    for _ in range(caution.rounds):
        free = framed.open_sides()
        label = framed.forest.label[pairs // SIDES]
        possible = possible & free[:, None] & free[candidates.side] & (label[..., 0] != label[..., 1])
        matches = candidates.best(possible)
        matches = matches[matches.ratio < caution.clear]
        if not len(matches) or time.monotonic() > until:
            return
        accepted, rejected = _judge(framed, matches, caution, until)
        accepted = accepted[np.argsort(accepted.ratio, kind="stable")]
        refused = framed.join(accepted.sides)
        never = np.concatenate([rejected.sides, accepted.sides[refused]])
        possible &= ~np.isin(numbers, never.min(-1) * len(pairs) + never.max(-1))
        yield
        if refused.all():
            return


def _judge(framed: FramedForest, matches: Matches, caution: Caution, until: float) -> tuple[Matches, Matches]:
    """Matches to join along, and those that the solution rejects; some are neither."""
    missed = inconsistency(framed.forest, matches.sides, matches.weight, until - time.monotonic())
    holds = np.flatnonzero((missed < _TOLERANCE) & (matches.ratio < 1))
    tree = np.unique(framed.forest.label, return_inverse=True)[1]
    first, second = _trees(tree, matches.sides[holds])
    supported = on_cycles(first, second, int(tree.max()) + 1)
    believed = holds[supported | (matches.ratio[holds] < caution.sure)]
    return matches[believed], matches[np.flatnonzero(missed >= _TOLERANCE)]


def _trees(tree: Int64[np.ndarray, "n"], sides: Int64[np.ndarray, "m 2"]) -> tuple[np.ndarray, np.ndarray]:
    return tree[sides[:, 0] // SIDES], tree[sides[:, 1] // SIDES]
