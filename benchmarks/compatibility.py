"""Border scores: seconds against a plain double loop at 400 pieces, and seconds and memory up to 3300.

Also prints how many true neighbours each measure ranks first at 400 pieces: Mahalanobis gradient compatibility,
squared colour differences, and the prediction errors of Pomeranz et al. Without a picture, one that comes with
scikit-image is enlarged. Run: python benchmarks/compatibility.py [PICTURE]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path

import torch
from skimage import data
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.files.pictures import read_picture
from diffassemble.squares.baselines.filling import touching_sides
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import (
    _VARIANCE_FLOOR,
    Borders,
    border_scores,
    prediction_errors,
    side_lines,
    squared_differences,
)

SIZE = 28
BOARDS = (Board(20, 20), Board(30, 30), Board(40, 59), Board(50, 66))
KEEP = 40
PAIRS = 2000


def one_way(lines: Tensor, first: int, second: int) -> float:
    """Mahalanobis gradient compatibility of one side against one other, as its formula reads."""
    edge, inner = lines[first]
    gradient = edge - inner
    mean = gradient.mean(0)
    covariance = (gradient - mean).T @ (gradient - mean) / len(edge) + _VARIANCE_FLOOR * torch.eye(3)
    beyond = lines[second, 0].flip(0) - edge - mean
    return float((beyond @ torch.linalg.inv(covariance) * beyond).sum())


def timed(work: Callable[[], Tensor]) -> tuple[Tensor, float]:
    """What the work gives, and its seconds."""
    began = time.monotonic()
    return work(), time.monotonic() - began


def against_a_loop(pixels: Tensor) -> None:
    """The double loop is timed on some of the pairs and extrapolated to each pair once."""
    border_scores(pixels[:8])
    scores, together = timed(lambda: border_scores(pixels))
    lines = side_lines(pixels).double() - 0.5
    drawn = torch.randint(len(lines), (PAIRS, 2), generator=torch.Generator().manual_seed(0)).tolist()
    pairs = [(a, b) for a, b in drawn if a // 4 != b // 4]
    loop, seconds = timed(lambda: torch.tensor([one_way(lines, a, b) + one_way(lines, b, a) for a, b in pairs]))
    loop = loop / (6 * SIZE)
    whole = seconds / len(pairs) * len(lines) ** 2 / 2
    found = torch.stack([scores[a, b] for a, b in pairs])
    worst = float(((found - loop).abs() / (1 + loop)).max())
    print(f"{len(lines)}² side pairs: {together:.2f} s as one product, {whole:.0f} s in a loop (extrapolated)")
    print(f"ratio {whole / together:.0f}, largest relative difference {worst:.1e}")


def ranked_first(puzzle: Puzzle) -> None:
    """The share of true neighbours that are each other's best, by every measure."""
    assert puzzle.truth is not None
    first, second = touching_sides(puzzle.board, *puzzle.board.snap(puzzle.truth))
    measures = {
        "Mahalanobis gradients": border_scores,
        "squared differences": squared_differences,
        "prediction errors, L1": lambda pixels: prediction_errors(pixels, 1.0, 1.0),
        "prediction errors, L0.3": prediction_errors,
    }
    for name, measure in measures.items():
        scores, seconds = timed(lambda measure=measure: measure(puzzle.pieces.pixels))
        right = (scores[first].argmin(1) == second).float().mean()
        print(f"{name:24s} {100 * right:5.1f} % of true neighbours ranked first  {seconds:6.2f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path, nargs="?")
    path = parser.parse_args().picture
    picture = torch.tensor(data.astronaut()).permute(2, 0, 1).float() / 255 if path is None else read_picture(path)
    puzzles = (cut_picture(picture, board, torch.Generator().manual_seed(0), size=SIZE) for board in BOARDS)
    for number, puzzle in enumerate(puzzles):
        if number == 0:
            against_a_loop(puzzle.pieces.pixels)
            ranked_first(puzzle)
        _, seconds = timed(lambda puzzle=puzzle: Borders.of(puzzle.pieces.pixels).best(KEEP).score)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{len(puzzle):5d} pieces: best {KEEP} of every side in {seconds:6.2f} s, {peak:6.0f} MB at most so far")


if __name__ == "__main__":
    main()
