"""Order along a path: the constraint of pieces with two sides each, such as the strips of a shredded page.

A piece may be turned by half, which exchanges its sides. As a join is worth the same seen from either end, paths are
joined by any of their ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from diffassemble.assembly.growth import Constraint, GrowthPolicy, grown


@dataclass
class Paths:
    """Pieces joined to paths: the side beside each side, −1 at ends; the path of each piece; the worth of all joins."""

    beside: Int64[np.ndarray, "s"]
    path: Int64[np.ndarray, "n"]
    total: float = 0.0


class PathOrder(Constraint[Paths, tuple[int, int]]):
    """Joins are pairs of sides: of ends of two paths, so that no ring arises.

    `worth` are symmetric log odds of sides, numbered 2 · piece + side; joins above `likely` may begin an attempt.
    """

    def __init__(self, worth: Float64[np.ndarray, "s s"], likely: float = -1.0) -> None:
        self.worth = worth
        one, other = np.triu_indices(len(worth), 1)
        order = np.argsort(-worth[one, other], kind="stable")
        self.sides = list(zip(one[order].tolist(), other[order].tolist(), strict=True))
        self.likely = self.sides[: int((worth[one, other] > likely).sum())]

    def begin(self) -> Paths:
        """Every piece alone."""
        return Paths(np.full(len(self.worth), -1), np.arange(len(self.worth) // 2))

    def proposals(self, state: Paths) -> list[tuple[int, int]]:
        """All pairs of sides, the most probable first."""
        return self.sides

    def evidence(self, state: Paths, join: tuple[int, int]) -> float:
        """Log odds of a join; −∞ unless both are ends of different paths."""
        one, other = join
        free = state.beside[one] < 0 and state.beside[other] < 0 and state.path[one // 2] != state.path[other // 2]
        return float(self.worth[join]) if free else -math.inf

    def join(self, state: Paths, join: tuple[int, int]) -> Iterable[tuple[int, int]]:
        """Make two paths one."""
        one, other = join
        state.beside[one], state.beside[other] = other, one
        state.path[state.path == state.path[other // 2]] = state.path[one // 2]
        state.total += float(self.worth[join])
        return ()

    def total(self, state: Paths) -> float:
        """Log odds of all joins."""
        return state.total

    def contradicted(self, state: Paths) -> list[tuple[int, int]]:
        """Likely joins of sides that have other neighbours, the likeliest first."""
        return [join for join in self.likely if state.beside[join[0]] != join[1]]


def best_path(worth: Float64[np.ndarray, "s s"], rivals: int, until: float = math.inf) -> Int64[np.ndarray, "n"]:
    """The path through all pieces of most worth that was found, as the sequence of the sides on the left."""
    beside = grown(PathOrder(worth), GrowthPolicy(least=-math.inf, rivals=rivals, until=until)).state.beside
    path = [int(np.flatnonzero(beside < 0)[0])]
    while (side := int(beside[path[-1] ^ 1])) >= 0:
        path.append(side)
    return np.array(path)
