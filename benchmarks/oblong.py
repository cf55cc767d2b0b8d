"""How well pieces that are not square are put together: whole pictures cut on a grid of another shape than theirs.

    python benchmarks/oblong.py FOLDER --grid 8x5 --limit 10 --solvers hybrid yu

cuts the first pictures of a folder, in the order of their names, each with the seed of its number; pieces lie at random
half turns. Prints percent of pieces at their places, as they stand and at the best turn of the whole.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from diffassemble.assembly.answer import assemble
from diffassemble.assembly.kind import SolverOptions
from diffassemble.evaluation.squares import score_placement
from diffassemble.io.documents import parse_grid
from diffassemble.io.pictures import read_picture
from diffassemble.kinds import make_solver
from diffassemble.kinds.squares import SQUARES
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.pictures import is_picture


def main() -> None:
    """Read the options, cut, solve, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--grid", default="8x5")
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--missing", type=float, default=0.0)
    parser.add_argument("--solvers", nargs="+", default=["hybrid", "yu", "gallagher", "huroyan", "diffusion"])
    options = parser.parse_args()
    pictures = sorted(path for path in options.folder.iterdir() if is_picture(path))[: options.limit]
    for name in options.solvers:
        solver, scores = make_solver("squares", name, SolverOptions(SQUARES.default_model)), []
        for number, path in enumerate(pictures):
            random = torch.Generator().manual_seed(number)
            board, missing = parse_grid(options.grid), options.missing
            puzzle = cut_picture(read_picture(path), board, random, missing=missing, whole=True)
            began = time.monotonic()
            assembly = assemble(puzzle.without_truth(), solver)
            scores.append(score_placement(puzzle, assembly.poses, time.monotonic() - began))
        means = [
            sum(getattr(one, key) for one in scores) / len(scores) for key in ("accuracy", "accuracy_free", "seconds")
        ]
        size = f"{puzzle.pictures.width}x{puzzle.pictures.height}"
        print(f"{name}: {means[0]:.1f} % right, {means[1]:.1f} % orientation free, {means[2]:.1f} s; pieces of {size}")


if __name__ == "__main__":
    main()
