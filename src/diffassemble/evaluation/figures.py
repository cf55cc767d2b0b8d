"""Comparisons drawn: bars for accuracy, lines for time; ours are filled, the paper's figures are hollow or dashed."""

from __future__ import annotations

import io
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from diffassemble.evaluation.comparison import ABSOLUTE, FREE, NOT_OURS, Comparison, Line
from diffassemble.evaluation.exponent import exponent

# Told apart by most colour-blind eyes (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
_PALE = 0.4
_GROUP = 0.84


def accuracy_figure(title: str, comparisons: Sequence[Comparison]) -> bytes:
    """A PNG with one panel for each kind of pictures and one group of bars for each grid."""
    figure = Figure(figsize=(1.5 + 4.5 * len(comparisons), 4.6), layout="constrained")
    panels = figure.subplots(1, len(comparisons), sharey=True, squeeze=False)[0]
    colours = _colours([line for comparison in comparisons for line in comparison.lines])
    for panel, comparison in zip(panels, comparisons, strict=True):
        _draw_bars(panel, comparison, colours)
    panels[0].set_ylabel("pieces at the right place and turn (%)")
    dark, pale = Patch(color="#444444"), Patch(color="#444444", alpha=_PALE)
    diamond = Line2D([], [], marker="D", markersize=4, color="white", markeredgecolor="black", linestyle="none")
    signs = {
        **{method: Patch(color=colour) for method, colour in colours.items()},
        "ours, absolute": dark,
        "ours, orientation free (95 % interval)": pale,
        "paper, same method (quoted)": diamond,
        "paper, best method (quoted)": Line2D([], [], color="black", linestyle="--", linewidth=1),
    }
    figure.suptitle(title)
    figure.legend(list(signs.values()), list(signs), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return png(figure)


def time_figure(title: str, comparison: Comparison) -> bytes:
    """A PNG of seconds against pieces, both axes logarithmic."""
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    panel = figure.subplots()
    pieces = [board.cells for board in comparison.boards]
    colours = _colours(comparison.lines, quoted=True)
    for line in comparison.lines:
        colour = colours[line.method]
        if line.score != NOT_OURS:
            panel.plot(
                pieces, _numbers(line.ours), "o-", color=colour, label=f"{line.method}, ours{_power(pieces, line)}"
            )
        if any(value is not None for value in line.paper):
            paper = _numbers(line.paper)
            panel.plot(pieces, paper, "s--", color=colour, markerfacecolor="white", label=f"{line.method}, quoted")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xticks(pieces, [str(count) for count in pieces])
    panel.minorticks_off()
    panel.yaxis.set_major_formatter("{x:g}")
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.set(xlabel="pieces", ylabel="seconds a puzzle")
    figure.suptitle(title)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return png(figure)


def _power(pieces: Sequence[int], line: Line) -> str:
    """How ours grows with the pieces, if there are large puzzles enough to tell."""
    known = [(size, seconds) for size, seconds in zip(pieces, line.ours, strict=True) if seconds is not None]
    power = exponent(*zip(*known, strict=True)) if known else None
    return "" if power is None else f" (n^{power:.1f})"


def _draw_bars(panel: Axes, comparison: Comparison, colours: dict[str, str]) -> None:
    """Pale bars for the best turn of the whole, dark ones within them for the answer as it stands."""
    width = _GROUP / max(1, len(colours))
    for number, (method, colour) in enumerate(colours.items()):
        middles = [place + (number + 0.5) * width - _GROUP / 2 for place in range(len(comparison.boards))]
        for line in comparison.lines:
            if line.method != method or line.score not in (ABSOLUTE, FREE):
                continue
            free = line.score == FREE
            panel.bar(middles, _numbers(line.ours), 0.9 * width, color=colour, alpha=_PALE if free else 1.0)
            if free:
                ends = [low for low, _ in line.intervals], [high for _, high in line.intervals]
                panel.vlines(middles, *ends, color="black", linewidth=0.8)
            panel.plot(middles, _numbers(line.paper), "D", markersize=4, color="white", markeredgecolor="black")
    for place in range(len(comparison.boards)):
        quoted = [figure for line in comparison.lines if (figure := line.paper[place]) is not None]
        if quoted:
            panel.hlines(max(quoted), place - _GROUP / 2, place + _GROUP / 2, "black", "--", linewidth=1)
    panel.set_xticks(range(len(comparison.boards)), [f"{board.rows}x{board.cols}" for board in comparison.boards])
    panel.set(title=comparison.title, ylim=(0, 102))
    panel.grid(axis="y", color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)


def _colours(lines: Sequence[Line], quoted: bool = False) -> dict[str, str]:
    """A colour for each method that was measured here, or also for those that are only quoted."""
    methods = dict.fromkeys(line.method for line in lines if quoted or line.score != NOT_OURS)
    return {method: COLOURS[number % len(COLOURS)] for number, method in enumerate(methods)}


def _numbers(values: Sequence[float | None]) -> list[float]:
    """What can be drawn: a gap where there is nothing."""
    return [float("nan") if value is None else value for value in values]


def png(figure: Figure) -> bytes:
    """The figure as a PNG file's content."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150)
    return content.getvalue()
