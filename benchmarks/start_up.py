"""Time to `diffassemble --help`: the best of five starts."""

from __future__ import annotations

import subprocess
import sys
import time


def main() -> None:
    """Start the command five times."""
    times = []
    for _ in range(5):
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "diffassemble", "--help"], check=True, capture_output=True)
        times.append(time.monotonic() - began)
    print(f"diffassemble --help: {min(times):.2f} s")


if __name__ == "__main__":
    main()
