"""Networks trained on sparser and sparser graphs, beside the supplementary's "Effect of Edge Pruning".

Quoted: its table of PuzzleCelebA, and for all edges Table 3. The supplementary's figure has other numbers for the same
(98.57 instead of 92.37 % for 6x6 at 20 %), so only its table is quoted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.table import Table

from diffassemble.cli.progress import show
from diffassemble.core import Board
from diffassemble.evaluation.report import COLOURS, lined, make_table, png, write_rows
from diffassemble.evaluation.sweep import refuse
from diffassemble.io.atomic import write_file
from diffassemble.io.documents import parse_grid
from diffassemble.squares.pictures import COLLECTIONS
from diffassemble_research.evaluate import PaperOptions
from diffassemble_research.figures import draw_curve
from diffassemble_research.footprints import COMPLETE, run_apart
from diffassemble_research.tables import table_outputs

EXPANDER, DROPOUT = "expander", "dropout"
# By graph and degree: accuracy on 6x6 and 12x12.
QUOTED_PRUNING = {
    (COMPLETE, 1.0): {"6x6": 99.51, "12x12": 97.76},
    (EXPANDER, 0.8): {"6x6": 99.15, "12x12": 95.71},
    (DROPOUT, 0.8): {"6x6": 99.15, "12x12": 95.87},
    (EXPANDER, 0.6): {"6x6": 99.04, "12x12": 94.35},
    (DROPOUT, 0.6): {"6x6": 99.17, "12x12": 94.07},
    (EXPANDER, 0.2): {"6x6": 92.37, "12x12": 54.07},
    (DROPOUT, 0.2): {"6x6": 91.60, "12x12": 50.18},
}
DEGREES = (0.2, 0.6, 0.8, 1.0)
GRIDS = (6, 12)
VIRTUAL_NODES = 8
# Pictures come again in so many ways, so that what is frozen of the networks is computed once for all of them.
VARIANTS = 4
PRESET = "jigsaw-paper-form"


@dataclass(frozen=True)
class Variant:
    """A kind of graph, with how many others a piece is connected on it, and the options of `train` for that."""

    graph: str
    degree: float
    words: tuple[str, ...]

    @property
    def folder(self) -> str:
        return f"{self.graph}-{self.degree:g}"


def evaluate_pruning(options: PaperOptions) -> None:
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
    show(pruning_table(rows))
    write_file(figure, pruning_figure(rows))
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
    wanted = "table pruning trains networks; pass --data LEARN_DIR TEST_DIR, or one of the paper's collections"
    refuse(wanted, len(data) != 2)
    return data[0], data[1]


def _trained(
    variant: Variant, options: PaperOptions, boards: Sequence[Board], learn: str, folder: Path
) -> tuple[float, float]:
    """Train a network, or go on where a broken-off run stopped; seconds and highest memory, as the system counts them.

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


def _tested(options: PaperOptions, grid: str, test: str, folder: Path) -> tuple[dict[str, Any], float]:
    """The row of a trained network on a grid, and the highest memory of the process that measured it."""
    rows_file = folder / f"{grid}.json"
    words = ["evaluate", "--data", test, "--model", os.fspath(folder / "last"), "--grid", grid]
    words += ["--json", os.fspath(rows_file), "--overwrite", "--samples", "1", "--steps", str(options.steps)]
    words += ["--seed", str(options.seed), *(["--limit", str(options.limit)] if options.limit is not None else [])]
    _, peak = _run(words)
    return json.loads(rows_file.read_text())[0], peak


def _run(words: Sequence[str]) -> tuple[float, float]:
    """A command of this program in a process of its own; its seconds and its highest memory in MB."""
    return run_apart(["-m", "diffassemble", *words], f"diffassemble {' '.join(words[:2])}")[1:]


@dataclass(frozen=True)
class PruningRow:
    """A network trained on one kind of graph, tested on one grid; accuracies in percent.

    `degree` is the share, or the number, of other pieces that each piece is connected with; memory is the highest of
    the process that trained it and of the one that tested it.
    """

    graph: str
    degree: float
    grid: str
    puzzles: int
    training_steps: int
    accuracy: float
    accuracy_free: float
    training_seconds: float
    training_peak_mb: float
    solving_peak_mb: float
    seed: int


def pruning_table(rows: Sequence[PruningRow]) -> Table:
    """One line for each network and grid, the paper's accuracy beside ours."""
    caption = (
        "Percent of pieces at the right place and turn, absolute and at the best turn of the whole; all networks learn "
        "for as many steps. Paper: quoted, after far longer training on other pictures."
    )
    lines = []
    for row in rows:
        quoted = QUOTED_PRUNING.get((row.graph, row.degree), {}).get(row.grid)
        right = f"{row.accuracy:.1f}", f"{row.accuracy_free:.1f}", "" if quoted is None else f"{quoted:.2f}"
        costs = f"{row.training_seconds:.0f}", f"{row.training_peak_mb:.0f}", f"{row.solving_peak_mb:.0f}"
        lines.append([row.graph, degree_text(row.degree), row.grid, *right, *costs])
    headings = ("graph", "degree", "grid", "absolute", "orient.\nfree", "paper")
    costs = ("learning\nseconds", "learning\nMB", "solving\nMB")
    return make_table((*headings, *costs), lines, caption=caption, words=1)


def pruning_figure(rows: Sequence[PruningRow]) -> bytes:
    """A PNG of accuracy, at the best turn of the whole, against degree; a line for each kind of graph and grid."""
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    panel = figure.subplots()
    degrees = sorted({row.degree for row in rows})
    for number, grid in enumerate(dict.fromkeys(row.grid for row in rows)):
        for style, graph in (("o-", EXPANDER), ("s--", DROPOUT)):
            own = [row for row in rows if row.grid == grid and row.graph in (graph, COMPLETE)]
            own.sort(key=lambda row: row.degree)
            places, right = [degrees.index(row.degree) for row in own], [row.accuracy_free for row in own]
            draw_curve(panel, f"{grid}, {graph}", places, right, COLOURS[number], style)
    panel.set_xticks(range(len(degrees)), [degree_text(degree) for degree in degrees])
    panel.set(xlabel="neighbours of a piece", ylabel="right at the best turn of the whole (%)", ylim=(0, 102))
    lined(panel)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return png(figure)


def degree_text(degree: float) -> str:
    """A share in percent, or a number."""
    return f"{100 * degree:g} %" if degree <= 1 else f"{degree:g}"
