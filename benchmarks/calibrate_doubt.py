"""When may `hybrid` answer at once? The least margin of any piece, against whether the first assembly is right.

Cuts pictures into whole puzzles, joins their pieces along the most probable borders, and prints for several thresholds
how many puzzles would be answered at once, and how many of those are right, orientation free.
Run: python benchmarks/calibrate_doubt.py DIR [DIR …] [--puzzles 900] [--seed 0]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from diffassemble.core import Board
from diffassemble.core.seeds import seeded
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.io.pictures import read_picture
from diffassemble.kinds.squares import bundled_edge_model
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import Evidence
from diffassemble.squares.energy import Energy
from diffassemble.squares.network_solvers import HybridSolver
from diffassemble.squares.pictures import picture_paths

GRIDS = (4, 6, 6, 6, 8, 8, 10, 10, 12)
ERODED = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2)
SOLVER = HybridSolver()
THRESHOLDS = (0.0, 1.5, 3.0, 4.5, 6.0, SOLVER.config.sure, 12.0)


def examine(paths: list[Path], number: int, seed: int) -> tuple[float, bool, int]:
    """The least margin of a puzzle's first assembly, whether that is right, and how many pixels pieces had lost."""
    generator = seeded(seed, number)
    side, erode = (values[int(torch.randint(len(values), (), generator=generator))] for values in (GRIDS, ERODED))
    picture = read_picture(paths[int(torch.randint(len(paths), (), generator=generator))])
    puzzle = cut_picture(picture, Board(side, side), generator, size=32, erode=erode)
    board, count = puzzle.board, len(puzzle)
    matches = Evidence(puzzle.pixels).matches(board.pitch, SOLVER.config.energy.matches, bundled_edge_model())
    energy = Energy.of_borders(matches, puzzle, listed=False)
    _, first = SOLVER.first_assembly(energy, matches, count)
    assert puzzle.truth is not None
    right = direct_comparison_free(board, *first.placement, *board.snap(puzzle.truth)) > 99.99
    return energy.certainty(first), right, erode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--puzzles", type=int, default=900)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    paths = [picture_paths(folder) for folder in given.folders]
    found = [examine(paths[number % len(paths)], number, given.seed) for number in range(given.puzzles)]
    margin, right, eroded = (np.array(part) for part in zip(*found, strict=True))
    print(f"{given.puzzles} puzzles, {100 * right.mean():.1f} % of the first assemblies right")
    for threshold in THRESHOLDS:
        left = margin >= threshold
        whole = left & (eroded == 0)
        share, of_whole = 100 * left.mean(), 100 * whole.sum() / (eroded == 0).sum()
        print(
            f"margin {threshold:4.1f}: {share:5.1f} % answered at once ({of_whole:.1f} of those not eroded), ", end=""
        )
        print(f"{100 * right[left].mean():.2f} % of them right ({int((~right[left]).sum())} wrong)")


if __name__ == "__main__":
    main()
