"""Seconds to make up a solid, to break it, and to draw the puzzle's points, in one worker on one core.

Processor time is printed beside the time on the clock: on a busy machine only the former says what the program needs.
Run: python benchmarks/fracturing.py [--pieces 8] [--objects 60] [--seed 0]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import torch

from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.shapes.catalogue import SOLIDS, make_solid

T = TypeVar("T")


def timed(spent: list[tuple[float, float]], work: Callable[..., T], *given: object) -> T:
    """What the work gives; its seconds on the clock and of the processor are noted."""
    clock, processor = time.perf_counter(), time.process_time()
    result = work(*given)
    spent.append((time.perf_counter() - clock, time.process_time() - processor))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pieces", type=int, default=8)
    parser.add_argument("--objects", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(options.seed)
    names = list(SOLIDS)
    made: list[tuple[float, float]] = []
    broken: list[tuple[float, float]] = []
    scattered: list[tuple[float, float]] = []
    triangles = 0
    for number in range(options.objects):
        mesh = timed(made, make_solid, names[number % len(names)], generator)
        fragments = timed(broken, fracture, mesh, options.pieces, generator)
        timed(scattered, scatter, fragments, generator)
        triangles += len(mesh.faces)
    print(f"{options.objects} objects of {triangles / options.objects:.0f} triangles, {options.pieces} pieces each")
    print(f"{'':12}{'ms, clock':>12}{'ms, processor':>16}{'a second, processor':>22}")
    for word, spent in (("make up", made), ("break", broken), ("draw points", scattered)):
        clock, processor = (sum(column) / len(spent) for column in zip(*spent, strict=True))
        print(f"{word:12}{1000 * clock:12.1f}{1000 * processor:16.1f}{1 / processor:22.1f}")


if __name__ == "__main__":
    main()
