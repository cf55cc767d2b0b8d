"""How often are pieces right of which a solver says that it is sure?

Cuts pictures into puzzles of many kinds (whole, with pieces missing, eroded, long and thin), solves them, and prints
how many pieces were told above 0.5 and above 0.9, and how many of those are right, orientation free. `_EVEN` and
`_HOLDS` in `squares/energy.py` were chosen by it, on training pictures that no network had learnt from. Training holds
at most a quarter of a folder apart, so each must have four pictures or more.
Run: python benchmarks/calibrate_confidence.py DIR [DIR …] [--solver hybrid] [--puzzles 24] [--held-apart 24] [--seed 0]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from diffassemble.assembly.answer import assemble
from diffassemble.core import Board
from diffassemble.core.seeds import seeded
from diffassemble.io.pictures import read_picture
from diffassemble.kinds import make_solver
from diffassemble.squares.cut import cut_picture
from diffassemble.training.pictures import split_paths

# Rows, columns, share of missing pieces, pixels lost at every side.
PUZZLES = (
    *((6, 6, 0.3, 0), (8, 8, 0.15, 0), (10, 10, 0.3, 0), (1, 20, 0.0, 0)),
    *((3, 12, 0.1, 0), (4, 4, 0.3, 1), (8, 8, 0.0, 1), (8, 8, 0.0, 2)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--solver", default="hybrid")
    parser.add_argument("--puzzles", type=int, default=24, help="pictures of each folder")
    parser.add_argument("--held-apart", type=int, default=24, help="pictures of each folder that training held apart")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    solver = make_solver("squares", given.solver)
    everything = []
    for rows, cols, missing, erode in PUZZLES:
        for folder in given.folders:
            told = []
            for number, path in enumerate(split_paths(folder, given.held_apart)[1][: given.puzzles]):
                generator = seeded(given.seed, number)
                puzzle = cut_picture(
                    read_picture(path), Board(rows, cols), generator, size=32, missing=missing, erode=erode
                )
                answer = assemble(puzzle, solver, given.seed)
                board = puzzle.board
                assert puzzle.truth is not None
                true, found = board.snap(puzzle.truth), board.snap(answer.poses)
                wholes = [board.turned(*found, by)[1:] for by in board.fitting_turns()]
                right = [(cells == true[0]) & (turns == true[1]) for cells, turns in wholes]
                told.append(torch.stack([max(right, key=torch.sum).float(), answer.confidence], 1).numpy())
            name = f"{folder.parent.name} {rows}x{cols}, {missing:.0%} missing, {erode} px eroded"
            print(f"{name:<48}{_described(np.concatenate(told))}", flush=True)
            everything += told
    print(f"{'all':<48}{_described(np.concatenate(everything))}")


def _described(told: np.ndarray) -> str:
    right, sure = told.T
    parts = [f"{100 * right.mean():5.1f} % right"]
    for level in (0.5, 0.9):
        chosen = sure > level
        share = f"{100 * right[chosen].mean():5.1f} % right" if chosen.any() else "none"
        parts.append(f"above {level}: {100 * chosen.mean():5.1f} % of the pieces, {share}")
    return " · ".join(parts)


if __name__ == "__main__":
    main()
