"""Confidence: how strongly a piece is held by the core of its group, as a calibrated probability, for every kind.

A piece may fit its neighbours perfectly and be wrong with all of them. So its strength is that of the weakest cut
between it and the core of its group: the log odds of all contacts across the cut together. `Calibration` turns a
strength into a probability; its numbers are data (`weights/calibration.json`), fitted on held-apart training data by
`benchmarks/calibrate_confidence.py` for each kind and quality of data. Strengths by kind:

    squares             log odds that hold every subgroup around a piece (`agglomerate`, in `squares.energy`)
    tabs                the same (`weakest_group`), or the margin over rivals if that is less
    free, fragments     contacts across the weakest join between a piece and the core (`weakest_join`)
    strips              probabilities of all joins between a strip and the core (`path_confidence`)
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from jaxtyping import Float64
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

STEEPEST = 30.0
"""logits are clipped to ± this before the logistic function; beyond, single precision gives 0 and 1"""


@dataclass(frozen=True)
class Calibration:
    """Probability of being right by strength x, in log odds: min(ceiling, σ(slope · x + shift)).

    Example:
        >>> Calibration(slope=0.9, shift=-0.4)(np.array([5.0])).round(3)
        array([0.984])
    """

    slope: float
    shift: float
    ceiling: float = 1.0

    def __call__(self, strength: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
        logit = np.clip(self.slope * np.asarray(strength, float) + self.shift, -STEEPEST, STEEPEST)
        return np.minimum(self.ceiling, 1 / (1 + np.exp(-logit)))


@cache
def calibrations() -> dict[str, dict[str, dict[str, float]]]:
    """Slope, shift and ceiling of every calibration, by kind and quality of data: weights/calibration.json."""
    return json.loads(files("diffassemble").joinpath("weights", "calibration.json").read_text())


def calibration(kind: str, quality: str = "default") -> Calibration:
    """The calibration of a kind of pieces; that of its default where a quality of data has none of its own."""
    table = calibrations()[kind]
    found = table.get(quality, table["default"])
    return Calibration(found["slope"], found["shift"], found.get("ceiling", 1.0))


def weakest_join(
    count: int, joins: Sequence[tuple[int, int]], contacts: Sequence[tuple[int, int, float]], enough: float = 10.0
) -> Float64[np.ndarray, "n"]:
    """For each of `count` pieces of one group, the weakest cut between it and the core, in log odds.

    `joins` are the n − 1 pairs along which the group grew; removing one cuts the group in two, and the cut is as strong
    as all `contacts` (first, second, log odds) across it together. The core is the piece from which all others are
    reached most strongly, where `enough` is as good as any more.
    """
    rows, cols = (np.array([join[side] for join in joins], int) for side in range(2))
    sides, cuts = [], []
    for left in range(len(joins)):
        kept = np.arange(len(joins)) != left
        graph = coo_matrix((np.ones(kept.sum()), (rows[kept], cols[kept])), (count, count))
        label = connected_components(graph, directed=False)[1]
        side = label == label[rows[left]]
        sides.append(side)
        cuts.append(sum(odds for first, second, odds in contacts if side[first] != side[second]))
    best, most = np.full(count, np.inf), -np.inf
    for core in range(count):
        weakest = np.full(count, np.inf)
        for side, cut in zip(sides, cuts, strict=True):
            across = side != side[core]
            weakest[across] = np.minimum(weakest[across], cut)
        worth = np.minimum(weakest, enough).sum()
        if worth > most:
            best, most = weakest, worth
    return np.where(np.isinf(best), best[np.isfinite(best)].max(initial=-np.inf), best)


def agglomerate(
    count: int, contacts: Iterable[tuple[int, int, float]], least: float = -math.inf
) -> Iterator[tuple[list[int], list[int], dict[int, float]]]:
    """Groups of `count` pieces that arise by joining, again and again, the two with the strongest contacts.

    Yields every group as it arises, single pieces first: its members, of these the ones added last, and the sums of its
    `contacts` (first, second, log odds) with other groups by their first members. Ends when no sum is at least `least`.
    """
    between: list[dict[int, float]] = [{} for _ in range(count)]
    for one, two, odds in contacts:
        between[one][two] = between[two][one] = between[one].get(two, 0.0) + odds
    members = [[piece] for piece in range(count)]
    for piece in range(count):
        yield members[piece], members[piece], between[piece]
    queue = [(-odds, one, two) for one, others in enumerate(between) for two, odds in others.items() if one < two]
    heapq.heapify(queue)
    while queue:
        negative, one, two = heapq.heappop(queue)
        if -negative < least or between[one].get(two) != -negative:  # too weak, or out of date
            continue
        if len(members[one]) < len(members[two]):
            one, two = two, one
        members[one] += members[two]
        del between[one][two], between[two][one]
        for other, odds in between[two].items():
            del between[other][two]
            between[one][other] = between[other][one] = total = between[one].get(other, 0.0) + odds
            heapq.heappush(queue, (-total, min(one, other), max(one, other)))
        between[two] = {}
        yield members[one], members[two], between[one]


def weakest_group(
    count: int, contacts: Sequence[tuple[int, int, float]], prior: float = 0.0
) -> Float64[np.ndarray, "n"]:
    """For each of `count` pieces of one group, the least log odds that hold any subgroup around it to the rest.

    Of the subgroups of `agglomerate`, those of at most half of all pieces are weighed: all their `contacts` with
    others, and the `prior` that a subgroup belongs where it is. A piece without contacts keeps +∞ only if it is alone.
    """
    least = np.full(count, np.inf)
    for inside, _, others in agglomerate(count, contacts):
        if 2 * len(inside) <= count:
            least[inside] = np.minimum(least[inside], sum(others.values()) + prior)
    return least


def path_confidence(probabilities: Float64[np.ndarray, "j"]) -> Float64[np.ndarray, "n"]:
    """Confidence of n = j + 1 pieces along a path whose joins are independent: Π p of all joins up to the core.

    The core is the piece from which the others are reached best.
    """
    doubt = np.concatenate([[0], np.cumsum(-np.log(np.maximum(probabilities, 1e-9)))])
    reached = np.exp(-np.abs(doubt[:, None] - doubt))
    return reached[reached.sum(1).argmax()]
