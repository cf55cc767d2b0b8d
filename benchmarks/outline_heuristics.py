"""What every heuristic for flat pieces is worth: each is switched off once, alone, on training data.

    python benchmarks/outline_heuristics.py tabs /data/photos/train --pieces /data/pieces/testbild --out table.json

Puzzles are cut from pictures of a folder, none of which any of the compared code was trained on; with `--pieces` a
recorded puzzle of photographed pieces is added: with pieces missing, and a block of it among pieces that don't belong
to it. A row has the percent of pieces in place, the confirmed ones (confidence ≥ 0.9) and how many of them are
right, and false confirmed joins: neighbours in one object, both confirmed, that are not neighbours so in truth.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from diffassemble.assembly.scoring import outline_errors
from diffassemble.core import Placements, Poses, Puzzle
from diffassemble.core.pieces import surviving
from diffassemble.core.seeds import seeded
from diffassemble.core.thresholds import SURE
from diffassemble.evaluation.metrics import wilson_interval
from diffassemble.evaluation.outlines import lattice_truth, read_recorded, true_neighbours
from diffassemble.io.pictures import read_picture
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.lattice import LATTICE
from diffassemble.outlines.lattice_answer import grow_lattice
from diffassemble.outlines.sides import Sides, find_sides
from diffassemble.outlines.tabs import TABS, match_tabs


class Case(NamedTuple):
    """A puzzle, which of its pieces count (others are foreign), and whether only rows and columns are known."""

    name: str
    puzzle: Puzzle
    own: torch.Tensor
    lattice: bool


Solve = Callable[[Case], Placements]
found_sides: dict[str, Sides] = {}


def tabs(growth: dict[str, Any] | None = None, **match: Any) -> Solve:
    """A solver of jigsaw pieces with other numbers."""
    matching, config = replace(TABS, **match), replace(LATTICE, **(growth or {}))

    def solve(case: Case) -> Placements:
        pieces = case.puzzle.outlines
        if case.name not in found_sides:
            found_sides[case.name] = find_sides(pieces)
        sides = found_sides[case.name]
        return grow_lattice(pieces, match_tabs(pieces, sides, matching), sides=sides, config=config)

    return solve


VARIANTS: dict[str, dict[str, Solve]] = {
    "tabs": {
        "full": tabs(),
        "joining of parts": tabs({"least_merge": 99.0, "least_merge_large": 99.0}),
        "joining of large parts in doubt": tabs({"least_merge_large": LATTICE.least_merge}),
        "bounded contradiction": tabs({"contradiction": LATTICE.impossible}),
        "least size of further parts": tabs({"smallest": 0.0}),
        "colour": tabs(coloured=False),
        "offset of outlines": tabs(offsets=(0.0,), offset_left=9.0),
        "correction of the offset": tabs(offset_left=9.0),
        "smoothing of curves": tabs(smoothing=0.01),
        "distance of corners": tabs(ends=0.0),
        "60 instead of 30 close fits": tabs(fitted=60),
        "128 instead of 64 points": tabs(points=128, trimmed=5),
        "rarity of a side's shape": tabs(shrink=1e9),
    }
}


def made(folder: Path, seeds: int) -> Iterator[Case]:
    """Puzzles of many sizes: pieces, pixels across, pixels lost all around, share missing, coloured."""
    pictures = sorted(folder.iterdir())
    kinds = [(48, 40, 0, 0.3, False), (100, 60, 1, 0.1, True), (100, 25, 0, 0.3, False), (200, 20, 0, 0.0, True)]
    kinds += [(200, 50, 1, 0.3, False), (200, 30, 0, 0.3, False)]
    for seed in range(seeds):
        for number, (pieces, size, erode, missing, coloured) in enumerate(kinds):
            picture = read_picture(pictures[(7919 * seed + 31 * number) % len(pictures)])
            generator = seeded(seed, number)
            puzzle = cut_shapes(picture, "tabs", pieces, generator, size=size, erode=erode, missing=missing)
            puzzle = replace(puzzle, pieces=replace(puzzle.outlines, coloured=coloured))
            name = f"{pieces} pieces of {size} px, {erode} px lost, {missing:.0%} missing, seed {seed}"
            yield Case(name, puzzle, torch.ones(len(puzzle), dtype=torch.bool), False)


def photographed(folder: Path, seeds: int) -> Iterator[Case]:
    """Photographed pieces of one puzzle with losses, and blocks of them among foreign pieces."""
    whole, _ = read_recorded(folder)
    assert whole.truth is not None
    cells = (whole.truth.translation / float(whole.outlines.areas.sqrt().mean())).round().long()
    cells = cells - cells.amin(0)
    for seed in range(seeds):
        for missing in (0.3, 0.5):
            kept = surviving(len(whole), missing, seeded(seed, 77))
            name = f"photographed, {missing:.0%} missing, seed {seed}"
            yield Case(name, whole.reordered(kept), torch.ones(len(kept), dtype=torch.bool), True)
        generator, size, foreign = seeded(seed, 78), 8 + 3 * (seed % 3), 60 + 40 * (seed % 3)
        corner = torch.cat([torch.randint(int(most) + 2 - size, (1,), generator=generator) for most in cells.amax(0)])
        inside = ((cells >= corner) & (cells < corner + size)).all(1)
        far = ~((cells >= corner - 1) & (cells <= corner + size)).all(1)
        strange = far.nonzero()[:, 0][torch.randperm(int(far.sum()), generator=generator)[:foreign]]
        kept = torch.cat([inside.nonzero()[:, 0], strange])
        kept = kept[torch.randperm(len(kept), generator=generator)]
        name = f"photographed, {size}×{size} with {foreign} foreign, seed {seed}"
        yield Case(name, whole.reordered(kept), inside[kept], True)


def score(case: Case, found: Placements) -> dict[str, int]:
    """Counts of a solved case."""
    pieces, truth, poses = case.puzzle.outlines, case.puzzle.truth, found.poses
    assert truth is not None
    step = float(pieces.areas.sqrt().mean())
    if case.lattice:
        truth = lattice_truth(poses, truth, true_neighbours(pieces, truth, "lattice"), step)
    placed = found.numbers >= 0
    right = outline_errors(pieces, poses, truth).right & placed
    sure = ((found.confidence >= SURE) & placed).nonzero()[:, 0]
    (way, turn), (true_way, true_turn) = (_seen_from_each(some[sure]) for some in (poses, truth))
    same = ((way - true_way).norm(dim=-1) < 0.35 * step) & ((turn - true_turn).abs().amax((-1, -2)) < 0.35)
    near = (found.numbers[sure][:, None] == found.numbers[sure]) & (way.norm(dim=-1) < 1.35 * step)
    joins = near.triu(1)
    return {
        "pieces": int(case.own.sum()),
        "right": int(right[case.own].sum()),
        "confirmed": len(sure),
        "confirmed right": int(right[sure].sum()),
        "false joins": int((joins & ~same).sum()),
        "joins": int(joins.sum()),
    }


def _seen_from_each(poses: Poses) -> tuple[torch.Tensor, torch.Tensor]:
    """Shifts and turns of all pieces in the frame of each."""
    way = poses.translation[None] - poses.translation[:, None]
    return (
        torch.einsum("iba,ijb->ija", poses.rotation, way),
        torch.einsum("iba,jbc->ijac", poses.rotation, poses.rotation),
    )


def main() -> None:
    """Solve all puzzles by every variant, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("family", choices=VARIANTS)
    parser.add_argument("folder", type=Path, help="pictures to cut puzzles from")
    parser.add_argument("--pieces", type=Path, help="a recorded puzzle of photographed jigsaw pieces")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", nargs="+", help="names of variants")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    cases = [*made(given.folder, given.seeds)]
    cases += photographed(given.pieces, given.seeds) if given.pieces else ()
    table = {}
    for name in given.only or VARIANTS[given.family]:
        began = time.process_time()
        rows = {case.name: score(case, VARIANTS[given.family][name](case)) for case in cases}
        total = {key: sum(row[key] for row in rows.values()) for key in next(iter(rows.values()))}
        low, high = wilson_interval(total["right"], total["pieces"])
        precision = 100 * total["confirmed right"] / max(1, total["confirmed"])
        seconds = time.process_time() - began
        print(
            f"{name:45} {100 * total['right'] / total['pieces']:6.2f} % ({low:.1f}–{high:.1f}), "
            f"{total['confirmed']:5d} confirmed, {precision:6.2f} % right, "
            f"{total['false joins']:3d} of {total['joins']} joins false, {seconds:5.1f} s",
            flush=True,
        )
        table[name] = {"total": total, "rows": rows}
        if given.out:
            given.out.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
