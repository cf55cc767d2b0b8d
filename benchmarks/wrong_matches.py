"""How diffusion and the plain tree of matches stand wrong ones: the same objects, ever more matches replaced.

Matches are found once for every object. A share of them then says something else, as probable as before: the two
fragments keep their distance, all else is drawn at random. Scores are those of `evaluate --anchor largest`. "known" is
the tree of those matches that were not replaced: who hears matches alone can hardly do better.
Run: python benchmarks/wrong_matches.py DATA [--split val] [--wrong 0 0.1 0.3] [--limit N] [--model fragments]
"""

from __future__ import annotations

import os

# Libraries look at it when they are loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import torch

from diffassemble.core import Matches, Puzzle
from diffassemble.core.seeds import random_stream
from diffassemble.core.solver import content_order
from diffassemble.core.thresholds import SURE
from diffassemble.evaluation.fragments import ObjectCell, score_object
from diffassemble.fragments.datasets import find_fractures
from diffassemble.fragments.diffusion import FragmentDiffusionSolver, TreeSolver
from diffassemble.kinds.fragments import find_matches
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.relative import spoilt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--split", default="val", choices=["train", "val"])
    parser.add_argument("--wrong", type=float, nargs="+", default=[0.0, 0.1, 0.3])
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--model", default="fragments")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    fractures = find_fractures(options.data, options.split, pieces=(2, 8))
    fractures = fractures[:: max(1, len(fractures) // options.limit)][: options.limit]
    cell = ObjectCell(options.data.name, fractures, anchors=("largest",))
    network = Denoiser.from_pretrained(options.model)
    right, turned, seconds = defaultdict(list), defaultdict(list), defaultdict(list)
    sure: dict[tuple[str, float], list[float]] = defaultdict(list)
    for number in range(len(fractures)):
        case = cell.case(number, 0)
        # Solvers list pieces by what they are; matches must speak of the same list.
        puzzle = case.given.reordered(content_order(case.given.pieces.content))
        known = find_matches(puzzle)
        for wrong in options.wrong:
            heard = spoilt(known, wrong, 0.0, random_stream(0, number, 4))

            def tell(given: Puzzle, heard: Matches = heard) -> Matches:
                return heard

            diffusion = FragmentDiffusionSolver(network, options.steps, options.samples, find_matches=tell)
            true = (heard.pose.rotation == known.pose.rotation).all(-1).all(-1).nonzero()[:, 0]

            def tell_true(given: Puzzle, left: Matches = heard[true]) -> Matches:
                return left

            one = replace(diffusion, samples=1, name="diffusion, one sample")
            for solver in (TreeSolver(tell), TreeSolver(tell_true, "known"), diffusion, one):
                began = time.process_time()
                *_, step = solver.steps(case.given, random_stream(0, number, 3))
                row = solver.name, wrong
                seconds[row].append(time.process_time() - began)
                score = score_object(case, step.poses, "largest", step.placements.confidence)
                right[row].append(100 * float(score.values("right").mean()))
                turned[row].append(score.mean("euler"))
                sure[row] += score.values("right")[score.rest & (score.values("confidence") > SURE)].tolist()
    told = f"told above {SURE}, right"
    print(f"{len(fractures)} objects\nsolver                 wrong  part accuracy  RMSE(R)°  seconds  {told}")
    for row in sorted(right):
        mean, turn, spent = (float(torch.tensor(values[row]).mean()) for values in (right, turned, seconds))
        told = f"{len(sure[row]):14d} {int(sum(sure[row])):6d}"
        print(f"{row[0]:22s} {row[1]:5.0%} {mean:14.1f} {turn:9.1f} {spent:8.2f} {told}")


if __name__ == "__main__":
    main()
