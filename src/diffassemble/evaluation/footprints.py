"""How memory and time grow with the pieces: ours, measured in processes of their own, beside what the paper says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.table import Table

from diffassemble.evaluation.exponent import FITTED_FROM, exponent
from diffassemble.evaluation.figures import COLOURS, png

# Quoted: the paper's figure "GPU memory consumption by total size", in GB by pieces, on an RTX 4090.
QUOTED_MEMORY = {
    "complete": {36: 2.4, 144: 4.3, 400: 12.7, 676: 27.0, 900: 50.0},
    "expander 20 %": {36: 2.3, 144: 3.9, 400: 7.5, 676: 13.0, 900: 20.0},
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
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, caption=caption, caption_justify="left")
    for heading in ("work", "graph"):
        table.add_column(heading, no_wrap=True)
    for heading in ("pieces", "seconds", "peak\nMB", "added\nMB", "right\n%", "paper\nMB"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        quoted = QUOTED_MEMORY.get(row.graph, {}).get(row.pieces)
        right = "" if row.accuracy_free is None else f"{row.accuracy_free:.1f}"
        numbers = [str(row.pieces), f"{row.seconds:.2f}", f"{row.peak_mb:.0f}", f"{row.added_mb:.0f}", right]
        table.add_row(row.work, row.graph, *numbers, "" if quoted is None else f"{1000 * quoted:.0f}")
    return table


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
        colour, pieces = COLOURS[number % len(COLOURS)], [row.pieces for row in own]
        style = "o-" if number < len(COLOURS) else "^-"
        memory.plot(pieces, [row.peak_mb / 1000 for row in own], style, color=colour, label=f"{name}, ours")
        seconds.plot(pieces, [row.seconds for row in own], style, color=colour)
    for style, (graph, told) in zip(("s--", "D:"), QUOTED_MEMORY.items(), strict=True):
        label = f"{graph}, paper (quoted, GPU)"
        memory.plot(list(told), list(told.values()), style, color="#444444", markerfacecolor="white", label=label)
    sizes = sorted({row.pieces for row in rows})
    for panel, name in ((memory, "GB of the process"), (seconds, "seconds")):
        panel.set(xlabel="pieces", ylabel=name, xscale="log", yscale="log")
        panel.set_xticks(sizes, [str(size) for size in sizes])
        panel.minorticks_off()
        panel.grid(color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
    figure.suptitle("Memory and time by pieces")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return png(figure)


def _by_kind(rows: Sequence[Footprint]) -> dict[str, list[Footprint]]:
    kinds: dict[str, list[Footprint]] = {}
    for row in rows:
        kinds.setdefault(f"{row.work}, {row.graph}", []).append(row)
    return kinds
