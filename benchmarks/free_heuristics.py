"""What every heuristic for free outlines and strips is worth: each is switched off once, alone, on training data.

    python benchmarks/free_heuristics.py free /data/photos/train [--pieces DIR] [--only NAME …]
    python benchmarks/free_heuristics.py strips /data/photos/train --pieces FOLDER_OF_MADE_PAGES

Puzzles are cut from pictures of a folder, which no network here was trained on; `--pieces` adds recorded puzzles
(`benchmarks/shredded_pages.py` makes pages). A row has the percent of pieces in place with its 95 % interval, confident
pieces (≥ 0.9) and how many of these are right. Variants of growth share the matches of the full search.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from diffassemble.assembly.scoring import outline_errors
from diffassemble.core import Matches, OutlinePieces, Placements, Puzzle
from diffassemble.core.thresholds import SURE
from diffassemble.evaluation.metrics import wilson_interval
from diffassemble.evaluation.outlines import find_recorded, ordered_strips, read_recorded
from diffassemble.io.pictures import read_picture
from diffassemble.outlines.arcs import ARC_SEARCH, ArcSearchConfig, match_arcs
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.growth import FREE_GROWTH, grow_free
from diffassemble.outlines.rims import RIMS
from diffassemble.outlines.strips import STRIPS, match_strips, order_strips

Solve = Callable[[str, OutlinePieces], Placements]
found: dict[tuple[str, ArcSearchConfig], Matches] = {}


def free(growth: dict[str, Any] | None = None, rims: dict[str, Any] | None = None, **search: Any) -> Solve:
    """A solver of free outlines with other numbers."""
    rim = replace(RIMS, **(rims or {}))
    searching = replace(ARC_SEARCH, rims=rim, **search)
    growing = replace(FREE_GROWTH, rims=rim, **(growth or {}))

    def solve(name: str, pieces: OutlinePieces) -> Placements:
        if (name, searching) not in found:
            found[name, searching] = match_arcs(pieces, config=searching)
        return grow_free(pieces, found[name, searching], config=growing)

    return solve


def strips(**fields: Any) -> Solve:
    """A solver of strips with other numbers."""
    config = replace(STRIPS, **fields)
    return lambda name, pieces: order_strips(pieces, match_strips(pieces, config), None, config=config)


SEEDS = ARC_SEARCH.seeds
VARIANTS: dict[str, dict[str, Solve]] = {
    "free": {
        "full": free(),
        "rival attempts": free({"rivals": 0}),
        "implied contacts as evidence": free({"shortest": 99.0}),
        "bounds of implied contacts": free({"bounds": (-99.0, 99.0)}),
        "refinement of implied contacts": free({"settled": (0.0, 0.0)}),
        "collisions": free({"collision": 99.0}),
        "relaxation of poses": free({"pulling": 99.0}),
        "straight contacts don't count": free({"straight_share": 2.0}),
        "ceiling where most are unsure": free({"mostly": 0.0}),
        "second search at the gap": free(gap_excess=0.0),
        "half gap (whole)": free(searched_share=1.0),
        "white rims ignored": free(rims={"pale": 0.0}),
        **{
            f"seeds of {own.length:g}, colour {own.colour}": free(seeds=(*SEEDS[:k], *SEEDS[k + 1 :]))
            for k, own in enumerate(SEEDS)
        },
    },
    "strips": {
        "full": strips(),
        "rivals": strips(rivals=0),
        "balancing": strips(rounds=0),
        "40 partners (8)": strips(partners=8),
    },
}
CUT = {
    "free": (("shards", 16, 4, 0), ("torn", 16, 0, 10), ("torn", 30, 2, 20), ("shards", 25, 9, 30)),
    "strips": (("strips", 14, 2, 40),),
}
"""shape, pieces, pixels lost at every side, and the first picture, counted from the last of the folder"""


def puzzles(family: str, folder: Path, count: int, recorded: list[Path]) -> Iterator[tuple[str, Puzzle, str]]:
    """Names, puzzles and layouts: one puzzle of every picture, and recorded ones."""
    pictures = sorted(folder.iterdir())
    for shape, pieces, erode, start in CUT[family]:
        for number in range(start, start + count):
            generator = torch.Generator().manual_seed(1000 + number)
            puzzle = cut_shapes(read_picture(pictures[-1 - number]), shape, pieces, generator, erode=erode)
            yield f"{shape} {pieces}, {erode} px, {number}", puzzle, "free"
    for one in (one for path in recorded for one in find_recorded(path)):
        yield str(one), *read_recorded(one)


def main() -> None:
    """Solve all puzzles by every variant, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=VARIANTS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pieces", type=Path, nargs="*", default=[])
    parser.add_argument("--puzzles", type=int, default=8, help="of each shape; 0: only those of --pieces")
    parser.add_argument("--only", nargs="+", help="names of variants")
    given = parser.parse_args()
    torch.set_num_threads(1)
    cases = list(puzzles(given.family, given.folder, given.puzzles, given.pieces))
    for variant in given.only or VARIANTS[given.family]:
        began, total = time.process_time(), torch.zeros(4, dtype=torch.long)
        for name, puzzle, layout in cases:
            answer = VARIANTS[given.family][variant](name, puzzle.outlines)
            assert puzzle.truth is not None
            placed, poses = answer.numbers >= 0, answer.poses
            if layout == "strips":
                poses = ordered_strips(poses, puzzle.truth, placed, float(puzzle.outlines.widths.mean()))
            right = outline_errors(puzzle.outlines, poses, puzzle.truth).right & placed
            sure = (answer.confidence >= SURE) & placed
            total += torch.tensor([len(puzzle), int(right.sum()), int(sure.sum()), int(right[sure].sum())])
        pieces, in_place, confident, confident_right = total.tolist()
        low, high = wilson_interval(in_place, pieces)
        print(
            f"{variant:36} {100 * in_place / pieces:5.1f} % ({low:.1f}–{high:.1f}) of {pieces} in place, "
            f"{confident} confident, {confident_right} right, {time.process_time() - began:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
