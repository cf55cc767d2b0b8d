"""Seconds, accuracy and peak memory of a solver on puzzles cut from the first pictures of a folder.

The first puzzle of every grid is solved once beforehand, so that everything is loaded and compiled. Seeds are the
pictures' numbers. Run: python benchmarks/square_puzzles.py DIR [--grid 6 12 20 30] [--missing 0] [--solver hybrid]
"""

from __future__ import annotations

import argparse
import resource
from pathlib import Path

import numpy as np
import torch

from diffassemble.assembly.answer import assemble
from diffassemble.assembly.kind import SolverOptions
from diffassemble.core import Board
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.io.pictures import read_picture
from diffassemble.kinds import make_solver
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.pictures import picture_paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--grid", type=int, nargs="+", default=[6, 12, 20, 30])
    parser.add_argument("--missing", type=float, default=0.0)
    parser.add_argument("--size", type=int, default=28)
    parser.add_argument("--pictures", type=int, default=20)
    parser.add_argument("--solver", default="hybrid")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args()
    solver = make_solver("squares", given.solver, SolverOptions(samples=given.samples, steps=given.steps))
    for side in given.grid:
        board, seconds, right = Board(side, side), [], []
        for number, path in enumerate(picture_paths(given.folder)[: given.pictures]):
            generator = torch.Generator().manual_seed(number)
            puzzle = cut_picture(read_picture(path), board, generator, size=given.size, missing=given.missing)
            if number == 0 and given.pictures > 1:
                assemble(puzzle, solver)
            answer = assemble(puzzle, solver)
            assert puzzle.truth is not None
            seconds.append(answer.seconds)
            right.append(direct_comparison_free(board, *board.snap(answer.poses), *board.snap(puzzle.truth)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        told = f"median {np.median(seconds):.2f} s, mean {np.mean(seconds):.2f}, worst {max(seconds):.2f}"
        print(
            f"{board.cells} cells: {told}; {np.mean(right):.1f} % right, orientation free; peak {peak:.2f} GB",
            flush=True,
        )


if __name__ == "__main__":
    main()
