"""Border scores: seconds against a plain double loop at 400 pieces, and seconds and memory up to 3300.

Also prints how many true neighbours they rank first at 400 pieces. Without a picture, one that comes with scikit-image
is enlarged. Run: python benchmarks/compatibility.py [PICTURE]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from skimage import data
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.io.pictures import read_picture
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import DEFAULT, Borders, Partners, side_lines
from diffassemble.squares.placement import touching_sides

T = TypeVar("T")
SIZE = 28
BOARDS = (Board(20, 20), Board(30, 30), Board(40, 59), Board(50, 66))
KEEP = 40
PAIRS = 2000


def one_way(lines: Tensor, first: int, second: int) -> float:
    """Mahalanobis gradient compatibility of one side against one other, as its formula reads."""
    edge, inner = lines[first]
    gradient = edge - inner
    mean = gradient.mean(0)
    covariance = (gradient - mean).T @ (gradient - mean) / len(edge) + DEFAULT.variance * torch.eye(3)
    beyond = lines[second, 0].flip(0) - edge - mean
    return float((beyond @ torch.linalg.inv(covariance) * beyond).sum())


def every_score(pixels: Tensor) -> Tensor:
    """The border scores of all pairs of sides."""
    borders = Borders.of(pixels)
    every = torch.arange(len(borders))
    return borders.scores(every, every)


def best_partners(pixels: Tensor) -> Partners:
    """The best partners of every side, as solvers ask for them."""
    return Borders.of(pixels).best(KEEP)


def timed(work: Callable[[Tensor], T], pixels: Tensor) -> tuple[T, float]:
    """What the work gives, and its seconds."""
    began = time.monotonic()
    return work(pixels), time.monotonic() - began


def against_a_loop(puzzle: Puzzle) -> None:
    """How much faster one product is, and how many true neighbours it ranks first.

    The double loop is timed on some of the pairs and extrapolated to each pair once.
    """
    every_score(puzzle.pixels[:8])
    scores, together = timed(every_score, puzzle.pixels)
    lines = side_lines(puzzle.pixels).double() - 0.5
    drawn = torch.randint(len(lines), (PAIRS, 2), generator=torch.Generator().manual_seed(0)).tolist()
    pairs = [(a, b) for a, b in drawn if a // 4 != b // 4]
    began = time.monotonic()
    loop = torch.tensor([one_way(lines, a, b) + one_way(lines, b, a) for a, b in pairs]) / (6 * SIZE)
    seconds = time.monotonic() - began
    whole = seconds / len(pairs) * len(lines) ** 2 / 2
    found = torch.stack([scores[a, b] for a, b in pairs])
    worst = float(((found - loop).abs() / (1 + loop)).max())
    print(f"{len(lines)}² side pairs: {together:.2f} s as one product, {whole:.0f} s in a loop (extrapolated)")
    print(f"ratio {whole / together:.0f}, largest relative difference {worst:.1e}")
    assert puzzle.truth is not None
    first, second = touching_sides(puzzle.board, *puzzle.board.snap(puzzle.truth))
    right = (scores[first].argmin(1) == second).float().mean()
    print(f"{100 * right:.1f} % of true neighbours ranked first")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path, nargs="?")
    path = parser.parse_args().picture
    picture = torch.tensor(data.astronaut()).permute(2, 0, 1).float() / 255 if path is None else read_picture(path)
    puzzles = (cut_picture(picture, board, torch.Generator().manual_seed(0), size=SIZE) for board in BOARDS)
    for number, puzzle in enumerate(puzzles):
        if number == 0:
            against_a_loop(puzzle)
        _, seconds = timed(best_partners, puzzle.pixels)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{len(puzzle):5d} pieces: best {KEEP} of every side in {seconds:6.2f} s, {peak:6.0f} MB at most so far")


if __name__ == "__main__":
    main()
