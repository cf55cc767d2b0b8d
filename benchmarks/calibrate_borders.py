"""Fit the log odds that two sides are true neighbours, and show how far the fitted probabilities can be trusted.

Prints the ten coefficients `EdgeConfig.odds` of squares/edges.py, then a table on the same pairs: of those given
about this probability, how many are neighbours. Give folders of training pictures, each of which counts alike.
Run: python benchmarks/calibrate_borders.py DIR [DIR …] [--pictures 120] [--seed 0]
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.io.pictures import read_picture
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import Borders, odds_terms
from diffassemble.squares.pictures import picture_paths
from diffassemble.training.edge_model import partners

# Puzzle after puzzle takes the next of each; sizes are drawn.
GRIDS = (6, 6, 4, 8, 10, 12)
MISSING = (0.0, 0.0, 0.3, 0.3, 0.5)
ERODED = (0, 0, 0, 0, 0, 0, 1, 2)
SIZES = (32, 32, 24, 16)
KEEP = 6
BOUNDS = (0, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99, 1)


def cut_next(paths: list[Path], number: int, generator: torch.Generator) -> Puzzle:
    """Some picture as a puzzle whose grid, missing share and erosion go by its number."""
    path = paths[int(torch.randint(len(paths), (1,), generator=generator))]
    side = GRIDS[number % len(GRIDS)]
    size = SIZES[int(torch.randint(len(SIZES), (1,), generator=generator))]
    missing, erode = MISSING[number % len(MISSING)], ERODED[number % len(ERODED)]
    return cut_picture(read_picture(path), Board(side, side), generator, size=size, missing=missing, erode=erode)


def examples(puzzle: Puzzle) -> tuple[Tensor, Tensor]:
    """The terms of the best pairs of sides (m, 10), and whether they are neighbours in truth (m,)."""
    best = Borders.of(puzzle.pixels).best(KEEP)
    true = best.side == partners([puzzle])[:, None]
    return odds_terms(best).flatten(0, 1), true.flatten().float()


def fit_odds(terms: Tensor, true: Tensor) -> Tensor:
    """Coefficients of the logistic regression of truth on the terms, very slightly held towards zero."""
    odds = torch.zeros(terms.shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([odds], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.binary_cross_entropy_with_logits(terms @ odds, true) + 1e-5 * odds.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return odds.detach()


def main() -> None:
    """Cut pictures of every folder, fit, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--pictures", type=int, default=120, help="puzzles cut from each folder")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(options.seed)
    found = []
    for folder in options.folders:
        paths = picture_paths(folder)
        found += [examples(cut_next(paths, number, generator)) for number in range(options.pictures)]
    terms, true = (torch.cat(part) for part in zip(*found, strict=True))
    odds = fit_odds(terms, true)
    print(f"odds = ({', '.join(f'{value:.4f}' for value in odds.tolist())})")
    probability = (terms @ odds).sigmoid()
    print(f"{len(true)} pairs, {100 * true.mean():.1f} % of them neighbours")
    for low, high in pairwise(BOUNDS):
        of_these = (probability >= low) & ((probability < high) | (high == 1))
        told, right = probability[of_these].mean(), true[of_these].mean()
        print(f"{low:4.2f} … {high:4.2f}  {int(of_these.sum()):7d} pairs  told {told:.3f}  true {right:.3f}")


if __name__ == "__main__":
    main()
