"""How costs grow with the size of puzzles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Smaller puzzles are passed over: there, what is the same for all of them outweighs the rest.
FITTED_FROM = 400


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float | None:
    """The power of the size that costs grow with, from FITTED_FROM on; none if there are not two sizes."""
    kept = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if size >= FITTED_FROM and cost > 0]
    if len({size for size, _ in kept}) < 2:
        return None
    x, y = np.log(np.array(kept)).T
    return float(np.polyfit(x, y, 1)[0])
