"""Results drawn as PNG: bars for scores, curves for growth; ours are filled, quoted figures are hollow or dashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from diffassemble.evaluation.report import COLOURS, draw_bars, lined, png
from diffassemble.evaluation.rows import Interval
from diffassemble_research.quoted import ABSOLUTE, FREE, Comparison, Line, PaperTable

# For smaller puzzles constant costs outweigh those that grow.
FITTED_FROM = 400
_DIAMOND: dict[str, Any] = {"marker": "D", "color": "white", "markeredgecolor": "black", "linestyle": "none"}


def table_figure(table: PaperTable, comparisons: Sequence[Comparison]) -> bytes:
    """The figure of a table of the paper."""
    if table.figures == "seconds":
        return time_figure(table.title, comparisons[0])
    if len(table.missing) > 1:
        return missing_figure(table.title, comparisons)
    return bars_figure(table.title, comparisons)


def bars_figure(title: str, comparisons: Sequence[Comparison]) -> bytes:
    """A row of panels for each comparison, one for each column; a bar for each method and score."""
    wide, most = max(len(one.labels) for one in comparisons), max(len(one.lines) for one in comparisons)
    height = (1.2 + 0.3 * most) * len(comparisons) + 0.8
    figure = Figure(figsize=(2.5 + 2.9 * wide, height), layout="constrained")
    panels = figure.subplots(len(comparisons), wide, sharey="row", squeeze=False)
    colours = _colours([line.method for comparison in comparisons for line in comparison.lines])
    for row, comparison in zip(panels, comparisons, strict=True):
        lines = comparison.lines
        names = [f"{line.method}, {line.score}" if line.score in (ABSOLUTE, FREE) else line.method for line in lines]
        for number, (panel, label) in enumerate(zip(row, comparison.labels, strict=True)):
            figures = np.array([(line.ours[number], line.quoted[number]) for line in lines], float)
            panel.plot(figures[:, 1], range(len(lines)), markersize=5, **_DIAMOND)
            reach = [_reach(line, number) for line in lines]
            draw_bars(panel, names, figures[:, 0], label, [colours[line.method] for line in lines], reach)
        row[0].set_title(comparison.view, loc="left", fontsize=9)
    signs = {
        "ours (95 % interval, or deviation over seeds)": Patch(color=COLOURS[0]),
        "quoted, from other pictures, objects and machines": Line2D([], [], markersize=5, **_DIAMOND),
    }
    figure.suptitle(title)
    figure.legend(list(signs.values()), list(signs), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return png(figure)


def draw_curve(
    panel: Axes,
    label: str,
    x: Sequence[float] | Sequence[int],
    y: Sequence[float | None],
    colour: str,
    style: str = "o-",
    deviation: Sequence[float] | None = None,
) -> None:
    """A line with gaps where nothing is known, and with its deviation if that is; quoted ones are hollow."""
    if all(value is None for value in y):
        return
    inside = colour if style.endswith(("o-", "^-")) else "white"
    look: dict[str, Any] = {"color": colour, "label": label, "markerfacecolor": inside}
    # What is not there becomes NaN, which is a gap.
    if deviation is None:
        panel.plot(x, np.array(y, float), style, **look)
    else:
        panel.errorbar(x, np.array(y, float), yerr=deviation, fmt=style, capsize=3, **look)


def time_figure(title: str, comparison: Comparison) -> bytes:
    """Seconds against pieces, both axes logarithmic."""
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    panel, pieces = figure.subplots(), [int(column) for column in comparison.columns]
    colours = _colours([line.method for line in comparison.lines])
    for line in comparison.lines:
        power = exponent(pieces, line.ours)
        growth = "" if power is None else f" (n^{power:.1f})"
        draw_curve(panel, f"{line.method}, ours{growth}", pieces, line.ours, colours[line.method])
        draw_curve(panel, f"{line.method}, quoted", pieces, line.quoted, colours[line.method], "s--")
    logarithmic(panel, pieces)
    panel.set(xlabel="pieces", ylabel=comparison.labels[0])
    panel.yaxis.set_major_formatter("{x:g}")
    figure.suptitle(title)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return png(figure)


def exponent(sizes: Sequence[int], costs: Sequence[float | None]) -> float | None:
    """The power of the size that costs grow with, from FITTED_FROM on; none if there are not two sizes."""
    kept = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if size >= FITTED_FROM and (cost or 0) > 0]
    if len({size for size, _ in kept}) < 2:
        return None
    x, y = np.log(np.array(kept)).T
    return float(np.polyfit(x, y, 1)[0])


def missing_figure(title: str, comparisons: Sequence[Comparison]) -> bytes:
    """Courses over the shares of missing pieces: a row of panels for each view, a curve for each method."""
    views, labels = list(dict.fromkeys(one.view for one in comparisons)), comparisons[0].labels
    figure = Figure(figsize=(12.5, 4.2 * len(views) + 0.4), layout="constrained")
    panels = figure.subplots(len(views), len(labels), squeeze=False)
    colours = _colours([line.method for comparison in comparisons for line in comparison.lines])
    for row, view in zip(panels, views, strict=True):
        own = [(100 * float(one.group), line) for one in comparisons if one.view == view for line in one.lines]
        for number, (panel, label) in enumerate(zip(row, labels, strict=True)):
            for method, colour in colours.items():
                shares = [share for share, line in own if line.method == method]
                lines = [line for _, line in own if line.method == method]
                ours, deviation = [line.ours[number] for line in lines], [_reach(line, number)[1] for line in lines]
                draw_curve(panel, f"{method}, ours", shares, ours, colour, deviation=deviation)
                draw_curve(panel, f"{method}, quoted", shares, [line.quoted[number] for line in lines], colour, "s--")
            panel.set(xlabel="pieces missing, %", ylabel=label)
            lined(panel)
        row[0].set_title(view, loc="left", fontsize=9)
    figure.suptitle(title)
    signs = dict(zip(*reversed(panels[0][0].get_legend_handles_labels()), strict=True))
    figure.legend(list(signs.values()), list(signs), loc="outside right center", frameon=False, fontsize=8)
    return png(figure)


def logarithmic(panel: Axes, sizes: Sequence[int]) -> None:
    """Both axes, with a mark for each number of pieces."""
    panel.set(xscale="log", yscale="log")
    panel.set_xticks(sizes, [str(size) for size in sizes])
    panel.minorticks_off()
    lined(panel)


def _colours(methods: Sequence[str]) -> dict[str, str]:
    return {method: COLOURS[number % len(COLOURS)] for number, method in enumerate(dict.fromkeys(methods))}


def _reach(line: Line, number: int) -> Interval:
    return line.reach[number] if line.reach else (0.0, 0.0)
