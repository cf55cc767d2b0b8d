"""How much memory the program has needed so far."""

from __future__ import annotations

import resource
import sys


def peak_megabytes() -> float:
    """Highest resident memory of this process since it started, in MB (10⁶ bytes); it never falls again."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
