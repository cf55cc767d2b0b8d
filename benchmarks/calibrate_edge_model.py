"""Fit how the learned compatibility of sides is weighed with border gradients, and write it into the weights.

For every gap that the model believes in, a logistic regression of truth on `Candidates.terms`, held towards the one for
all gaps. Prints how far the probabilities can be trusted: of the pairs told about this probability, how many
are neighbours. Give the folders that the model was trained on; pictures that were held apart stay so.
Run: python benchmarks/calibrate_edge_model.py MODEL_DIR DIR [DIR …] [--pictures 120] [--held-apart 16] [--seed 0]
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import Borders, EdgeModel, find_candidates
from diffassemble.squares.pictures import training_pictures
from diffassemble.training.data import split_apart
from diffassemble.training.edge_model import partners, wear
from diffassemble.training.pictures import load_picture

# Puzzle after puzzle takes the next of each; sizes are drawn.
GRIDS = (6, 10, 8, 12, 6, 10, 4)
MISSING = (0.0, 0.0, 0.3)
ERODED = (0, 2, 1, 0, 3, 2, 0, 4)
SIZES = (32, 32, 32, 24, 16)
WORN = 0.15
KEEP = 8
# How strongly the coefficients of one gap are held towards those of all, and those towards zero.
HELD = 1e-4
BOUNDS = (0, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99, 1)


def cut_next(paths: list[Path], number: int, generator: torch.Generator) -> tuple[Puzzle, int]:
    """Some picture as a puzzle whose grid, missing share and erosion go by its number; and its erosion."""
    path = paths[int(torch.randint(len(paths), (1,), generator=generator))]
    side, erode = GRIDS[number % len(GRIDS)], ERODED[number % len(ERODED)]
    size = SIZES[int(torch.randint(len(SIZES), (1,), generator=generator))]
    missing = MISSING[number % len(MISSING)]
    picture, board = load_picture(path).float() / 255, Board(side, side)
    return cut_picture(picture, board, generator, size=size, missing=missing, erode=erode), erode


def examples(edge_model: EdgeModel, puzzle: Puzzle, generator: torch.Generator) -> tuple[int, Tensor, Tensor]:
    """The gap that the model believes in, the terms of pairs (m, terms), and whether they are neighbours (m,)."""
    pixels = wear(puzzle.pixels, WORN, generator)
    borders = Borders.of(pixels)
    compatibility = edge_model.compare(pixels, borders)
    candidates = find_candidates(borders, compatibility, KEEP)
    true = candidates.side == partners([puzzle])[:, None]
    return compatibility.gap, candidates.terms().flatten(0, 1), true.flatten().float()


def fit_odds(terms: Tensor, true: Tensor, towards: Tensor) -> Tensor:
    """Coefficients of the logistic regression of truth on the terms, held towards some others."""
    odds = towards.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([odds], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.binary_cross_entropy_with_logits(terms @ odds, true) + HELD * (odds - towards).square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return odds.detach()


def show(probability: Tensor, true: Tensor) -> None:
    """Told and true shares of neighbours."""
    for low, high in pairwise(BOUNDS):
        of_these = (probability >= low) & ((probability < high) | (high == 1))
        told, right = probability[of_these].mean(), true[of_these].mean()
        print(f"{low:4.2f} … {high:4.2f}  {int(of_these.sum()):7d} pairs  told {told:.3f}  true {right:.3f}")


def main() -> None:
    """Cut pictures of every folder, fit, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, metavar="MODEL_DIR")
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--pictures", type=int, default=120, help="puzzles cut from each folder")
    parser.add_argument("--held-apart", type=int, default=16, help="pictures of each folder to leave alone")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(options.seed)
    edge_model = EdgeModel.from_pretrained(options.model)
    gaps, terms, true, right = [], [], [], 0
    for folder in options.folders:
        paths = split_apart(training_pictures(str(folder)), options.held_apart)[0]
        for number in range(options.pictures):
            puzzle, erode = cut_next(paths, number, generator)
            gap, some_terms, some_true = examples(edge_model, puzzle, generator)
            right += gap == erode
            gaps.append(torch.full_like(some_true, gap))
            terms.append(some_terms)
            true.append(some_true)
    gap_of, every_term, every_true = torch.cat(gaps).long(), torch.cat(terms), torch.cat(true)
    print(f"gap found in {right} of {len(gaps)} puzzles; {len(every_true)} pairs, {100 * every_true.mean():.1f} % true")
    common = fit_odds(every_term, every_true, torch.zeros(every_term.shape[1]))
    for number in range(len(edge_model.odds)):
        of_gap = gap_of == number
        edge_model.odds[number] = fit_odds(every_term[of_gap], every_true[of_gap], common) if of_gap.any() else common
    logits = (every_term * edge_model.odds[gap_of]).sum(1)
    print(f"log loss {F.binary_cross_entropy_with_logits(logits, every_true):.4f}")
    show(logits.sigmoid(), every_true)
    edge_model.save_pretrained(options.model)


if __name__ == "__main__":
    main()
