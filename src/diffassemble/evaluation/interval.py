"""How far a mean over puzzles may be off by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Interval = tuple[float, float]


def bootstrap_interval(values: Sequence[float], *, resamples: int = 2000, seed: int = 0) -> Interval:
    """95 % percentile-bootstrap interval of the mean, resampling whole puzzles, in whatever order they come."""
    sample = np.sort(np.asarray(values, dtype=float))
    generator = np.random.default_rng(seed)
    means = [generator.choice(sample, len(sample)).mean() for _ in range(resamples)]
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)
