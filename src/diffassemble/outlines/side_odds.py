"""What a fit of two sides is worth, learnt from the puzzle itself: log odds, and probabilities among rivals.

True pairs are known well enough without being told: nearly all pairs that are each other's best are true. Pairs that
can't all be true are the others. Odds compare a true pair's density with the number of wrong partners that a side is to
expect.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

# No evidence counts for more, in either direction.
MOST = 9.0
# The deviation of the logarithm of costs of true pairs is at least this, and it has a wide tail: dust, bent corners.
_LEAST_SPREAD, _TAIL, _TAIL_SPREAD = 0.25, 0.06, 0.8
# The slope of wrong partners' number against cost is within these.
_SLOPES = 2.0, 14.0
# Colours: the width over which densities are smoothed, bounds of the evidence, and how many true pairs are half
# convincing.
_WIDTH, _COLOUR, _HALF = 0.25, (-3.0, 3.5), 15
# Between these lies the share of sides that have a partner; estimated so many times.
_SHARES, _ESTIMATES = (0.05, 0.95), 6
_EULER = 0.5772156649


def mutual_best(
    tab: Int[np.ndarray, "m"], hole: Int[np.ndarray, "m"], cost: Float[np.ndarray, "m"]
) -> Bool[np.ndarray, "m"]:
    """Which pairs are the cheapest of both of their sides."""
    return (cost <= _least(tab, cost)) & (cost <= _least(hole, cost))


def _least(side: Int[np.ndarray, "m"], cost: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m"]:
    """The least cost of each pair's side."""
    least = np.full(int(side.max()) + 1, np.inf)
    np.minimum.at(least, side, cost)
    return least[side]


def shape_evidence(
    tab: Int[np.ndarray, "m"], hole: Int[np.ndarray, "m"], cost: Float[np.ndarray, "m"]
) -> Float[np.ndarray, "m"]:
    """Log odds of a true pair against the wrong partners that one side is to expect at this cost.

    The least cost among wrong partners has a Weibull distribution, since their number grows with a power of the cost;
    that of true pairs is normal in the logarithm.
    """
    mutual = mutual_best(tab, hole, cost)
    logs = np.log(cost)
    middle = float(np.median(logs[mutual]))
    spread = max(_LEAST_SPREAD, 1.4826 * float(np.median(np.abs(logs[mutual] - middle))))
    wrong = np.where(mutual, np.inf, logs)
    rivals = []
    for side in (tab, hole):
        least = np.full(int(side.max()) + 1, np.inf)
        np.minimum.at(least, side, wrong)
        rivals.append(least[np.isfinite(least)])
    second = np.concatenate(rivals)
    if len(second) < 4:
        # Hardly any rivals: as if they were common just above what true pairs cost.
        slope, scale = _SLOPES[0], middle + 1.0
    else:
        slope = float(np.clip(np.pi / (np.sqrt(6) * max(second.std(), 1e-3)), *_SLOPES))
        scale = float(second.mean()) + _EULER / slope

    def odds(at: Float[np.ndarray, "k"]) -> Float[np.ndarray, "k"]:
        core = np.exp(-(((at - middle) / spread) ** 2) / 2) / spread
        tail = np.exp(-(((at - middle) / _TAIL_SPREAD) ** 2) / 2) / _TAIL_SPREAD
        true = ((1 - _TAIL) * core + _TAIL * tail) / np.sqrt(2 * np.pi)
        return np.log(true + 1e-12) - np.log(slope) - slope * (at - scale)

    # What fits better is never worth less.
    grid = np.linspace(logs.min() - 0.01, logs.max() + 0.01, 400)
    best = np.maximum.accumulate(odds(grid)[::-1])[::-1]
    return np.clip(np.interp(logs, grid, best), -MOST, MOST)


def colour_evidence(
    tab: Int[np.ndarray, "m"],
    hole: Int[np.ndarray, "m"],
    odds: Float[np.ndarray, "m"],
    difference: Float[np.ndarray, "m"],
) -> Float[np.ndarray, "m"]:
    """Log odds by the colours on both sides of a seam: how much more often true pairs differ so little than others."""
    probable, _ = probabilities(tab, hole, odds)
    sure, wrong = probable > 0.8, probable < 0.05
    if sure.sum() < 5 or wrong.sum() < 5:
        return np.zeros(len(odds))
    logs = np.log1p(difference)
    grid = np.linspace(0, np.log1p(60.0), 64)
    true_density, wrong_density = (_density(logs[chosen], grid) for chosen in (sure, wrong))
    doubt = 1.0 / (sure.sum() + 10)
    ratio = np.log((true_density + doubt) / (wrong_density + doubt))
    # Colours that differ more never speak more for a pair.
    ratio = np.minimum.accumulate(np.clip(ratio, *_COLOUR))
    return np.interp(logs, grid, ratio) * sure.sum() / (sure.sum() + _HALF)


def _density(values: Float[np.ndarray, "k"], grid: Float[np.ndarray, "g"]) -> Float[np.ndarray, "g"]:
    total = np.zeros(len(grid))
    for part in np.array_split(values, max(1, len(values) // 4096)):
        total += np.exp(-(((grid - part[:, None]) / _WIDTH) ** 2) / 2).sum(0)
    return total / (len(values) * _WIDTH * np.sqrt(2 * np.pi))


def probabilities(
    tab: Int[np.ndarray, "m"], hole: Int[np.ndarray, "m"], odds: Float[np.ndarray, "m"]
) -> tuple[Float[np.ndarray, "m"], Float[np.ndarray, "m"]]:
    """How probable each pair is, given all rivals of its two sides and that its partner may be missing; and its odds
    over those of the best of them.

    How many sides have a partner at all is what the probabilities themselves add up to.
    """
    ratio = np.exp(odds)
    rivals, best = np.zeros(len(odds)), np.zeros(len(odds))
    for side in (tab, hole):
        total, most = np.zeros(int(side.max()) + 1), np.zeros(int(side.max()) + 1)
        np.add.at(total, side, ratio)
        np.maximum.at(most, side, ratio)
        rivals += total[side] - ratio
        best = np.maximum(best, most[side])
    fewer = min(len(np.unique(tab)), len(np.unique(hole)))
    share = 0.5
    for _ in range(_ESTIMATES):
        probable = ratio / ((1 - share) / share + ratio + rivals)
        share = float(np.clip(probable.sum() / fewer, *_SHARES))
    return probable, ratio / best
