"""`diffassemble evaluate --table memory`: memory and time by pieces, every figure from a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from diffassemble.cli.evaluate_options import EvaluateOptions
from diffassemble.cli.footprint import COMPLETE, LEARN, PAPER_SPARSE, SPARSE, Errand, send
from diffassemble.cli.grid import parse_grid
from diffassemble.cli.measuring import check_place, show
from diffassemble.cli.paper_tables import timed_pictures
from diffassemble.core import Board, InputError
from diffassemble.evaluation.footprints import Footprint, footprint_figure, footprint_table
from diffassemble.evaluation.tables import write_rows
from diffassemble.files.atomic import write_file

SIDES = (6, 12, 20, 26, 30)
SOLVERS = ("diffusion", "hybrid")
# Graphs with a share of all pairs are measured up to so many pieces.
MOST_SHARED = 2500


def evaluate_memory(options: EvaluateOptions) -> None:
    """Measure, print, write and draw."""
    json, figure = options.json or Path("table-memory.json"), options.figure or Path("table-memory.png")
    for path in (json, figure):
        check_place(path)
    rows: list[Footprint] = []
    for errand in errands(options):
        rows.append(send(errand))
        row = rows[-1]
        print(f"{row.work}, {row.graph}, {row.pieces} pieces: {row.seconds:.2f} s, {row.peak_mb:.0f} MB", flush=True)
        write_rows(rows, json)
    show(footprint_table(rows))
    write_file(figure, footprint_figure(rows))
    print(f"wrote {len(rows)} rows to {json} and drew {figure}")


def errands(options: EvaluateOptions) -> Iterator[Errand]:
    """What is measured, the smallest first: learning and every solver on every graph that is not too large for it."""
    boards = [parse_grid(text) for text in options.grid] or [Board(side, side) for side in SIDES]
    solvers = options.solver or ("diffusion",)
    for board in boards:
        if board.rows != board.cols:
            raise InputError(f"table memory measures square grids, not {board.rows}x{board.cols}; pass one number")
    for name in solvers:
        if name not in SOLVERS:
            raise InputError(f"table memory measures {' and '.join(SOLVERS)}, not '{name}'")
    picture = os.fspath(timed_pictures(options.data, "memory")[1][0])
    for board in sorted(boards, key=lambda board: board.cells):
        for work in (*solvers, LEARN):
            for graph in _graphs(work, board.cells):
                fixed = options.size, options.model or "jigsaw", options.samples, options.steps, options.seed
                yield Errand(work, graph, picture, board.rows, *fixed)


def _graphs(work: str, pieces: int) -> tuple[str, ...]:
    if pieces > MOST_SHARED:
        return (SPARSE,)
    return (COMPLETE, SPARSE) if work == "hybrid" else (COMPLETE, PAPER_SPARSE, SPARSE)
