"""`diffassemble evaluate --table pruning`: networks taught on sparser graphs, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diffassemble.cli.evaluate_options import EvaluateOptions
from diffassemble.cli.grid import parse_grid
from diffassemble.cli.measuring import check_place, show
from diffassemble.core import Board, InputError
from diffassemble.evaluation.memory import megabytes
from diffassemble.evaluation.pruning import COMPLETE, DROPOUT, EXPANDER, PruningRow, pruning_figure, pruning_table
from diffassemble.evaluation.tables import write_rows
from diffassemble.files.atomic import write_file
from diffassemble.network.graph.edges import check_degree
from diffassemble.squares.pictures import COLLECTIONS

DEGREES = (0.2, 0.6, 0.8, 1.0)
GRIDS = (6, 12)
VIRTUAL_NODES = 8
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
    """Teach and test all networks, print, write and draw."""
    rows_file, figure = options.json or Path("table-pruning.json"), options.figure or Path("table-pruning.png")
    for path in (rows_file, figure):
        check_place(path)
    learn, test = _pictures(options.data)
    boards = [parse_grid(text) for text in options.grid] or [Board(side, side) for side in GRIDS]
    rows: list[PruningRow] = []
    for variant in variants(options.degree or DEGREES, boards):
        folder = rows_file.with_suffix("") / variant.folder
        taught = _taught(variant, options, boards, learn, folder)
        rows += _tested(variant, options, boards, test, folder, taught)
        write_rows(rows, rows_file)
    show(pruning_table(rows))
    write_file(figure, pruning_figure(rows))
    print(f"wrote {len(rows)} rows to {rows_file} and drew {figure}")


def variants(degrees: Sequence[float], boards: Sequence[Board]) -> list[Variant]:
    """Expander and random dropout at every degree; at full degree both are the complete graph."""
    largest = max(board.cells for board in boards)
    found = []
    for degree in degrees:
        check_degree(degree)
        if degree > largest - 1:
            raise InputError(f"degree {degree:g} is more than {largest} pieces allow; give at most {largest - 1}")
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
    if len(data) != 2:
        raise InputError(
            "table pruning teaches networks; pass --data LEARN_DIR TEST_DIR, or one of the paper's collections"
        )
    return data[0], data[1]


def _taught(
    variant: Variant, options: EvaluateOptions, boards: Sequence[Board], learn: str, folder: Path
) -> tuple[float, float]:
    """Teach a network, or go on where a broken-off run stopped; seconds and highest memory, as told by the system.

    A network that is finished is not taught again, and its costs are read from where they were noted.
    """
    noted = folder / "costs.json"
    if noted.exists():
        costs = json.loads(noted.read_text())
        return costs["seconds"], costs["peak_mb"]
    sides = [side for board in boards for side in (board.rows, board.cols)]
    words = ["train", options.model or PRESET, "--data.folders", learn, "--out", os.fspath(folder), "--resume"]
    words += ["--data.grids", str(min(sides)), str(max(sides)), "--data.favourite", str(min(sides))]
    words += ["--training.steps", str(options.training_steps), "--training.seed", str(options.seed), *variant.words]
    print(f"teaching {variant.folder}", flush=True)
    seconds, peak = _run(words if (folder / "config.json").exists() else [word for word in words if word != "--resume"])
    write_file(noted, json.dumps({"seconds": seconds, "peak_mb": peak}).encode())
    return seconds, peak


def _tested(
    variant: Variant,
    options: EvaluateOptions,
    boards: Sequence[Board],
    test: str,
    folder: Path,
    taught: tuple[float, float],
) -> list[PruningRow]:
    found: list[PruningRow] = []
    for board in boards:
        rows_file, grid = folder / f"{board.rows}x{board.cols}.json", f"{board.rows}x{board.cols}"
        words = ["evaluate", "--data", test, "--model", os.fspath(folder / "last"), "--grid", grid]
        words += ["--json", os.fspath(rows_file), "--samples", "1", "--steps", str(options.steps)]
        words += ["--seed", str(options.seed), *(["--limit", str(options.limit)] if options.limit is not None else [])]
        _, peak = _run(words)
        row: dict[str, Any] = json.loads(rows_file.read_text())[0]
        right = row["accuracy"], row["accuracy_free"]
        fixed = variant.graph, variant.degree, grid, row["puzzles"], options.training_steps
        found.append(PruningRow(*fixed, *right, taught[0], taught[1], peak, options.seed))
    return found


def _run(words: Sequence[str]) -> tuple[float, float]:
    """A command of this program in a process of its own; its seconds and its highest memory in MB."""
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "diffassemble", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    told = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        last = (told.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
        raise InputError(f"diffassemble {words[0]} {words[1]}: {last}")
    return time.perf_counter() - began, megabytes(usage.ru_maxrss)
