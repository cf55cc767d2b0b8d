"""What large and sparse graphs cost: memory and time by pieces, and networks trained on sparser and sparser graphs.

Ours are measured in processes of their own and stand beside what the paper says, which is quoted: memory from the
figure "GPU memory consumption by total size", in GB by pieces, on an RTX 4090; accuracy from the supplementary, "Effect
of Edge Pruning", table of PuzzleCelebA, and for all edges from Table 3. The supplementary's figure tells other numbers
for the same (98.57 instead of 92.37 % for 6x6 at 20 %), so only its table is quoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from rich.table import Table

from diffassemble.evaluation.figures import COLOURS, FITTED_FROM, draw_curve, exponent, lined, logarithmic, png
from diffassemble.evaluation.tables import make_table

QUOTED_MEMORY = {
    "complete": {36: 2.4, 144: 4.3, 400: 12.7, 676: 27.0, 900: 50.0},
    "expander 20 %": {36: 2.3, 144: 3.9, 400: 7.5, 676: 13.0, 900: 20.0},
}
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
class Footprint:
    """One process: what it did (solve, or learn from one puzzle), on which graph, how long and with how much memory.

    `peak_mb` is the highest memory of the process, `added_mb` how much of it came after the network was loaded and
    had solved a small puzzle.
    """

    work: str
    graph: str
    pieces: int
    seconds: float
    peak_mb: float
    added_mb: float
    accuracy_free: float | None = None


def footprint_table(rows: Sequence[Footprint]) -> Table:
    """One line for each process, the paper's memory for the same graph beside it, exponents below."""
    caption = (
        "Ours: memory of a process of its own, on this machine's processor; added: what came after loading. Paper: "
        "quoted, in training on a GPU. "
        f"Growth with the pieces, from {FITTED_FROM} on: {growth(rows) or 'too few sizes to tell'}."
    )
    lines = []
    for row in rows:
        quoted = QUOTED_MEMORY.get(row.graph, {}).get(row.pieces)
        right = "" if row.accuracy_free is None else f"{row.accuracy_free:.1f}"
        numbers = [str(row.pieces), f"{row.seconds:.2f}", f"{row.peak_mb:.0f}", f"{row.added_mb:.0f}", right]
        lines.append([row.work, row.graph, *numbers, "" if quoted is None else f"{1000 * quoted:.0f}"])
    headings = ("work", "graph", "pieces", "seconds", "peak\nMB", "added\nMB", "right\n%", "paper\nMB")
    return make_table(headings, lines, caption=caption)


def growth(rows: Sequence[Footprint]) -> str:
    """The fitted exponents of time and added memory, kind by kind."""
    told = []
    for name, own in _by_kind(rows).items():
        sizes = [row.pieces for row in own]
        powers = exponent(sizes, [row.seconds for row in own]), exponent(sizes, [row.added_mb for row in own])
        if powers[0] is not None and powers[1] is not None:
            told.append(f"{name}: time n^{powers[0]:.2f}, memory n^{powers[1]:.2f}")
    return "; ".join(told)


def footprint_figure(rows: Sequence[Footprint]) -> bytes:
    """A PNG with memory and seconds against pieces, all axes logarithmic; the paper's memory is dashed."""
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    memory, seconds = figure.subplots(1, 2)
    for number, (name, own) in enumerate(_by_kind(rows).items()):
        look = COLOURS[number % len(COLOURS)], "o-" if number < len(COLOURS) else "^-"
        pieces = [row.pieces for row in own]
        draw_curve(memory, f"{name}, ours", pieces, [row.peak_mb / 1000 for row in own], *look)
        draw_curve(seconds, "", pieces, [row.seconds for row in own], *look)
    for style, (graph, told) in zip(("s--", "D:"), QUOTED_MEMORY.items(), strict=True):
        draw_curve(memory, f"{graph}, paper (quoted, GPU)", list(told), list(told.values()), "#444444", style)
    for panel, name in ((memory, "GB of the process"), (seconds, "seconds")):
        logarithmic(panel, sorted({row.pieces for row in rows}))
        panel.set(xlabel="pieces", ylabel=name)
    figure.suptitle("Memory and time by pieces")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return png(figure)


def _by_kind(rows: Sequence[Footprint]) -> dict[str, list[Footprint]]:
    kinds: dict[str, list[Footprint]] = {}
    for row in rows:
        kinds.setdefault(f"{row.work}, {row.graph}", []).append(row)
    return kinds


@dataclass(frozen=True)
class PruningRow:
    """A network trained on one kind of graph, tested on one grid; accuracies in percent.

    `degree` is the share, or the number, of other pieces that each piece hears; memory is the highest of the process
    that trained it and of the one that tested it.
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


def degree_text(degree: float) -> str:
    """A share in percent, or a number."""
    return f"{100 * degree:g} %" if degree <= 1 else f"{degree:g}"


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
    panel.set(xlabel="others that a piece hears", ylabel="right at the best turn of the whole (%)", ylim=(0, 102))
    lined(panel)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return png(figure)
