"""How much memory the program has needed so far."""

from __future__ import annotations

import resource
import sys


def peak_megabytes() -> float:
    """Highest resident memory of this process since it started, in MB (10⁶ bytes); it never falls again."""
    return megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def megabytes(resident: int) -> float:
    """What the system tells of resident memory, in MB (10⁶ bytes): Linux counts in KiB, macOS in bytes."""
    return resident / 1e6 if sys.platform == "darwin" else resident * 1024 / 1e6
