"""`diffassemble evaluate --table memory` and `--table pruning`, where every figure is from a process of its own, and
`--table pairs`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diffassemble.cli import footprint
from diffassemble.cli.evaluate import SIDE, EvaluateOptions
from diffassemble.cli.footprint import COMPLETE, LEARN, PAPER_SPARSE, SPARSE, Job
from diffassemble.cli.progress import show
from diffassemble.cli.sweep import object_cells, table_outputs, timed_pictures
from diffassemble.core import Board
from diffassemble.evaluation import footprints
from diffassemble.evaluation.footprints import DROPOUT, EXPANDER, Footprint, PruningRow
from diffassemble.evaluation.pairs import PairRow, measure_pairs, pair_figure, pair_table
from diffassemble.evaluation.sweep import Draws, refuse
from diffassemble.evaluation.tables import write_rows
from diffassemble.fragments.model import FractureModels
from diffassemble.io.atomic import write_file
from diffassemble.io.documents import parse_grid
from diffassemble.kinds.fragments import FRACTURE_MATCHING
from diffassemble.squares.pictures import COLLECTIONS

SIDES = (6, 12, 20, 26, 30)
SOLVERS = ("diffusion", "hybrid")
# Graphs with a share of all pairs are measured up to so many pieces.
MOST_SHARED = 2500


def evaluate_memory(options: EvaluateOptions) -> None:
    """Measure, print, write and draw."""
    rows_file, figure = table_outputs(options, "memory")
    rows: list[Footprint] = []
    for job in jobs(options):
        rows.append(footprint.measure_apart(job))
        row = rows[-1]
        print(f"{row.work}, {row.graph}, {row.pieces} pieces: {row.seconds:.2f} s, {row.peak_mb:.0f} MB", flush=True)
        write_rows(rows, rows_file)
    show(footprints.footprint_table(rows))
    write_file(figure, footprints.footprint_figure(rows))
    print(f"wrote {len(rows)} rows to {rows_file} and drew {figure}")


def evaluate_pairs(options: EvaluateOptions) -> None:
    """Match every two fragments of all broken objects."""
    rows_file, figure = table_outputs(options, "pairs")
    models, rows = FractureModels.from_pretrained(options.model or FRACTURE_MATCHING), list[PairRow]()
    for cell in object_cells(options):
        draws = Draws(cell, options.limit, options.puzzles, options.seed, options.seeds or 1)
        draws.check()
        for number in range(len(draws)):
            case, _ = draws.case(number)
            rows += measure_pairs(case, cell.noise, draws.place(number)[1], models)
            print(f"{case.name}: {len(rows)} pairs so far", flush=True)
            write_rows(rows, rows_file)
    show(pair_table(rows))
    write_file(figure, pair_figure(rows))
    print(f"wrote {len(rows)} rows to {rows_file} and drew {figure}")


def jobs(options: EvaluateOptions) -> Iterator[Job]:
    """What is measured, the smallest first: learning and every solver on every graph that is not too large for it."""
    boards = [parse_grid(text) for text in options.grid] or [Board(side, side) for side in SIDES]
    solvers = options.solver or ("diffusion",)
    for board in boards:
        long = f"table memory measures square grids, not {board.rows}x{board.cols}; pass one number"
        refuse(long, board.rows != board.cols)
    for name in solvers:
        refuse(f"table memory measures {' and '.join(SOLVERS)}, not '{name}'", name not in SOLVERS)
    picture = os.fspath(timed_pictures(options.data, "memory")[1][0])
    for board in sorted(boards, key=lambda board: board.cells):
        for work in (*solvers, LEARN):
            paper = () if work == "hybrid" else (PAPER_SPARSE,)
            for graph in (SPARSE,) if board.cells > MOST_SHARED else (COMPLETE, *paper, SPARSE):
                fixed = options.size or SIDE, options.model or "jigsaw", options.samples, options.steps, options.seed
                yield Job(work, graph, picture, board.rows, *fixed)


DEGREES = (0.2, 0.6, 0.8, 1.0)
GRIDS = (6, 12)
VIRTUAL_NODES = 8
# Pictures come again in so many ways, so that what is frozen of the networks is computed once for all of them.
VARIANTS = 4
PRESET = "jigsaw-paper-form"


@dataclass(frozen=True)
class Variant:
    """A kind of graph, how many others a piece hears on it, and what `train` must be told for that."""

    graph: str
    degree: float
    words: tuple[str, ...]

    @property
    def folder(self) -> str:
        return f"{self.graph}-{self.degree:g}"


def evaluate_pruning(options: EvaluateOptions) -> None:
    """Train and test all networks, print, write and draw."""
    rows_file, figure = table_outputs(options, "pruning")
    learn, test = _pictures(options.data)
    boards = [parse_grid(text) for text in options.grid] or [Board(side, side) for side in GRIDS]
    rows: list[PruningRow] = []
    for variant in variants(options.degree or DEGREES, boards):
        folder = rows_file.with_suffix("") / variant.folder
        trained = _trained(variant, options, boards, learn, folder)
        for grid in (f"{board.rows}x{board.cols}" for board in boards):
            row, peak = _tested(options, grid, test, folder)
            measured = row["puzzles"], options.training_steps, row["accuracy"], row["accuracy_free"]
            rows.append(PruningRow(variant.graph, variant.degree, grid, *measured, *trained, peak, options.seed))
        write_rows(rows, rows_file)
    show(footprints.pruning_table(rows))
    write_file(figure, footprints.pruning_figure(rows))
    print(f"wrote {len(rows)} rows to {rows_file} and drew {figure}")


def variants(degrees: Sequence[float], boards: Sequence[Board]) -> list[Variant]:
    """Expander and random dropout at every degree; at full degree both are the complete graph."""
    largest = max(board.cells for board in boards)
    found = []
    for degree in degrees:
        neither = f"degree {degree:g} is neither a share up to 1 nor a whole number of neighbours from 2 on"
        refuse(neither, not degree > 0 or 1 < degree != int(degree))
        many = f"degree {degree:g} is more than {largest} pieces allow; give at most {largest - 1}"
        refuse(many, degree > largest - 1)
        if degree == 1:
            found.append(Variant(COMPLETE, degree, ()))
            continue
        sparse = ("--model.degree", f"{degree:g}", "--model.virtual-nodes", str(VIRTUAL_NODES))
        found.append(Variant(EXPANDER, degree, (*sparse, "--model.sparse-solving")))
        if degree < 1:
            dropped = ("--model.dropped-edges", f"{1 - degree:g}", "--model.sparse-solving")
            found.append(Variant(DROPOUT, degree, dropped))
    return found


def _pictures(data: Sequence[str]) -> tuple[str, str]:
    """What to learn from and what to test on: two folders, or one published collection with a split of its own."""
    if len(data) == 1 and data[0].partition("=")[0] in COLLECTIONS:
        return data[0], data[0]
    told = "table pruning trains networks; pass --data LEARN_DIR TEST_DIR, or one of the paper's collections"
    refuse(told, len(data) != 2)
    return data[0], data[1]


def _trained(
    variant: Variant, options: EvaluateOptions, boards: Sequence[Board], learn: str, folder: Path
) -> tuple[float, float]:
    """Train a network, or go on where a broken-off run stopped; seconds and highest memory, as told by the system.

    A network that is finished is not trained again, and its costs are read from where they were noted.
    """
    noted = folder / "costs.json"
    if noted.exists():
        costs = json.loads(noted.read_text())
        return costs["seconds"], costs["peak_mb"]
    sides = [side for board in boards for side in (board.rows, board.cols)]
    words = ["train", options.model or PRESET, "--data.folders", learn, "--out", os.fspath(folder), "--resume"]
    words += ["--data.grids", str(min(sides)), str(max(sides)), "--data.favourite", str(min(sides))]
    words += ["--training.steps", str(options.training_steps), "--training.seed", str(options.seed), *variant.words]
    words += ["--data.variants", str(VARIANTS), "--data.cache", os.fspath(folder.parent / "cache")]
    words += ["--training.start-from", options.training_from] if options.training_from else []
    print(f"training {variant.folder}", flush=True)
    seconds, peak = _run(
        words if (folder / "checkpoint.pt").exists() else [word for word in words if word != "--resume"]
    )
    write_file(noted, json.dumps({"seconds": seconds, "peak_mb": peak}).encode())
    return seconds, peak


def _tested(options: EvaluateOptions, grid: str, test: str, folder: Path) -> tuple[dict[str, Any], float]:
    """The row of a trained network on a grid, and the highest memory of the process that measured it."""
    rows_file = folder / f"{grid}.json"
    words = ["evaluate", "--data", test, "--model", os.fspath(folder / "last"), "--grid", grid]
    words += ["--json", os.fspath(rows_file), "--overwrite", "--samples", "1", "--steps", str(options.steps)]
    words += ["--seed", str(options.seed), *(["--limit", str(options.limit)] if options.limit is not None else [])]
    _, peak = _run(words)
    return json.loads(rows_file.read_text())[0], peak


def _run(words: Sequence[str]) -> tuple[float, float]:
    """A command of this program in a process of its own; its seconds and its highest memory in MB."""
    return footprint.run_apart(["-m", "diffassemble", *words], f"diffassemble {' '.join(words[:2])}")[1:]
