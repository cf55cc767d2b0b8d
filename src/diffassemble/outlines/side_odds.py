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
# Wrong partners that tell how common a side's shape is, what is usual counting as so many of them; sides from which on
# rivals tell anything.
_RANKS, _SHRINK, _ENOUGH = 8, 2.0, 4
# Colours: the width over which densities are smoothed, bounds of the evidence, and how many true pairs are half
# convincing.
_WIDTH, _COLOUR, _HALF = 0.25, (-3.0, 3.5), 15
# Between these lies the share of sides that have a partner; estimated so many times.
_SHARES, _ESTIMATES = (0.05, 0.95), 6
# Of the logarithm of a Weibull distribution: its deviation times the slope, and its mean below the scale.
_GUMBEL, _EULER = np.pi / np.sqrt(6), 0.5772156649


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
    """Log odds of a true pair against the wrong partners that its sides are to expect at this cost.

    The number of wrong partners grows with a power of the cost, so the least cost among them is Weibull distributed;
    its scale is a side's own, since odd shapes have fewer rivals than common ones. Costs of true pairs are normal in
    the logarithm.
    """
    mutual = mutual_best(tab, hole, cost)
    logs = np.log(cost)
    middle = float(np.median(logs[mutual]))
    spread = max(_LEAST_SPREAD, 1.4826 * float(np.median(np.abs(logs[mutual] - middle))))
    wrong = logs[~mutual]
    expected = [_rivals(side[~mutual], wrong, side, logs) for side in (tab, hole)]

    def density(at: Float[np.ndarray, "k"]) -> Float[np.ndarray, "k"]:
        core = np.exp(-(((at - middle) / spread) ** 2) / 2) / spread
        tail = np.exp(-(((at - middle) / _TAIL_SPREAD) ** 2) / 2) / _TAIL_SPREAD
        return np.log(((1 - _TAIL) * core + _TAIL * tail) / np.sqrt(2 * np.pi) + 1e-12)

    # What fits better than most true pairs do is worth no less.
    return np.clip(density(np.maximum(logs, middle)) - sum(expected) / 2, -MOST, MOST)


def _rivals(
    rival: Int[np.ndarray, "w"], wrong: Float[np.ndarray, "w"], side: Int[np.ndarray, "m"], logs: Float[np.ndarray, "m"]
) -> Float[np.ndarray, "m"]:
    """The logarithm of how many wrong partners sides are to expect, per unit of the logarithm of the cost.

    `wrong` are logarithms of costs of the sides' wrong partners.
    """
    ranked = np.full((int(side.max()) + 1, _RANKS), np.nan)
    order = np.lexsort((wrong, rival))
    first = np.r_[True, rival[order][1:] != rival[order][:-1]] if len(order) else np.zeros(0, dtype=bool)
    place = np.arange(len(order)) - np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    kept = place < _RANKS
    ranked[rival[order][kept], place[kept]] = wrong[order][kept]
    least = ranked[:, 0][np.isfinite(ranked[:, 0])]
    if len(least) < _ENOUGH:
        # Hardly any rivals: as if they began where a true pair is twice as bad as usual.
        return np.log(_SLOPES[0]) + _SLOPES[0] * (logs - np.median(logs) - np.log(2))
    slope = float(np.clip(_GUMBEL / max(least.std(), 1e-3), *_SLOPES))
    # Where one wrong partner is to be expected, by all but the closest one; drawn to what is usual where few are known.
    scales = ranked[:, 1:] - np.log(np.arange(2, _RANKS + 1)) / slope
    known = np.isfinite(scales)
    usual = float(scales[known].mean()) if known.any() else float(least.mean())
    own = (np.where(known, scales, 0).sum(1) + _SHRINK * usual) / (known.sum(1) + _SHRINK)
    # How the closest one lies about that scale.
    left = ranked[:, 0] - own
    left = left[np.isfinite(left)]
    slope = float(np.clip(_GUMBEL / max(left.std(), 1e-3), *_SLOPES))
    scale = own[side] + float(left.mean()) + _EULER / slope
    return np.log(slope) + slope * (logs - scale)


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
