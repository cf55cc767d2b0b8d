"""Which sides may be neighbours, and how clear that is: what the solvers of Yu and of Huroyan go by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from diffassemble.core.board import SIDES
from diffassemble.squares.edges import Partners, evidence

# Added to scores (true neighbours: near 1) before they are divided by each other.
_SOFTENING = 0.02
# Yu 2015 weighs matches by one over the ratio; the many unclear ones then outweigh the clear ones. Falling like this,
# as in the authors' own program, they do not.
_FALL = 5.0
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True)
class Matches:
    """Pairs of sides; `ratio` is their score over that of the best rival of either side.

    Below 1, each side is the other's best choice; near 0, nobody else comes close.
    """

    sides: Int64[np.ndarray, "m 2"]
    ratio: Float64[np.ndarray, "m"]

    def __len__(self) -> int:
        return len(self.sides)

    @property
    def weight(self) -> Float64[np.ndarray, "m"]:
        """How much each counts, from 0 to 1."""
        return np.maximum(np.exp(-_FALL * self.ratio**2), _LEAST_WEIGHT)

    def __getitem__(self, index: np.ndarray) -> Matches:
        return Matches(self.sides[index], self.ratio[index])


@dataclass(frozen=True)
class Candidates:
    """The best partners of every side, best first, and how probable it is that the two are neighbours."""

    side: Int64[np.ndarray, "sides keep"]
    score: Float32[np.ndarray, "sides keep"]
    probability: Float32[np.ndarray, "sides keep"]

    @staticmethod
    def of(partners: Partners) -> Candidates:
        """As arrays; a lone piece has no candidates."""
        probability = evidence(partners)[..., 0] if partners.side.numel() else partners.score
        return Candidates(partners.side.numpy(), partners.score.numpy(), probability.numpy())

    @property
    def pairs(self) -> Int64[np.ndarray, "sides keep 2"]:
        """Every side with each of its partners."""
        own = np.broadcast_to(np.arange(len(self.side))[:, None], self.side.shape)
        return np.stack([own, self.side], -1)

    def probable(self, above: float = 0.0) -> Int64[np.ndarray, "m 2"]:
        """All pairs more probable than that, the most probable first."""
        order = np.argsort(-self.probability, axis=None, kind="stable")
        chosen = order[self.probability.ravel()[order] > above]
        return self.pairs.reshape(-1, 2)[chosen]

    def best(self, possible: Bool[np.ndarray, "sides keep"]) -> Matches:
        """The best match of every side among those that are possible (M of Yu 2015: how much better than all others).

        What stands last in a list bounds the score of all who do not stand there.
        """
        if not self.side.size:
            return Matches(np.zeros((0, 2), np.int64), np.zeros(0))
        every = np.arange(len(self.side))
        left = possible.copy()
        first, best = self._next(left)
        left[every, first] = False
        _, second = self._next(left)
        some = np.asarray(possible.any(1))
        own = np.flatnonzero(some)
        other = self.side[own, first[own]]
        mutual = (self.side[other, first[other]] == own) & some[other]
        rival = np.minimum(second[own], np.where(mutual, second[other], best[other]))
        ratio = (best[own] + _SOFTENING) / (rival + _SOFTENING)
        once = ~mutual | (own < other)
        return Matches(np.stack([own, other], 1)[once], ratio[once].astype(np.float64))

    def _next(self, possible: Bool[np.ndarray, "sides keep"]) -> tuple[np.ndarray, np.ndarray]:
        """Where each side's first possible partner stands, and its score; without any, the score of the last."""
        place = possible.argmax(1)
        score = self.score[np.arange(len(self.side)), np.where(possible.any(1), place, self.side.shape[1] - 1)]
        return place, score


def turn_between(sides: Int64[np.ndarray, "*m 2"]) -> Int64[np.ndarray, "*m"]:
    """By how many quarter turns the first piece is turned against the second when these sides lie together."""
    return (sides[..., 1] + 2 - sides[..., 0]) % SIDES


def on_cycles(first: Int64[np.ndarray, "m"], second: Int64[np.ndarray, "m"], count: int) -> Bool[np.ndarray, "m"]:
    """Which edges of a graph lie on a cycle: without any of these, what it connects stays connected."""
    around: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for edge, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        around[a].append((b, edge))
        around[b].append((a, edge))
    seen, low, cycle = [-1] * count, [0] * count, np.ones(len(first), bool)
    for root in range(count):
        if seen[root] < 0:
            _mark_bridges(root, around, seen, low, cycle)
    return cycle


def _mark_bridges(
    root: int, around: list[list[tuple[int, int]]], seen: list[int], low: list[int], cycle: Bool[np.ndarray, "m"]
) -> None:
    """Tarjan's depth-first search: an edge is on no cycle if nothing beyond it leads back before it."""
    seen[root] = low[root] = 0
    path = [(root, -1, iter(around[root]))]
    while path:
        node, entered, rest = path[-1]
        for other, edge in rest:
            if edge == entered:
                continue
            if seen[other] < 0:
                seen[other] = low[other] = len(path)
                path.append((other, edge, iter(around[other])))
                break
            low[node] = min(low[node], seen[other])
        else:
            path.pop()
            if path:
                before = path[-1][0]
                low[before] = min(low[before], low[node])
                cycle[entered] = low[node] <= seen[before]
