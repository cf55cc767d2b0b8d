"""What the stations of fracture matching ask of trained networks; who answers lives upstairs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32


@runtime_checkable
class Judges(Protocol):
    """Three small networks; numbers in, numbers out."""

    def breaks(self, level: int, features: Float32[np.ndarray, "p f"]) -> Float32[np.ndarray, "p 2"]:
        """Probability that a point is of the break: as common as breaks are, and as if half of each piece were one."""
        ...

    def descriptors(self, level: int, features: Float32[np.ndarray, "p f"]) -> Float32[np.ndarray, "p d"]:
        """Unit vectors; the product of a point's with its mate's (features times MATE_SIGNS) is large."""
        ...

    def fits(self, numbers: Float32[np.ndarray, "m v"]) -> Float32[np.ndarray, "m"]:
        """Probability that two surfaces that lie to each other like this really do belong so."""
        ...
