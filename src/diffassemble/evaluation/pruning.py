"""Networks taught on sparser and sparser graphs: ours beside the paper's, which are quoted.

The paper's supplementary, "Effect of Edge Pruning", table of PuzzleCelebA; all edges: Table 3. Its figure tells other
numbers for the same (98.57 instead of 92.37 % for 6x6 at 20 %), so only the table is quoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.table import Table

from diffassemble.evaluation.figures import COLOURS, png

COMPLETE, EXPANDER, DROPOUT = "complete", "expander", "dropout"
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


@dataclass(frozen=True)
class PruningRow:
    """A network taught on one kind of graph, tested on one grid; accuracies in percent.

    `degree` is the share, or the number, of other pieces that each piece hears; memory is the highest of the process
    that taught it and of the one that tested it.
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
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, caption=caption, caption_justify="left")
    table.add_column("graph", no_wrap=True)
    headings = (
        "degree",
        "grid",
        "absolute",
        "orient.\nfree",
        "paper",
        "learning\nseconds",
        "learning\nMB",
        "solving\nMB",
    )
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        quoted = QUOTED_PRUNING.get((row.graph, row.degree), {}).get(row.grid)
        right = f"{row.accuracy:.1f}", f"{row.accuracy_free:.1f}", "" if quoted is None else f"{quoted:.2f}"
        costs = f"{row.training_seconds:.0f}", f"{row.training_peak_mb:.0f}", f"{row.solving_peak_mb:.0f}"
        table.add_row(row.graph, told_degree(row.degree), row.grid, *right, *costs)
    return table


def told_degree(degree: float) -> str:
    """A share in percent, or a number."""
    return f"{100 * degree:g} %" if degree <= 1 else f"{degree:g}"


def pruning_figure(rows: Sequence[PruningRow]) -> bytes:
    """A PNG of accuracy, at the best turn of the whole, against degree; a line for each kind of graph and grid."""
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    panel = figure.subplots()
    degrees = sorted({row.degree for row in rows})
    for number, grid in enumerate(dict.fromkeys(row.grid for row in rows)):
        for style, graph in (("o-", EXPANDER), ("s--", DROPOUT)):
            own = sorted((row for row in rows if row.grid == grid and row.graph in (graph, COMPLETE)), key=_degree)
            places, right = [degrees.index(row.degree) for row in own], [row.accuracy_free for row in own]
            panel.plot(places, right, style, color=COLOURS[number], label=f"{grid}, {graph}")
    panel.set_xticks(range(len(degrees)), [told_degree(degree) for degree in degrees])
    panel.set(xlabel="others that a piece hears", ylabel="right at the best turn of the whole (%)", ylim=(0, 102))
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return png(figure)


def _degree(row: PruningRow) -> float:
    return row.degree
