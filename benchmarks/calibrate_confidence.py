"""How often pieces at a confidence are right, and the calibration that fits them, for every kind of pieces.

Solves puzzles whose truth is known, prints for each group of puzzles how many pieces have a confidence of 0.5 and 0.9
or more and how many of these are right, and fits slope and shift of `assembly.confidence.Calibration` to the raw
strengths by logistic regression; `--write` puts them into weights/calibration.json, where ceilings stay as they are.

    python benchmarks/calibrate_confidence.py squares DIR …               pictures, cut in grids of several sizes
    python benchmarks/calibrate_confidence.py tabs|free|strips DIR …      pictures, or folders of pieces with truth.csv
    python benchmarks/calibrate_confidence.py fragments DIR …             fractures; --solver mend|hybrid

Use held-apart training data only. Of a folder of pictures, the `--puzzles` that training holds apart are taken.
Strengths beyond the ceiling of single precision count as its edge. [--quality default] [--puzzles 24] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from diffassemble.assembly import confidence, scoring
from diffassemble.assembly.answer import Answer, assemble
from diffassemble.core import Board, Puzzle
from diffassemble.core.seeds import seeded
from diffassemble.core.thresholds import LIKELY, SURE
from diffassemble.evaluation.outlines import find_recorded, read_recorded
from diffassemble.fragments.breaking import scatter
from diffassemble.fragments.datasets import find_fractures
from diffassemble.io.pictures import read_picture
from diffassemble.kinds import make_solver
from diffassemble.outlines.cut import cut_shapes
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.pictures import training_pictures
from diffassemble.training.data import split_apart

GRIDS = (
    *((6, 6, 0.3, 0), (8, 8, 0.15, 0), (10, 10, 0.3, 0), (1, 20, 0.0, 0)),
    *((3, 12, 0.1, 0), (4, 4, 0.3, 1), (8, 8, 0.0, 1), (8, 8, 0.0, 2)),
)
"""rows, columns, share of missing pieces, pixels lost at every side"""
SHAPES = {
    "tabs": (("tabs", 30, 0), ("tabs", 48, 2)),
    "free": (("shards", 16, 4), ("shards", 25, 9), ("torn", 16, 0), ("torn", 30, 2)),
    "strips": (("strips", 14, 2), ("strips", 20, 1)),
}
"""shape, pieces and pixels lost at every side"""


def puzzles(kind: str, folder: Path, count: int, seed: int) -> Iterator[tuple[str, Puzzle]]:
    """Puzzles of a folder, with the name of the group that they belong to."""
    if kind == "fragments":
        for number, found in enumerate(find_fractures(folder)[:count]):
            yield folder.name, scatter(found.meshes(), seeded(seed, number))
        return
    if kind != "squares" and (recorded := find_recorded(folder)):
        yield from ((folder.name, read_recorded(one)[0]) for one in recorded)
        return
    for number, path in enumerate(split_apart(training_pictures(str(folder)), count)[1]):
        picture = read_picture(path)
        if kind == "squares":
            for rows, cols, missing, erode in GRIDS:
                cut = cut_picture(
                    picture, Board(rows, cols), seeded(seed, number), size=32, missing=missing, erode=erode
                )
                yield f"{folder.name} {rows}x{cols}, {missing:.0%} missing, {erode} px eroded", cut
        else:
            for shape, pieces, erode in SHAPES[kind]:
                cut = cut_shapes(picture, shape, pieces, seeded(seed, number), erode=erode)
                yield f"{folder.name} {shape} {pieces}, {erode} px eroded", cut


def right_pieces(answer: Answer) -> Tensor:
    """Which pieces are where they belong, whichever way the whole is turned."""
    puzzle, poses = answer.puzzle, answer.poses
    assert puzzle.truth is not None
    if puzzle.kind == "outlines":
        return scoring.right_outlines(puzzle.outlines, poses, puzzle.truth)
    if puzzle.kind == "fragments":
        points = puzzle.fragments.points
        wholes = [scoring.anchored(poses, puzzle.truth, piece) for piece in range(len(puzzle))]
        found = [scoring.right_pieces(scoring.piece_chamfer(points, whole, puzzle.truth)) for whole in wholes]
        return max(found, key=torch.sum)
    board, true = puzzle.board, puzzle.board.snap(puzzle.truth)
    turned = [board.turned(*board.snap(poses), by)[1:] for by in board.fitting_turns()]
    return max(((cells == true[0]) & (turns == true[1]) for cells, turns in turned), key=torch.sum)


def described(right: np.ndarray, sure: np.ndarray) -> str:
    """Percent right, in all and of the pieces from each threshold on."""
    parts = [f"{100 * right.mean():5.1f} % right"]
    for level in (LIKELY, SURE):
        chosen = sure >= level
        share = f"{100 * right[chosen].mean():5.1f} % right" if chosen.any() else "none"
        parts.append(f"from {level}: {100 * chosen.mean():5.1f} % of the pieces, {share}")
    return " · ".join(parts)


def fitted(right: np.ndarray, strength: np.ndarray) -> tuple[float, float]:
    """Slope and shift by maximum likelihood, with one right and one wrong piece of strength 0 added."""
    strength, sign = np.append(strength, [0.0, 0.0]), 2 * np.append(right, [1.0, 0.0]) - 1
    found = minimize(lambda of: np.logaddexp(0, -sign * (of[0] * strength + of[1])).sum(), (1.0, 0.0))
    return float(found.x[0]), float(found.x[1])


def main() -> None:
    """Solve, print, fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted({"squares", "fragments", *SHAPES}))
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--quality", default="default")
    parser.add_argument("--solver")
    parser.add_argument("--puzzles", type=int, default=24, help="puzzles of each folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    kind = "outlines" if given.kind in SHAPES else given.kind
    solver = make_solver(kind, given.solver or ("grow" if kind == "outlines" else None))
    kept = confidence.calibration(given.kind, given.quality)
    for one in confidence.calibrations()[given.kind].values():  # the solver's confidence is then σ(strength)
        one.update(slope=1.0, shift=0.0, ceiling=1.0)
    groups = defaultdict[str, list[np.ndarray]](list)
    for folder in given.folders:
        for name, puzzle in puzzles(given.kind, folder, given.puzzles, given.seed):
            answer = assemble(puzzle, solver, given.seed)
            placed = answer.placements.numbers >= 0
            strength = answer.confidence.double().clamp(1e-7, 1 - 1e-7).logit()
            columns = (right_pieces(answer)[placed].double(), strength[placed])
            groups[name].append(torch.stack(columns, 1).numpy())
    everything = {name: np.concatenate(rows) for name, rows in groups.items()}
    for name, rows in {**everything, "all": np.concatenate(list(everything.values()))}.items():
        print(f"{name:<48}{described(rows[:, 0], kept(rows[:, 1]))}")
    slope, shift = fitted(*np.concatenate(list(everything.values())).T)
    print(f"in use: slope {kept.slope:.3f}, shift {kept.shift:.3f}; fitted: slope {slope:.3f}, shift {shift:.3f}")
    if given.write:
        path = Path(confidence.__file__).parents[1] / "weights" / "calibration.json"
        table = json.loads(path.read_text())
        table[given.kind].setdefault(given.quality, {}).update(slope=round(slope, 3), shift=round(shift, 3))
        path.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
