"""What `diffusion` takes for a broken object once its matches are known: eight samples, whole steps of the solver.

A bowl is broken here, its matches are found once, and the solver is run several times with them. Told are the seconds
of the clock and of the processor, median and worst, without and with standing the answer up.
Run: python benchmarks/known_matches.py [--pieces 8] [--samples 8] [--runs 15] [--threads 1]
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from diffassemble.core import Matches, Puzzle
from diffassemble.core.solver import content_order
from diffassemble.fragments.diffusion import FragmentDiffusionSolver
from diffassemble.fragments.orientation import OrientationModel
from diffassemble.fragments.shapes.catalogue import fracture_file
from diffassemble.kinds.fragments import ORIENTATION, find_matches
from diffassemble.network.denoiser import Denoiser


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pieces", type=int, default=8)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    puzzle = fracture_file("bowl", options.pieces, 0).without_truth()
    puzzle = puzzle.reordered(content_order(puzzle.pieces.content))
    known = find_matches(puzzle)

    def tell(given: Puzzle) -> Matches:
        return known

    network, standing = Denoiser.from_pretrained("fragments"), OrientationModel.from_pretrained(ORIENTATION)
    for name, upright in (("as the largest lies", None), ("stood up", standing.canonical_rotation)):
        solver = FragmentDiffusionSolver(network, 20, options.samples, 0.0, tell, upright)
        clock, processor = [], []
        for run in range(options.runs + 1):  # the first one loads what is loaded later
            began = time.perf_counter(), time.process_time()
            for _ in solver.steps(puzzle, torch.Generator().manual_seed(run)):
                pass
            clock.append(time.perf_counter() - began[0])
            processor.append(time.process_time() - began[1])
        told = [f"{statistics.median(some[1:]):.2f} s (worst {max(some[1:]):.2f})" for some in (clock, processor)]
        print(f"{options.pieces} fragments, {len(known)} matches, {name}: clock {told[0]}, processor {told[1]}")


if __name__ == "__main__":
    main()
