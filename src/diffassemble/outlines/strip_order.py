"""The best order of strips: the path through all of them whose joins are worth most, as loops that numba compiles.

A path is the sequence of left sides as the strips lie, 2 · strip + side; a strip's right side is then the other one. As
a join is worth the same seen upside down, turning a stretch of a path by half changes its two ends only. Type
checkers are kept away, as in `core.forest`.
"""

from __future__ import annotations

import math
import time
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Int
from numba import njit

# How many times the best path is disturbed and mended, for each strip.
_ROUNDS = 12
# Longer stretches are turned where they are, not moved.
_SHORT = 8


def best_path(worth: Float[np.ndarray, "s s"], until: float = math.inf) -> Int[np.ndarray, "n"]:
    """The path through all strips of the most worth that was found; `worth` of joining two sides is symmetric."""
    path = _greedy(worth)
    _improve(path, worth)
    best, most = path.copy(), _value(path, worth)
    rng = np.random.default_rng(0)
    count = len(path)
    for _ in range(_ROUNDS * count if count > 3 else 0):
        if time.monotonic() > until:
            break
        # Two stretches beside each other change places: what neither turning nor moving one of them undoes at once.
        first, middle, last = np.sort(rng.choice(count + 1, 3, replace=False))
        path = np.concatenate([best[:first], best[middle:last], best[first:middle], best[last:]])
        _improve(path, worth)
        if (value := _value(path, worth)) > most + 1e-9:
            best, most = path.copy(), value
    return best


def _greedy(worth: Float[np.ndarray, "s s"]) -> Int[np.ndarray, "n"]:
    """Join the two free sides that are worth most, again and again, never to a ring."""
    count = len(worth) // 2
    beside, part = np.full(2 * count, -1), np.arange(count)
    one, other = np.triu_indices(2 * count, 1)
    for index in np.argsort(-worth[one, other], kind="stable"):
        a, b = one[index], other[index]
        if beside[a] < 0 and beside[b] < 0 and part[a // 2] != part[b // 2]:
            beside[a], beside[b] = b, a
            part[part == part[b // 2]] = part[a // 2]
    side = int(np.flatnonzero(beside < 0)[0])
    path = [side]
    while (side := int(beside[path[-1] ^ 1])) >= 0:
        path.append(side)
    return np.array(path)


@njit(cache=True)
@no_type_check
def _value(path, worth):
    total = 0.0
    for k in range(len(path) - 1):
        total += worth[path[k] ^ 1, path[k + 1]]
    return total


@njit(cache=True)
@no_type_check
def _improve(path, worth):
    """Turn stretches by half, and move them elsewhere either way round, in place, as long as that gains."""
    count = len(path)
    stretch, rest = np.empty_like(path), np.empty_like(path)
    gained = True
    while gained:
        gained = False
        for first in range(count):
            for last in range(first, count):
                before = worth[path[first - 1] ^ 1, path[first]] if first > 0 else 0.0
                after = worth[path[last] ^ 1, path[last + 1]] if last < count - 1 else 0.0
                turned = worth[path[first - 1] ^ 1, path[last] ^ 1] if first > 0 else 0.0
                turned += worth[path[first], path[last + 1]] if last < count - 1 else 0.0
                best, where, flip = 1e-9 + before + after, -2, False
                if turned > best:
                    best, where, flip = turned + 1e-9, -1, True
                closed = 0.0
                if first > 0 and last < count - 1:
                    closed = worth[path[first - 1] ^ 1, path[last + 1]]
                # Before strip `goal` of those that are left, of which there are `count` less the stretch.
                size = last - first + 1
                goals = 0 if _SHORT < size < count - _SHORT else count - size + 1
                for goal in range(goals):
                    if goal == first:
                        continue
                    left = goal - 1 if goal - 1 < first else goal - 1 + size
                    right = goal if goal < first else goal + size
                    opened = closed
                    if goal > 0 and goal < count - size:
                        opened -= worth[path[left] ^ 1, path[right]]
                    for way in range(2):
                        start = path[first] if way == 0 else path[last] ^ 1
                        end = path[last] if way == 0 else path[first] ^ 1
                        value = opened
                        if goal > 0:
                            value += worth[path[left] ^ 1, start]
                        if goal < count - size:
                            value += worth[end ^ 1, path[right]]
                        if value > best:
                            best, where, flip = value + 1e-9, goal, way == 1
                if where == -2:
                    continue
                for k in range(size):
                    stretch[k] = path[last - k] ^ 1 if flip else path[first + k]
                if where == -1:
                    where = first
                taken = 0
                for k in range(count):
                    if k < first or k > last:
                        rest[taken] = path[k]
                        taken += 1
                for k in range(count):
                    if k < where:
                        path[k] = rest[k]
                    elif k < where + size:
                        path[k] = stretch[k - where]
                    else:
                        path[k] = rest[k - size]
                gained = True
